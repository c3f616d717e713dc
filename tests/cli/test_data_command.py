"""`[tool.envlock] data` from the settings to each verdict, as a shell sees it."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

from tests.conftest import Command

SETTINGS = '[tool.envlock]\ndata = ["data/", "./labels.csv"]\n'
NAMED = f'{SETTINGS}[tool.envlock.policy]\ndata = "exact"\n'
ASSERT = "import envlock; print(envlock.assert_locked().headline)"
SAID = "data at data: locked 1 file (4 bytes), live 2 files (4 bytes)"


@pytest.fixture
def python(envlock: Command) -> Command:
    """Return the interpreter of this checkout in the folder of the project."""
    return Command([sys.executable], envlock.folder)


@pytest.fixture
def project(envlock: Command) -> Path:
    folder = envlock.folder
    (folder / "pyproject.toml").write_text(SETTINGS)
    (folder / "data").mkdir()
    (folder / "data/a.csv").write_bytes(b"1,2\n")
    (folder / "labels.csv").write_bytes(b"x\n")
    return folder


def test_other_data_is_a_warning_and_the_environment_matches(project: Path, envlock: Command, python: Command) -> None:
    line = envlock("show", "live", "--line").stdout
    done = envlock("capture")
    assert (done.returncode, "2 data files" in done.stderr) == (0, True), done.stderr
    assert sorted(json.loads((project / "envlock.lock").read_bytes())["data"]) == ["data", "labels.csv"]
    assert envlock("show", "--line").stdout == line, "the environment is the same without data"
    (project / "data/b.csv").touch()
    verified = envlock("verify")
    assert verified.returncode == 0
    assert verified.stdout.splitlines()[:2] == ["matches under policy strict", f"  ! {SAID}"]
    live = envlock("diff", "envlock.lock", "live")
    assert (live.returncode, live.stdout.splitlines()[1]) == (0, f"  ! {SAID.replace('locked', 'envlock.lock')}")
    asserted = python("-c", ASSERT)
    assert (asserted.returncode, asserted.stdout) == (0, "matches under policy strict\n")
    assert asserted.stderr == f"envlock: warning: {SAID}\n"
    again = envlock("capture")
    assert f"  {SAID.replace('locked', 'was').replace('live', 'now')}" in again.stderr.splitlines()


def test_a_rule_that_names_it_makes_it_decide(project: Path, envlock: Command, python: Command) -> None:
    (project / "pyproject.toml").write_text(NAMED)
    assert envlock("capture", "--quiet").returncode == 0
    assert [envlock("verify").returncode, envlock("capture", "--check").returncode] == [0, 0]
    (project / "data/b.csv").touch()
    headline = "does not match under policy strict, with 1 override: there is other data at 1 path"
    verified = envlock("verify")
    assert (verified.returncode, verified.stdout.splitlines()[:2]) == (1, [headline, f"  x {SAID}"])
    assert envlock("verify", "--no-overrides").returncode == 1
    assert envlock("run", "--", "true").returncode == 1
    asserted = python("-c", ASSERT)
    assert (asserted.returncode, headline in asserted.stderr) == (1, True)
    (project / "data/b.csv").unlink()
    (project / "data/a.csv").write_bytes(b"1,3\n")
    assert [envlock("verify").returncode, python("-c", ASSERT).returncode] == [0, 0]
    assert python("-c", ASSERT, environ={"ENVLOCK_MODE": "deep"}).returncode == 1


def test_a_verdict_on_names_and_sizes_says_so(project: Path, envlock: Command, python: Command) -> None:
    """A `.dvc` file beside the data that describes other data of the same size: what `git pull` alone leaves."""
    (project / "pyproject.toml").write_text(NAMED)
    (project / "labels.csv.dvc").write_text(
        "outs:\n- md5: 9dd4e461268c8034f5c8564e155c67a6\n  size: 2\n  hash: md5\n  path: labels.csv\n"
    )
    assert envlock("capture", "--quiet").returncode == 0
    locked = json.loads((project / "envlock.lock").read_bytes())["data"]["labels.csv"]
    content = hashlib.sha256(b"\0" + hashlib.sha256(b"x\n").hexdigest().encode() + b"\n").hexdigest()
    assert locked["content"] == f"sha256:{content}", "the digest of what is there, not of what should be"
    (project / "labels.csv").write_bytes(b"y\n")
    rest = ", with 1 override, with data by names and sizes only"
    said = "data at labels.csv: as locked by names and sizes; contents were not compared"
    verified = envlock("verify")
    assert (verified.returncode, verified.stdout.splitlines()[0]) == (0, f"matches under policy strict{rest}")
    assert f"  ! {said}" in verified.stdout
    asserted = python("-c", ASSERT)
    assert (asserted.returncode, f"envlock: warning: {said}\n" in asserted.stderr) == (0, True)


def test_settings_that_are_not_captured_are_found(project: Path, envlock: Command) -> None:
    assert envlock("capture", "--quiet").returncode == 0
    (project / "pyproject.toml").write_text('[tool.envlock]\ndata = ["data"]\n')
    done = envlock("capture", "--check")
    assert (done.returncode, "tool.envlock.data: locked data, labels.csv, pyproject.toml data" in done.stderr) == (
        1,
        True,
    )


@pytest.mark.parametrize(
    ("written", "code", "said"),
    [
        ('data = "data"', 2, "`data` must be a list of strings"),
        ('data = ["/etc"]', 2, "`data` has a path outside the project: /etc"),
        ('data = ["../x"]', 2, "`data` has a path outside the project: ../x"),
        ('data = ["."]', 2, "`data` has a path outside the project: ."),
        ('data = ["a b"]', 2, "`data` has a path that no lockfile can hold: a b"),
        ('data = ["none"]', 2, "no data at "),
        ('data = ["pipe"]', 4, "pipe: it is neither a file nor a folder"),
    ],
)
def test_bad_data_is_one_sentence_and_nothing_is_written(
    written: str, code: int, said: str, project: Path, envlock: Command
) -> None:
    (project / "pyproject.toml").write_text(f"[tool.envlock]\n{written}\n")
    (project / "pipe").symlink_to("/dev/null")
    done = envlock("capture")
    assert (done.returncode, said in done.stderr.splitlines()[0], "Traceback" in done.stderr) == (code, True, False)
    assert not (project / "envlock.lock").exists()
