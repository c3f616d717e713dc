"""One table: what each command costs beside what a user would take instead.

    python benchmarks/rivals.py [--env DIR] [--rounds N] [--json FILE]      # Linux, Python 3.11 or newer

CPU time (user + system, of a process and its children), medians of one run in which all take turns; see README.md. The
environment of run.py is looked at; programs that would change it (watermark, mlflow, repo2docker, hpccm, uv) have their
own beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from run import (
    CAPTURE,
    COLLECT_ENV,
    DOCTOR,
    INSPECT,
    PASS,
    ROOT,
    TENSORFLOW,
    BenchmarkError,
    Command,
    Environment,
    Meter,
    rotated,
    say,
    step,
    table,
)

REQUIREMENTS = ("watermark", "mlflow-skinny", "jupyter-repo2docker", "hpccm", "uv", "setuptools")
TRAIN = """
import tensorflow as tf


def train():
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = tf.random.normal((64, 4))
    return {"loss": model.fit(x, x[:, :1], epochs=2, verbose=0).history["loss"]}
"""
RECIPE = """Stage0 += baseimage(image="python:3.11.7-slim-bookworm")
Stage0 += pip(packages=["tensorflow-cpu==2.21.0"])
"""
WATERMARK = (
    "from watermark import watermark; print(watermark(python=True, machine=True, packages='numpy'))"
)
FILES = """
import sys
from importlib.metadata import distributions
for each in distributions(path=sys.argv[1:]):
    for file in each.files or ():
        if file.hash and file.suffix != ".pyc":
            print(file.locate(), end="\\0")
