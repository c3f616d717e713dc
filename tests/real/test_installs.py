"""Every way to install TensorFlow, through the commands that everybody uses first.

A row is an environment (distribution, version, installer, with or without CUDA libraries), locked with or without a
GPU, which the stand-in of NVML shows. The lanes of other TensorFlows have sixteen rows; ENVLOCK_TEST_INSTALLS names the
interpreters of further environments, and then `pytest -rP` prints the whole table.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from envlock.runtime.collectors.gpu import collect
from envlock.runtime.facts import split
from tests.conftest import Command, absent, activate
from tests.fakes.fake_nvml import profile
from tests.fakes.replay import Machine
from tests.locks import encode

MORE = "ENVLOCK_TEST_INSTALLS"
CUDA = "ENVLOCK_TEST_CUDA_PYTHONS"
GPU = "rtx-4090__570__whole"
ROOT = Path(__file__).parents[2]
UV = str(Path(sys.executable).with_name("uv"))
COMMANDS: dict[str, tuple[str, ...]] = {
    "capture": ("capture", "--quiet"),
    "verify": ("verify",),
    "deep": ("verify", "--deep"),
    "doctor": ("doctor",),
    "build": ("build", "--dry-run"),
}


class Environment(NamedTuple):
    """What is installed, and by what: `plain` is what `pip install tensorflow` leaves, without NVIDIA's wheels."""

    distribution: str
    version: str
    installer: str


ENVIRONMENTS = [
    *(Environment("tensorflow-cpu", version, "pip") for version in ("2.15.1", "2.16.2")),
    *(Environment("tensorflow-cpu", version, "uv") for version in ("2.18.1", "2.20.0")),
    *(Environment("and-cuda", version, "pip") for version in ("2.18.1", "2.21.0")),
    Environment("plain", "2.18.1", "pip"),
    Environment("plain", "2.21.0", "uv"),
]
MARKS = {
    "tensorflow-cpu": pytest.mark.older_tensorflows,
    "and-cuda": pytest.mark.cuda_wheels,
    "plain": pytest.mark.cuda_wheels,
}


def run_commands(python: Path, folder: Path, gpu: str | None) -> dict[str, tuple[int, str]]:
    """Return the exit code and the first telling line of each command.

    With a GPU, the lock gets what the stand-in of NVML tells, and only what reads the lock is run: this machine has none.
    """
    folder.mkdir()
    (folder / "work").mkdir()
    command = activate(python, folder / "work")
    command = Command(command.argv, command.folder, {**command.environ, "PYTHONHASHSEED": "0"})
    answers = {}
    for name, words in COMMANDS.items():
        if gpu is not None and name in ("verify", "deep"):
            continue
        if gpu is not None and name == "doctor":
            words = (*words, "envlock.lock")
        done = command(*words, timeout=600)
        if gpu is not None and name == "capture":
            _add_gpu(folder, gpu)
        lines = (done.stdout if name != "build" else "").splitlines() + done.stderr.splitlines()
        telling = [line for line in lines if line.startswith(("  x", "error", "  ?", "matches", "sound", "not sound"))]
        answers[name] = (done.returncode, (telling or lines or [""])[0][:110])
    return answers


def _add_gpu(folder: Path, gpu: str) -> None:
    (folder / "machine").mkdir()
    found, unavailable = split({"gpu": collect(Machine(folder / "machine", profile(gpu)).host())})
    file = folder / "work" / "envlock.lock"
    lock = json.loads(file.read_bytes())
    assert found["gpu"]["devices"]
    lock["facts"]["gpu"] = found["gpu"]
    lock["unavailable"].update(unavailable)
    file.write_bytes(encode(lock))


