"""`envlock hash` on a small real environment and an index of our own."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.packages.server import IndexServer, index_server
from tests.packages.wheels import make_wheel, record_line


@pytest.fixture
def index(tmp_path: Path) -> Iterator[IndexServer]:
    """Return a running index with the wheel of `thing`, and nothing of `other`."""
    make_wheel(tmp_path / "index")
    with index_server(tmp_path / "index") as server:
        yield server


@pytest.fixture
def python(index: IndexServer, tmp_path: Path) -> Path:
    """Return the interpreter of an environment in which `thing` and `other` are installed."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python3.*/site-packages"))
    for wheel in (next(index.folder.iterdir()), make_wheel(tmp_path / "elsewhere", "other")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
        next(site.glob(f"{wheel.name.split('-')[0]}*.dist-info")).joinpath("INSTALLER").write_text("pip\n")
    return folder / "bin" / "python"


@pytest.fixture
def asking(index: IndexServer, tmp_path: Path) -> dict[str, str]:
    """Return the variables with which only our index is asked, and the cache is our own."""
    return {"ENVLOCK_INDEX_URL": index.url, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_CONFIG_FILE": "/dev/null"}


@pytest.fixture
def captured(envlock: Command, python: Path) -> Path:
    """Return the lock of the environment, without hashes."""
    assert envlock("capture", "--python", str(python)).returncode == 0
    return envlock.folder / "envlock.lock"


def packages(lock: Path) -> dict[str, Any]:
    """Return what a lock says of the wheels."""
    found: dict[str, Any] = json.loads(lock.read_bytes())["identity"]["packages"]
    return found


OTHER = "other 1.0: other is not on an index; only its file hashes are known"


@pytest.mark.slow
def test_hash_writes_what_is_proven_and_says_why_the_rest_is_not(
    envlock: Command, captured: Path, python: Path, asking: dict[str, str], index: IndexServer
) -> None:
    done = envlock("hash", "--python", str(python), environ=asking)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"1 of 2 packages have a proven wheel\n  {OTHER}\n"
    thing = packages(captured)["thing"]
    assert (thing["proof"], thing["wheel"]["url"]) == ("file", index.file_url("thing-1.0-py3-none-any.whl"))
    assert envlock("verify", "--python", str(python)).returncode == 0
    assert envlock("show", "-f", "json").stdout == captured.read_text()


@pytest.mark.slow
def test_hashing_twice_writes_the_same_bytes(
    envlock: Command, captured: Path, python: Path, asking: dict[str, str]
) -> None:
    for _ in range(2):
        assert envlock("hash", "-q", "--python", str(python), environ=asking).stderr == ""
    first = captured.read_bytes()
    assert envlock("capture", "--check", "--python", str(python)).stderr == f"{captured.name} is up to date\n"
    again = envlock("hash", "-", "-q", "--python", str(python), environ=asking, stdin=first)
    assert again.stdout.encode() == first


@pytest.mark.slow
def test_a_new_capture_keeps_what_is_still_true(
    envlock: Command, captured: Path, python: Path, asking: dict[str, str]
) -> None:
    envlock("hash", "--python", str(python), environ=asking)
    before = captured.read_bytes()
    assert envlock("capture", "--python", str(python)).returncode == 0
    assert captured.read_bytes() == before
    _tamper(python)
    done = envlock("capture", "--python", str(python))
    assert (done.returncode, set(packages(captured))) == (0, {"other"})
    reason = "its RECORD is not the one that was proven (`envlock hash` looks for its wheel)"
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
def test_a_proof_that_the_lock_has_is_not_dropped(
    envlock: Command, captured: Path, python: Path, asking: dict[str, str]
) -> None:
    assert envlock("hash", "--python", str(python), environ=asking).returncode == 0
    before = captured.read_bytes()
    _tamper(python)
    for options, reason in (((), CHANGED), (("--offline",), "no index was used (--offline)")):
        done = envlock("hash", "-q", *options, "--python", str(python), environ=asking)
        assert (done.returncode, done.stdout, captured.read_bytes()) == (1, "", before)
        assert done.stderr == (
            f"error: 1 package had a proven wheel and now has none:\n  thing 1.0: {reason}\n"
            "hint: run `envlock capture` to accept the installed files; nothing was written\n"
        )


def test_other_packages_than_the_locked_ones_are_refused(
    envlock: Command, captured: Path, python: Path, asking: dict[str, str], index: IndexServer
) -> None:
    before = captured.read_bytes()
    folder = next(python.parents[1].rglob("thing-1.0.dist-info"))
    folder.rename(folder.with_name("thing-2.0.dist-info"))
    done = envlock("hash", "--python", str(python), environ=asking)
    assert done.returncode == 1
    assert "  x packages.thing.version: locked 1.0, live 2.0\n" in done.stderr
    assert done.stderr.endswith(
        "\nhint: run `envlock sync` to get the locked environment, or `envlock capture` to lock this one; nothing was written\n"
    )
    assert (captured.read_bytes(), index.requests) == (before, [])


def test_an_index_that_lies_ends_with_5_and_nothing_is_written(
    envlock: Command, captured: Path, python: Path, asking: dict[str, str], index: IndexServer
) -> None:
    before = captured.read_bytes()
    index.troubles.add("wrong hash")
    done = envlock("hash", "--python", str(python), environ=asking)
    url = index.file_url("thing-1.0-py3-none-any.whl")
    assert done.returncode == 5
    assert done.stderr.startswith(f"error: thing: {url} is not the expected file: its sha256 is ")
    assert done.stderr.endswith("\nhint: use another index; the download was discarded\n")
    assert captured.read_bytes() == before


def test_offline_asks_nobody(
    envlock: Command, captured: Path, python: Path, asking: dict[str, str], index: IndexServer
) -> None:
    done = envlock("hash", "--offline", "--python", str(python), environ=asking)
    reason = "no index was used (--offline)"
    expected = f"0 of 2 packages have a proven wheel\n  other 1.0: {reason}\n  thing 1.0: {reason}\n"
    assert (done.returncode, done.stderr, index.requests) == (0, expected, [])
    assert packages(captured)["thing"]["content"] is not None