"""


class Task(NamedTuple):
    """What is done, by which command of ours, and by which of others."""

    name: str
    ours: str
    others: tuple[str, ...]


FREEZE, MARK, MLFLOW = "uv pip freeze", "watermark", "mlflow doctor"
SUMS, HPCCM, REPO2DOCKER = "sha256sum, of the same files", "hpccm", "repo2docker --no-build"
TWICE = "two runs of the training"
TASKS = (
    Task("record an environment", CAPTURE, (DOCTOR, COLLECT_ENV, INSPECT, FREEZE, MARK, MLFLOW)),
    Task("compare it with what was recorded", "envlock verify", (FREEZE, INSPECT)),
    Task("line 1 of a script", "assert_locked()", (TENSORFLOW,)),
    Task("compare every file", "envlock verify --deep", (SUMS,)),
    Task("write a Dockerfile", "envlock build --dry-run", (HPCCM, REPO2DOCKER)),
    Task("train twice and compare", "envlock repeat --runs 2", (TWICE,)),
    Task("find the first operation that differs", "envlock diverge --runs 2", (TWICE,)),
    Task("judge code", "envlock lint", (PASS,)),  # only envlock does it: what a start costs
)


def commands(environment: Environment, rivals: Path, folder: Path) -> list[Command]:
    """Return all that is measured, after writing what it reads."""
    from tests.image.plans import lock, without
    from tests.locks import encode

    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    (folder / "recipe.py").write_text(RECIPE, encoding="utf-8")
    (folder / "repo").mkdir()
    (folder / "repo" / "requirements.txt").write_text("tensorflow-cpu==2.21.0\n", encoding="utf-8")
    (folder / "built.lock").write_bytes(encode(without(lock(), "mine")))
    python, tool, others = environment.python, environment.program("envlock"), str(rivals / "bin")
    (site,) = environment.folder.glob("lib/python3*/site-packages")
    sums = f"{python} -c '{FILES}' {site} | xargs -0 -P {os.cpu_count()} sha256sum > sums"
    train = "import train; print(train.train())"
    return [
        Command(PASS, [python, "-c", "pass"]),
        Command(CAPTURE, [tool, "capture", "-o", "-"]),
        Command("envlock verify", [tool, "verify"]),
        Command("assert_locked()", [python, "-c", "import envlock; envlock.assert_locked()"]),
        Command("envlock verify --deep", judged(f"{tool} verify --deep")),
        Command("envlock build --dry-run", [tool, "build", "built.lock", "--dry-run"]),
        Command(
            "envlock repeat --runs 2",
            [tool, "repeat", "train.py:train", "--runs", "2", "--python", python],
        ),
        Command(
            "envlock diverge --runs 2",
            [tool, "diverge", "train.py:train", "--runs", "2", "--python", python],
        ),
        Command("envlock lint", [tool, "lint", "train.py"]),
        Command(TENSORFLOW, [python, "-c", TENSORFLOW]),
        Command(INSPECT, [python, "-m", "pip", "inspect"]),
        Command(COLLECT_ENV, [python, "-m", "torch.utils.collect_env"]),
        Command(DOCTOR, [environment.program("env-doctor"), "export", "-o", "env-doctor.json"]),
        Command(FREEZE, [f"{others}/uv", "pip", "freeze", "--python", python]),
        Command(MARK, [f"{others}/python", "-c", WATERMARK]),
        Command(MLFLOW, [f"{others}/mlflow", "doctor"]),
        Command(SUMS, ["sh", "-c", sums]),
        Command(HPCCM, [f"{others}/hpccm", "--recipe", "recipe.py"]),
        Command(REPO2DOCKER, [f"{others}/repo2docker", "--no-build", "--debug", "repo"]),
        Command(TWICE, ["sh", "-c", f"{python} -c '{train}' && {python} -c '{train}'"]),
    ]


def judged(line: str) -> list[str]:
    """Return a command that may say no: an environment may hold what no index has."""
    return ["sh", "-c", f"{line} || test $? = 1"]


def measure(todo: list[Command], meter: Meter, rounds: int) -> list[str]:
    """Run all, taking turns, after a turn that does not count; return the names of those that cannot run here."""
    absent = [command.name for command in todo if not runs(command, meter)]
    running = [command for command in todo if command.name not in absent]
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        for command in rotated(running, number):
            meter.measure(command)
    return absent


def runs(command: Command, meter: Meter) -> bool:
    """Return whether a command can be run here; why not is said."""
    try:
        meter.run(command)
    except BenchmarkError as error:
        say(f"left out: {error}")
        return False
    return True


def rows(meter: Meter) -> list[tuple[str, ...]]:
    """Return the table: milliseconds, and how many times ours the other one costs."""
    found: list[tuple[str, ...]] = [("task", "envlock", "ms", "instead", "ms", "ratio")]
    for task in TASKS:
        if task.ours not in meter.costs:
            continue
        ours = meter.median(task.ours)
        for other in task.others:
            if other in meter.costs:
                theirs = meter.median(other)
                found.append(
                    (
                        task.name,
                        task.ours,
                        f"{ours:.0f}",
                        other,
                        f"{theirs:.0f}",
                        f"{theirs / ours:.2f}",
                    )
                )
    return found


def main() -> int:
    """Return 0 when ours could all be measured."""
    parser = argparse.ArgumentParser(description="What envlock and others cost, in CPU time.")
    parser.add_argument(
        "--env", type=Path, default=ROOT / ".venvs" / "bench", help="the environment of run.py"
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="how often each runs (default: %(default)s)"
    )
    parser.add_argument(
        "--json", type=Path, help="also write the figures, every single one, to this file"
    )
    arguments = parser.parse_args()
    environment, rivals = (
        Environment(arguments.env.absolute()),
        arguments.env.absolute().with_name("bench-rivals"),
    )
    sys.path.insert(0, str(ROOT))
    try:
        environment.prepare()
        if not (rivals / "bin" / "repo2docker").exists():
            shutil.rmtree(rivals, ignore_errors=True)
            step([sys.executable, "-m", "venv", str(rivals)])
            step([str(rivals / "bin" / "python"), "-m", "pip", "--quiet", "install", *REQUIREMENTS])
        with tempfile.TemporaryDirectory() as name:
            meter = Meter(environment, Path(name))
            todo = commands(environment, rivals, Path(name))
            for lock in ("envlock.lock", "h.lock"):
                meter.run(
                    Command("a lock", [environment.program("envlock"), "capture", "-o", lock])
                )
            absent = measure(todo, meter, arguments.rounds)
    except BenchmarkError as error:
        say(f"error: {error}")
        return 1
    print("\n".join(table(rows(meter))))
    print(f"load {os.getloadavg()[0]:.0f}, {arguments.rounds} rounds")
    if arguments.json:
        arguments.json.write_text(json.dumps(meter.costs, indent=2) + "\n", encoding="utf-8")
    return int(any(task.ours in absent for task in TASKS))


if __name__ == "__main__":
    sys.exit(main())
