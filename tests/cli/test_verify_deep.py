"""`envlock verify --deep` as a shell sees it, on another interpreter's environment."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.locks import document
from tests.packages.installed import Prefix


@pytest.fixture
def target(tmp_path: Path) -> Prefix:
    """Return a virtual environment without pip, in which `six` is installed."""
    root = tmp_path / "target"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    prefix = Prefix(root)
    prefix.install("six", "1.17.0", {"six.py": "PY3 = True\n"})
    prefix.compile()
    return prefix


@pytest.fixture
def lock(envlock: Command, target: Prefix) -> Path:
    done = envlock("capture", "-q", "--python", str(target.python))
    assert (done.returncode, done.stderr) == (0, "")
    return envlock.folder / "envlock.lock"


def test_an_untouched_environment_matches(envlock: Command, target: Prefix, lock: Path) -> None:
    done = envlock("verify", "--deep", "--python", str(target.python))
    assert (done.returncode, done.stdout, done.stderr) == (0, "matches under policy strict\n", "")


def test_a_changed_file_is_exit_1_and_only_deep_sees_it(envlock: Command, target: Prefix, lock: Path) -> None:
    (target.site / "six.py").write_text("PY3 = None\n")
    assert envlock("verify", "--python", str(target.python)).returncode == 0
    done = envlock("verify", "--deep", "--python", str(target.python))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[:3] == [
        "does not match under policy strict: 1 file is not as recorded",
        "modified: 1 file",
        "  x six.py  six 1.17.0  different content of the same size",
    ]
    report = json.loads(envlock("verify", "--deep", "-f", "json", "--python", str(target.python)).stdout)
    assert (report["match"], [(found["rule"], found["where"]["fact"]) for found in report["findings"]]) == (
        False,
        [("file-modified", "six.py")],
    )


def test_the_record_is_held_against_the_lock(envlock: Command, target: Prefix, lock: Path) -> None:
    locked = json.loads(lock.read_bytes())
    entry = {"version": "1.17.0", "origin": "index", "proof": None, "wheel": None, "reason": "Not asked."}
    locked["identity"] = {"packages": {"six": {**entry, "content": "0" * 64}}}
    lock.write_text(json.dumps(locked))
    done = envlock("verify", "--deep", "--python", str(target.python))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[1] == "not locked: 1 file"


def test_a_damaged_identity_is_a_lockfile_error(envlock: Command, target: Prefix) -> None:
    lock = document(identity={"packages": {"six": {"version": 1}}})
    (envlock.folder / "envlock.lock").write_text(json.dumps(lock))
    done = envlock("verify", "--deep", "--python", str(target.python))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: lockfile envlock.lock is not valid: `identity.packages.six.version`: ")


@pytest.mark.slow
@pytest.mark.parametrize("quiet", [False, True])
def test_the_progress_bar_is_for_terminals(quiet: bool, envlock: Command, target: Prefix, lock: Path) -> None:
    main, terminal = pty.openpty()
    argv = [*envlock.argv, "verify", "--deep", "--python", str(target.python), *(["--quiet"] if quiet else [])]
    environ = {"PATH": os.environ["PATH"], "TERM": "xterm", "PYTHONSAFEPATH": "1", "COLUMNS": "80"}
    child = subprocess.Popen(argv, cwd=envlock.folder, env=environ, stdout=subprocess.PIPE, stderr=terminal)
    os.close(terminal)
    shown = b""
    try:
        while piece := os.read(main, 65536):
            shown += piece
    except OSError:  # the child has closed its side
        pass
    os.close(main)
    out, _ = child.communicate(timeout=60)
    assert (child.returncode, out) == (0, b"matches under policy strict\n")
    assert (b"reading files" in shown and b"comparing bytecode" in shown) is not quiet
    assert quiet is (shown == b"")
