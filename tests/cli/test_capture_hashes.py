"""`envlock capture --hashes` on a small real environment and an index of our own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envlock.packages.hash import HashRequest, hash_packages
from envlock.runtime.errors import EnvironmentMismatch
from tests.conftest import Command
from tests.packages.server import IndexServer, index_server
from tests.packages.wheels import make_environment, make_wheel, record_line


@pytest.fixture
def index(tmp_path: Path) -> Iterator[IndexServer]:
    """Return a running index with the wheel of `thing`, and nothing of `other`."""
    make_wheel(tmp_path / "index")
    with index_server(tmp_path / "index") as server:
        yield server


@pytest.fixture
def python(index: IndexServer, tmp_path: Path) -> Path:
    """Return the interpreter of an environment in which `thing` and `other` are installed."""
    wheels = [next(index.folder.iterdir()), make_wheel(tmp_path / "elsewhere", "other")]
    return make_environment(tmp_path / "environment", wheels)


@pytest.fixture
def asking(index: IndexServer, tmp_path: Path) -> dict[str, str]:
    """Return the variables with which only our index is asked, and the cache is our own."""
    return {"ENVLOCK_INDEX_URL": index.url, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_CONFIG_FILE": "/dev/null"}


@pytest.fixture
def lock(envlock: Command) -> Path:
    """Return the path of the lockfile."""
    return envlock.folder / "envlock.lock"


def packages(lock: Path) -> dict[str, Any]:
    """Return what a lock says of the wheels."""
    found: dict[str, Any] = json.loads(lock.read_bytes())["identity"]["packages"]
    return found


OTHER = "other 1.0: no index has its wheel for this Python and machine; only its file hashes are known"


@pytest.mark.slow
def test_it_writes_what_is_proven_and_says_why_the_rest_is_not(
    envlock: Command, lock: Path, python: Path, asking: dict[str, str], index: IndexServer
) -> None:
    done = envlock("capture", "--hashes", "--without-tensorflow", "--python", str(python), environ=asking)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"\n  1 of 2 packages have a proven wheel\n    {OTHER}\n  hint: " in done.stderr
    thing = packages(lock)["thing"]
    assert (thing["proof"], thing["wheel"]["url"]) == ("file", index.file_url("thing-1.0-py3-none-any.whl"))
    assert envlock("verify", "--python", str(python)).returncode == 0
    assert envlock("show", "-f", "json").stdout == lock.read_text()


@pytest.mark.slow
def test_hashing_twice_writes_the_same_bytes_and_a_capture_keeps_what_is_still_true(
    envlock: Command, lock: Path, python: Path, asking: dict[str, str]
) -> None:
    words = ("capture", "--without-tensorflow", "--python", str(python))
    assert envlock(*words, "--hashes", "-q", environ=asking).stderr == ""
    first = lock.read_bytes()
    for more in (["--hashes"], []):
        assert envlock(*words, *more, "-q", environ=asking).stderr == ""
        assert lock.read_bytes() == first
    _tamper(python)
    done = envlock(*words)
    assert (done.returncode, set(packages(lock))) == (0, {"other"})
    reason = "its RECORD is not the one that was proven (`envlock capture --hashes` looks for its wheel)"
    assert done.stderr.endswith(f"warning: a proven wheel was lost: thing 1.0: {reason}\n")


def _tamper(python: Path) -> None:
    """Replace the module of `thing` by another one, with a RECORD that agrees."""
    record = next(python.parents[1].rglob("thing-1.0.dist-info/RECORD"))
    content = b"VERSION = 'evil'\n"
    (record.parents[1] / "thing.py").write_bytes(content)
    lines = [line for line in record.read_text().splitlines(keepends=True) if not line.startswith("thing.py,")]
    record.write_text("".join([record_line("thing.py", content), *lines]))


CHANGED = "the installed files are not those of thing-1.0-py3-none-any.whl: thing.py has a different hash"


@pytest.mark.slow
def test_a_proof_that_the_lock_has_is_not_dropped_by_a_build(
    envlock: Command, lock: Path, python: Path, asking: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("capture", "--hashes", "--without-tensorflow", "--python", str(python))
    assert envlock(*words, environ=asking).returncode == 0
    _tamper(python)
    for name, value in asking.items():
        monkeypatch.setenv(name, value)
    for offline, reason in ((False, CHANGED), (True, "no index was used (--offline)")):
        with pytest.raises(EnvironmentMismatch) as caught:
            hash_packages(lock, HashRequest(offline=offline), python=python)
        assert caught.value.message == f"1 package had a proven wheel and now has none:\n  thing 1.0: {reason}"
        assert caught.value.hint == "run `envlock capture` to accept the installed files; nothing was written"
    done = envlock(*words, environ=asking)
    assert (done.returncode, f"warning: a proven wheel was lost: thing 1.0: {CHANGED}\n" in done.stderr) == (0, True)


def test_other_packages_than_the_locked_ones_are_refused_by_a_build(
    envlock: Command, lock: Path, python: Path, index: IndexServer
) -> None:
    assert envlock("capture", "--without-tensorflow", "--python", str(python)).returncode == 0
    folder = next(python.parents[1].rglob("thing-1.0.dist-info"))
    folder.rename(folder.with_name("thing-2.0.dist-info"))
    with pytest.raises(EnvironmentMismatch) as caught:
        hash_packages(lock, python=python)
    assert "  x packages.thing.version: locked 1.0, live 2.0\n" in str(caught.value)
    assert index.requests == []


def test_an_index_that_lies_ends_with_5_and_nothing_is_written(
    envlock: Command, lock: Path, python: Path, asking: dict[str, str], index: IndexServer
) -> None:
    index.troubles.add("wrong hash")
    done = envlock("capture", "--hashes", "--without-tensorflow", "--python", str(python), environ=asking)
    assert done.returncode == 5
    assert "error: thing: pip exited with code 1: THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr
    assert not lock.exists()


def test_what_is_said_of_wheels_needs_hashes(envlock: Command) -> None:
    done = envlock("capture", "--build")
    assert (done.returncode, done.stderr) == (2, "error: `--build` needs `--hashes`\nhint: add `--hashes`\n")
    assert not (envlock.folder / "envlock.lock").exists()
