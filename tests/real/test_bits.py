"""The policy `bits` with a real TensorFlow: another machine's lock is accepted where the canary has its bits."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command, activate
from tests.exhaustive import exhaustive
from tests.locks import encode

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def elsewhere(tensorflow_python: Path, tmp_path: Path) -> tuple[Command, dict[str, str], dict[str, Any]]:
    """Return the command line, its variables, and a lock with a canary as another machine could have written it."""
    envlock = activate(tensorflow_python, tmp_path)
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path), "CUDA_VISIBLE_DEVICES": "-1"}
    assert envlock("capture", "-q", "--canary", "-p", "bits", environ=environ, timeout=300).returncode == 0
    lock = json.loads((tmp_path / "envlock.lock").read_bytes())
    lock["facts"]["cpu"]["model"] = "999"
    lock["facts"]["system"]["os_version"] = "22.04"
    return envlock, environ, lock


@exhaustive
def test_a_machine_with_the_locked_bits_is_proven_once_and_then_assert_locked_knows(
    elsewhere: tuple[Command, dict[str, str], dict[str, Any]], tensorflow_python: Path, tmp_path: Path
) -> None:
    envlock, environ, lock = elsewhere
    (tmp_path / "envlock.lock").write_bytes(encode(lock))

    def script() -> subprocess.CompletedProcess[str]:
        argv = [str(tensorflow_python), "-c", "import envlock; print(envlock.assert_locked().match)"]
        plain = {"PATH": os.environ["PATH"], **environ}
        return subprocess.run(argv, cwd=tmp_path, env=plain, capture_output=True, text=True, timeout=60, check=False)

    refused = script()
    assert (refused.returncode, "Run `envlock verify -p bits` here once" in refused.stderr) == (1, True)
    done = envlock("verify", environ=environ, timeout=300)
    assert (done.returncode, done.stderr) == (0, "computing the canary with TensorFlow (takes seconds)\n")
    again = envlock("verify", environ=environ)
    assert (again.returncode, again.stdout, again.stderr) == (0, done.stdout, "")
    assert script().stdout == "True\n"
    checked = envlock("capture", "--check", environ=environ)
    assert (checked.returncode, checked.stderr) == (
        0,
        "envlock.lock is up to date; 2 differences that policy bits allows\n",
    )
    kept = list((tmp_path / "cache" / "envlock" / "proofs").iterdir())
    assert len(kept) == 2, "with what is loaded, and without: for line 1"


@exhaustive
def test_a_machine_with_fewer_processors_is_proven_and_run_sets_the_locked_threads(
    elsewhere: tuple[Command, dict[str, str], dict[str, Any]], tmp_path: Path
) -> None:
    """A CI runner with 2 processors, and a lock of a machine with 16."""
    envlock, environ, lock = elsewhere
    lock["facts"]["cpu"].update(intra_op_threads=16, inter_op_threads=16, affinity_count=16)
    (tmp_path / "envlock.lock").write_bytes(encode(lock))
    done = envlock("verify", environ=environ, timeout=300)
    headline = "does not match under policy bits, with 2 facts proven by the canary: 1 change (2 facts)"
    assert (done.returncode, done.stdout.partition("\n")[0]) == (1, headline)
    code = "import envlock; print(envlock.assert_locked().match)"
    done = envlock("run", "-q", "python", "-c", code, environ=environ)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_a_machine_with_other_bits_is_refused_and_the_cause_is_named(
    elsewhere: tuple[Command, dict[str, str], dict[str, Any]], tmp_path: Path
) -> None:
    """oneDNN capped here and not there: as a variable both sides have it, so only the bits can tell."""
    envlock, environ, lock = elsewhere
    lock["facts"]["environ"]["ONEDNN_MAX_CPU_ISA"] = "SSE41"
    (tmp_path / "envlock.lock").write_bytes(encode(lock))
    done = envlock("verify", environ={**environ, "ONEDNN_MAX_CPU_ISA": "SSE41"}, timeout=300)
    assert done.returncode == 1
    assert "canary results differ" in done.stdout.partition("\n")[0]
    assert "fix: Compute on a machine like the locked one: this one has other bits, as the canary shows." in done.stdout
    assert list((tmp_path / "cache" / "envlock" / "proofs").iterdir()) == []


@exhaustive
def test_without_a_canary_no_machine_can_be_proven(
    elsewhere: tuple[Command, dict[str, str], dict[str, Any]], tmp_path: Path
) -> None:
    envlock, environ, lock = elsewhere
    (tmp_path / "envlock.lock").write_bytes(encode({name: value for name, value in lock.items() if name != "numerics"}))
    done = envlock("verify", environ=environ)
    note = "no proof for this machine is possible: the lockfile has no canary (`envlock capture --canary`)"
    assert (done.returncode, done.stdout.splitlines()[-2]) == (1, note)
