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


class Row(NamedTuple):
    """An environment: `plain` is what `pip install tensorflow` leaves, without NVIDIA's wheels."""

    distribution: str
    version: str
    installer: str
    gpu: bool


ROWS = [
    *(Row("tensorflow-cpu", version, "pip", gpu) for version in ("2.15.1", "2.16.2") for gpu in (False, True)),
    *(Row("tensorflow-cpu", version, "uv", gpu) for version in ("2.18.1", "2.20.0") for gpu in (False, True)),
    *(Row("and-cuda", version, "pip", gpu) for version in ("2.18.1", "2.21.0") for gpu in (False, True)),
    *(Row("plain", "2.18.1", "pip", gpu) for gpu in (False, True)),
    *(Row("plain", "2.21.0", "uv", gpu) for gpu in (False, True)),
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


def find_environment(row: Row, older: Callable[[str], Path]) -> Path:
    """Return the interpreter of the lane's environment with that version, which pip made, with CUDA libraries or none."""
    if row.distribution == "tensorflow-cpu":
        return older(row.version)
    named = [Path(name) for name in os.environ.get(CUDA, "").split(":") if name.endswith("python")]
    for python in named:
        if python.parents[1].name.endswith(row.version):
            return python
    return absent(f"no tensorflow[and-cuda] {row.version}: `make testcuda` makes one and names it in {CUDA}")


def install(row: Row, base: Path, folder: Path) -> Path:
    """Return the interpreter of a new environment: what everybody types, with the versions that the lane has locked."""
    lane, project = ("cuda", "tensorflow") if row.distribution == "plain" else ("tensorflow", "tensorflow-cpu")
    locked = (ROOT / f"requirements/{lane}-{row.version}.txt").read_text(encoding="utf-8")
    # As constraints pip takes neither extras nor hashes.
    pins = folder / "pins.txt"
    pins.write_text("\n".join(re.findall(r"^[\w.-]+==[\w.+-]+", locked, re.MULTILINE)), encoding="utf-8")
    words = ["-q", f"{project}=={row.version}", "-c", str(pins)]
    python = folder / "env" / "bin" / "python"
    # Nothing but uv writes in its cache: its files are those of the environment.
    environ = {**os.environ, "UV_CACHE_DIR": str(folder / "cache"), "PIP_NO_CACHE_DIR": "1"}
    if row.installer == "uv":
        steps = [[UV, "venv", "-q", "-p", str(base), str(folder / "env")], [UV, "pip", "install", "-p", str(python)]]
    else:
        steps = [[str(base), "-m", "venv", str(folder / "env")], [str(python), "-m", "pip", "install"]]
    steps[1] += words
    for step in steps:
        subprocess.run(step, env=environ, check=True, timeout=1200)
    return python


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, ...], Path]]:
    """Return the environments that rows have made, each once; they take gigabytes."""
    made: dict[tuple[str, ...], Path] = {}
    yield made
    for python in made.values():
        shutil.rmtree(python.parents[2])


@pytest.mark.parametrize(
    "row", [pytest.param(row, marks=MARKS[row.distribution], id="-".join(map(str, row))) for row in ROWS]
)
def test_an_install_goes_through_all_that_comes_first(
    row: Row,
    older_tensorflow: Callable[[str], Path],
    installed: dict[tuple[str, ...], Path],
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
) -> None:
    python = find_environment(row, older_tensorflow)
    if row.distribution == "plain" or row.installer == "uv":
        if row[:3] not in installed:
            installed[row[:3]] = install(row, python, tmp_path_factory.mktemp("install"))
        python = installed[row[:3]]
    answers = run_commands(python, tmp_path / "row", GPU if row.gpu else None)
    print_row(" | ".join(row[:3]), row.gpu, answers)
    # A GPU that TensorFlow cannot use is what the doctor is for.
    codes = {name: code for name, (code, _) in answers.items() if name != "doctor" or not row.gpu}
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
