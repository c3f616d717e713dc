"""Environments with a TensorFlow of another day: installing envlock changes nothing, and the doctor can be obeyed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Command, absent
from tests.exhaustive import exhaustive, first

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

UV = str(Path(sys.executable).with_name("uv"))
ROOT = Path(__file__).resolve().parents[2]
FOREIGN = {
    "2.12": (("tensorflow-cpu==2.12.1",), None),
    "2.16 with tf_keras": (("tensorflow-cpu==2.16.2", "tf_keras==2.16.0"), "tensorflow-cpu==2.16.2"),
}
"""What is installed with CPython 3.11, and what the doctor's fixes remove."""


def _uv(*words: str) -> str:
    done = subprocess.run([UV, *words], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0 and not os.environ.get("CI"):
        absent(f"uv cannot make the environment: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    return done.stdout


@exhaustive
@pytest.mark.parametrize("name", first(1, FOREIGN))
def test_nothing_enters_and_every_fix_is_obeyed(name: str, tmp_path: Path, envlock: Command) -> None:
    packages, removed = FOREIGN[name]
    python = str(tmp_path / "env" / "bin" / "python")
    _uv("venv", "--quiet", "--python", "3.11", str(tmp_path / "env"))
    _uv("pip", "install", "--quiet", "--python", python, *packages)
    before = _uv("pip", "freeze", "--python", python).splitlines()
    _uv("pip", "install", "--quiet", "--python", python, str(ROOT))
    after = _uv("pip", "freeze", "--python", python).splitlines()
    assert [line for line in after if not line.startswith("tf-envlock")] == before

    environ = {"PATH": f"{Path(UV).parent}:{os.environ['PATH']}", "HOME": str(tmp_path), "PYTHONHASHSEED": "0"}
    assert envlock("capture", "--python", python, environ=environ).returncode == 0
    assert envlock("verify", "--python", python, environ=environ).stdout.startswith("matches under policy strict")
    told = envlock("doctor", "--python", python, environ=environ).stdout.splitlines()
    fixes = [line.removeprefix("      fix: ") for line in told if line.startswith("      fix: ")]
    assert len(fixes) == (0 if removed is None else 1), told
    for fix in fixes:
        subprocess.run(["/bin/sh", "-c", fix], env={**os.environ, **environ}, check=True, timeout=600)
    assert envlock("doctor", "--python", python, environ=environ).stderr == "no problems found\n"
    assert _uv("pip", "freeze", "--python", python).splitlines() == [line for line in after if line != removed]