def find_environment(environment: Environment, older: Callable[[str], Path]) -> Path:
    """Return the interpreter of the lane's environment with that version, which pip made, with CUDA libraries or none."""
    if environment.distribution == "tensorflow-cpu":
        return older(environment.version)
    named = [Path(name) for name in os.environ.get(CUDA, "").split(":") if name.endswith("python")]
    for python in named:
        if python.parents[1].name.endswith(environment.version):
            return python
    return absent(f"no tensorflow[and-cuda] {environment.version}: `make testcuda` makes one and names it in {CUDA}")


def install(environment: Environment, base: Path, folder: Path) -> Path:
    """Return the interpreter of a new environment: what everybody types, with the versions that the lane has locked."""
    lane, project = ("cuda", "tensorflow") if environment.distribution == "plain" else ("tensorflow", "tensorflow-cpu")
    locked = (ROOT / f"requirements/{lane}-{environment.version}.txt").read_text(encoding="utf-8")
    # As constraints pip takes neither extras nor hashes.
    pins = folder / "pins.txt"
    pins.write_text("\n".join(re.findall(r"^[\w.-]+==[\w.+-]+", locked, re.MULTILINE)), encoding="utf-8")
    words = ["-q", f"{project}=={environment.version}", "-c", str(pins)]
    python = folder / "env" / "bin" / "python"
    # Nothing but uv writes in its cache: its files are those of the environment.
    environ = {**os.environ, "UV_CACHE_DIR": str(folder / "cache"), "PIP_NO_CACHE_DIR": "1"}
    if environment.installer == "uv":
        steps = [[UV, "venv", "-q", "-p", str(base), str(folder / "env")], [UV, "pip", "install", "-p", str(python)]]
    else:
        steps = [[str(base), "-m", "venv", str(folder / "env")], [str(python), "-m", "pip", "install"]]
    steps[1] += words
    for step in steps:
        subprocess.run(step, env=environ, check=True, timeout=1200)
    return python


@pytest.fixture(scope="module")
def installed(
    request: pytest.FixtureRequest, older_tensorflow: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Environment, Path]]:
    """Return an environment and its interpreter; what is made here is gigabytes, and gone before the next is made."""
    environment: Environment = request.param
    python = find_environment(environment, older_tensorflow)
    if environment.distribution != "plain" and environment.installer == "pip":
        yield environment, python
        return
    folder = tmp_path_factory.mktemp("install")
    yield environment, install(environment, python, folder)
    shutil.rmtree(folder)


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize(
    "installed",
    [pytest.param(each, marks=MARKS[each.distribution], id="-".join(each)) for each in ENVIRONMENTS],
    indirect=True,
)
def test_an_install_goes_through_all_that_comes_first(
    installed: tuple[Environment, Path], gpu: bool, tmp_path: Path
) -> None:
    environment, python = installed
    answers = run_commands(python, tmp_path / "row", GPU if gpu else None)
    print_row(" | ".join(environment), gpu, answers)
    # A GPU that TensorFlow cannot use is what the doctor is for.
    codes = {name: code for name, (code, _) in answers.items() if name != "doctor" or not gpu}
    assert set(codes.values()) == {0}, answers


@pytest.mark.slow
@pytest.mark.skipif(MORE not in os.environ, reason=f"{MORE} names no environment")
@pytest.mark.parametrize("gpu", [None, GPU])
@pytest.mark.parametrize("python", [name for name in os.environ.get(MORE, "").split(":") if name])
def test_the_whole_table(python: str, gpu: str | None, tmp_path: Path) -> None:
    print_row(Path(python).parents[1].name, gpu is not None, run_commands(Path(python), tmp_path / "row", gpu))


def print_row(name: str, gpu: bool, answers: dict[str, tuple[int, str]]) -> None:
    """Print a row of the table, for `pytest -rP`, and what each command said that did not answer 0."""
    codes = " | ".join(str(answers[command][0]) if command in answers else "" for command in COMMANDS)
    sys.stdout.write(f"| {name} | {'GPU' if gpu else ''} | {codes} |\n")
    for command, (code, line) in answers.items():
        if code:
            sys.stdout.write(f"    {command}: {line}\n")
