"""What envlock costs, next to what a script pays anyway (`import tensorflow`) and to what others cost.

    python benchmarks/run.py [--env DIR] [--rounds N] [--json FILE] [--history FILE]

`--history` adds the medians to a file of CSV, a row a figure, which has those of earlier releases (history.csv).
The first run makes its own environment; see README.md beside this file. CPU time (user + system, of a process and its
children) is measured, never wall time; the commands take turns, so that a busy machine is busy for all of them.
The exit code says whether everything could be measured, not whether the targets are met.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

TORCH = os.environ.get("ENVLOCK_BENCH_TORCH") or "torch==2.13.0"
"""Any requirement of pip: the CPU build is enough, but its wheel on PyPI for Linux is the CUDA build."""
RIVALS = ("env-doctor", TORCH, "pip")
COMPANY = ("jupyter-server", "sphinx")
"""To get over 100 distributions. Nothing that Keras imports when it finds it, as it does pandas, scikit-learn,
Matplotlib and IPython: with those, `import tensorflow` costs 1.7 times as much, and envlock only looks cheaper."""
REQUIREMENTS = ("tensorflow-cpu", *RIVALS, *COMPANY)
DISTRIBUTIONS = 100
"""The fewest that the figures count for."""
MARKER = "envlock-bench.json"
"""In the environment: says that this program made it, and what it has put in."""

CHEAP_TURNS = 5
"""How often a round measures what takes milliseconds."""

IN_PROCESS = """
from time import process_time_ns as now
start = now()
import envlock
envlock.assert_locked()
first = now()
envlock.assert_locked()
print(first - start, now() - first)
"""

MANY = 400
"""Distributions of the second size: a large notebook image."""
BARE = " (no bytecode)"
CROWDED = f" ({MANY} distributions)"

FIRST_CALL, SECOND_CALL = (
    "in process: import envlock and assert_locked()",
    "in process: assert_locked() again",
)


class BenchmarkError(Exception):
    """Something that is to be measured, or to be measured with, does not work."""


@dataclass(frozen=True)
class Command:
    """A measured command line, under the name it has in the tables."""

    name: str
    line: list[str]
    cheap: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """One promise: a measured value, and the bound that it must keep."""

    name: str
    value: float
    unit: str
    bound: float | None = None
    at_most: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the measured value keeps the bound; None without a bound."""
        if self.bound is None:
            return None
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def cells(self) -> tuple[str, str, str, str]:
        """Return name, value, bound and verdict as they are printed."""
        bound = (
            "none"
            if self.bound is None
            else f"{'<=' if self.at_most else '>='} {self.bound:g} {self.unit}"
        )
        verdict = {None: "-", True: "met", False: "NOT met"}[self.met]
        return self.name, f"{self.value:.2f} {self.unit}", bound, verdict


class Environment:
    """The virtual environment that everything is measured in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = str(folder / "bin" / "python")
        self.marker = folder / MARKER

    def program(self, name: str) -> str:
        """Return the path of a command of the environment."""
        return str(self.folder / "bin" / name)

    def prepare(self) -> None:
        """Make the environment, or bring it up to date with this checkout.

        Raises:
            BenchmarkError: the folder is somebody else's, or pip fails.
        """
        if not self.marker.is_file():
            if self.folder.exists() and any(self.folder.iterdir()):
                raise BenchmarkError(
                    f"{self.folder} is there and was not made by this program; name another --env"
                )
            say(f"making an environment in {self.folder} (about 3 GB)")
            self.folder.mkdir(parents=True, exist_ok=True)
            self._record({})  # first, so that an interrupted run is taken up again
        if not Path(self.python).exists():
            step([sys.executable, "-m", "venv", str(self.folder)])
        made = json.loads(self.marker.read_text(encoding="utf-8"))
        wanted = {"requirements": list(REQUIREMENTS), "source": source_digest()}
        if made.get("requirements") != wanted["requirements"]:
            say(f"installing {', '.join(REQUIREMENTS)} (minutes)")
            self._pip("install", "--upgrade", *REQUIREMENTS)
        if made.get("source") != wanted["source"]:
            say("building envlock's wheel from this checkout and installing it")
            self._install_envlock()
        self._record(wanted)

    def without_bytecode(self, folder: Path) -> Environment:
        """Return a copy as uv leaves it: the same files, by hard links, without those that Python has compiled.

        The standard library keeps its own, as in an image.
        """
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(self.folder, folder, symlinks=True, ignore=ignored, copy_function=os.link)
        return Environment(folder)

    def _install_envlock(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self._pip("wheel", "--no-deps", "--wheel-dir", folder, str(ROOT))
            (wheel,) = Path(folder).glob("*.whl")
            self._pip(
                "install", "--force-reinstall", "--no-deps", str(wheel)
            )  # its version may be the old one
            self._pip("install", f"{wheel}[cli]")  # what it needs

    def _pip(self, *arguments: str) -> None:
        step([self.python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments])

    def _record(self, state: dict[str, Any]) -> None:
        self.marker.write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")


class Meter:
    """Runs commands in one folder and keeps what each cost."""

    def __init__(self, environment: Environment, folder: Path) -> None:
        self.folder = folder
        self.costs: dict[str, list[float]] = {}
        self._environ = child_environ(environment)

    def measure(self, command: Command) -> None:
        """Run a command and record the CPU milliseconds of the command and its children."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.run(command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        self.add(command.name, seconds * 1e3)

    def measure_in_process(self, command: Command) -> None:
        """Run a command that prints nanoseconds of CPU time itself."""
        first, second = self.run(command).split()
        self.add(FIRST_CALL, int(first) / 1e6)
        self.add(SECOND_CALL, int(second) / 1e6)

    def run(self, command: Command) -> str:
        """Return what a command prints.

        Raises:
            BenchmarkError: it fails.
        """
        done = subprocess.run(
            command.line,
            cwd=self.folder,
            env={**self._environ, **command.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            last = "\n".join(done.stderr.splitlines()[-15:])
            raise BenchmarkError(f"`{command.name}` exits {done.returncode}:\n{last}")
        return done.stdout

    def add(self, name: str, milliseconds: float) -> None:
        """Keep one figure."""
        self.costs.setdefault(name, []).append(milliseconds)

    def median(self, name: str) -> float:
        """Return the median of what was kept under a name, in milliseconds."""
        return statistics.median(self.costs[name])


PASS, IMPORT, ASSERT = "python -c pass", "import envlock", "import envlock; envlock.assert_locked()"
TENSORFLOW, CAPTURE, VERIFY = (
    "import tensorflow",
    "envlock capture -o -",
    "envlock verify --python PYTHON",
)
DOCTOR, COLLECT_ENV, INSPECT = (
    "env-doctor export -o FILE",
    "python -m torch.utils.collect_env",
    "python -m pip inspect",
)


def crowd(environment: Environment, folder: Path, present: int) -> None:
    """Write metadata of as many more distributions as it takes to have MANY, copied from those of the environment."""
    (site,) = environment.folder.glob("lib/python3*/site-packages")
    originals = sorted(
        each for each in site.glob("*.dist-info") if not each.name.startswith("tf_envlock")
    )
    for number in range(MANY - present):
        original = originals[number % len(originals)]
        copy = folder / f"copy_{number}-1.0.dist-info"
        copy.mkdir(parents=True)
        for name in ("METADATA", "WHEEL", "INSTALLER"):
            if (original / name).exists():
                shutil.copy(original / name, copy / name)


def varied(environment: Environment, bare: Environment, crowded: Path) -> list[Command]:
    """Return what is measured without bytecode, and among many distributions."""
    off, many = (
        {"PYTHONDONTWRITEBYTECODE": "1"},
        {"PYTHONPATH": str(crowded), "ENVLOCK_LOCK": "many.lock"},
    )
    tool = [bare.python, "-m", "envlock"]
    return [
        Command(ASSERT + BARE, [bare.python, "-c", ASSERT], cheap=True, environ=off),
        Command(CAPTURE + BARE, [*tool, "capture", "-o", "-"], cheap=True, environ=off),
        Command(
            VERIFY + BARE,
            [*tool, "verify", "--python", environment.python],
            cheap=True,
            environ=off,
        ),
        Command(TENSORFLOW + BARE, [bare.python, "-c", TENSORFLOW], environ=off),
        Command(INSPECT + BARE, [bare.python, "-m", "pip", "inspect"], environ=off),
        Command(ASSERT + CROWDED, [environment.python, "-c", ASSERT], cheap=True, environ=many),
    ]


def commands(environment: Environment) -> list[Command]:
    """Return what is measured as whole processes."""
    python = environment.python
    return [
        Command(PASS, [python, "-c", "pass"], cheap=True),
        Command(IMPORT, [python, "-c", IMPORT], cheap=True),
        Command(ASSERT, [python, "-c", ASSERT], cheap=True),
        Command(CAPTURE, [environment.program("envlock"), "capture", "-o", "-"], cheap=True),
        Command(VERIFY, [environment.program("envlock"), "verify", "--python", python], cheap=True),
        Command(TENSORFLOW, [python, "-c", TENSORFLOW]),
        Command(INSPECT, [python, "-m", "pip", "inspect"]),
        Command(COLLECT_ENV, [python, "-m", "torch.utils.collect_env"]),
        Command(DOCTOR, [environment.program("env-doctor"), "export", "-o", "env-doctor.json"]),
    ]


def measure(environment: Environment, meter: Meter, rounds: int, more: list[Command]) -> None:
    """Run every command `rounds` times, taking turns, after one turn that warms the caches and does not count."""
    todo = commands(environment) + more
    cheap, dear = (
        [command for command in todo if command.cheap],
        [command for command in todo if not command.cheap],
    )
    in_process = Command(FIRST_CALL, [environment.python, "-c", IN_PROCESS])
    say("one round to warm up")
    for command in todo:
        meter.run(command)
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        for command in rotated(dear, number):
            meter.measure(command)
        for turn in range(CHEAP_TURNS):
            for command in rotated(cheap, turn):
                meter.measure(command)
            meter.measure_in_process(in_process)


def rotated(todo: list[Command], by: int) -> list[Command]:
    """Return the commands beginning with another one each time: who comes first finds the caches colder."""
    at = by % len(todo)
    return todo[at:] + todo[:at]


def targets(meter: Meter) -> list[Target]:
    """Return every promise with what was measured for it; ratios are ratios of medians of this run."""
    plain, capture = meter.median(PASS), meter.median(CAPTURE)
    tensorflow = meter.median(TENSORFLOW) - plain
    asserted = meter.median(ASSERT)
    share, inside = (
        100 * (asserted - plain) / tensorflow,
        100 * meter.median(FIRST_CALL) / tensorflow,
    )
    crowded = 100 * (meter.median(ASSERT + CROWDED) - plain) / tensorflow
    share_of_bare = (
        100 * (meter.median(ASSERT + BARE) - plain) / (meter.median(TENSORFLOW + BARE) - plain)
    )
    bare = meter.median(INSPECT + BARE) / meter.median(CAPTURE + BARE)
    return [
        Target(
            "assert_locked(), of import tensorflow, both net of pass", share, "%", 0.5, at_most=True
        ),
        Target(
            "assert_locked(), whole process, against pass", asserted / plain, "x", 3, at_most=True
        ),
        Target("assert_locked() measured in process, of import tensorflow", inside, "%"),
        Target(f"the same among {MANY} distributions", crowded, "%", 0.5, at_most=True),
        Target("the same without bytecode on both sides", share_of_bare, "%", 0.5, at_most=True),
        Target(
            "envlock verify --python, in seconds",
            meter.median(VERIFY) / 1e3,
            "s",
            0.25,
            at_most=True,
        ),
        Target("pip inspect, against envlock capture, both without bytecode", bare, "x", 1),
        Target("import envlock, whole process, against pass", meter.median(IMPORT) / plain, "x"),
        Target(
            "env-doctor export, against envlock capture", meter.median(DOCTOR) / capture, "x", 15
        ),
        Target("collect_env, against envlock capture", meter.median(COLLECT_ENV) / capture, "x", 5),
        Target("pip inspect, against envlock capture", meter.median(INSPECT) / capture, "x", 1),
    ]


def describe(meter: Meter, lock: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Return what the figures depend on: versions and machine, from the lockfile of the
    environment.
    """
    facts = lock["facts"]
    packages = facts["packages"]
    names = ("tensorflow-cpu", "numpy", "env-doctor", "torch", "pip", "pydantic", "typer")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {
            "envlock": lock["created_by"].removeprefix("envlock "),
            "python": facts["python"]["version"],
            **{name: packages[name]["version"] for name in names},
        },
        "distributions": len(packages),
        "cpu": facts["cpu"]["model_name"] or platform.machine(),
        "cpus": facts["cpu"]["affinity_count"],
        "system": f"{facts['system']['os']} {facts['system']['os_version']}, Linux {facts['system']['kernel_release']}",
        "rounds": rounds,
        "lock_bytes": (meter.folder / "envlock.lock").stat().st_size,
    }


def report(about: dict[str, Any], meter: Meter, promises: list[Target]) -> Iterator[str]:
    """Yield the lines for people."""
    yield ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    yield f"{about['distributions']} distributions; lock of {about['lock_bytes']} bytes"
    yield f"{about['cpu']}, {about['cpus']} CPUs; {about['system']}; {about['date']}; {about['rounds']} rounds"
    yield ""
    header = ("CPU time, user + system", "median ms", "min", "max", "runs")
    yield from table([header, *cost_cells(meter)])
    yield ""
    yield from table([("", "measured", "target", ""), *(promise.cells() for promise in promises)])


def list_history(
    about: Mapping[str, Any], costs: Mapping[str, list[float]]
) -> Iterator[dict[str, str]]:
    """Yield the rows of a run for the file that has those of every release."""
    versions = about["versions"]
    for name, samples in costs.items():
        yield {
            "envlock": versions["envlock"],
            "day": str(about["date"])[:10],
            "cpu": about["cpu"],
            "python": versions["python"],
            "tensorflow": versions["tensorflow-cpu"],
            "distributions": str(about["distributions"]),
            "figure": name,
            "median_ms": f"{statistics.median(samples):.3f}",
            "runs": str(len(samples)),
        }


def add_to_history(file: Path, rows: list[dict[str, str]]) -> None:
    """Add rows at the end of the file, which stays as it is otherwise."""
    is_new = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def cost_cells(meter: Meter) -> Iterator[tuple[str, ...]]:
    """Yield a row for every command."""
    for name, samples in meter.costs.items():
        numbers = (statistics.median(samples), min(samples), max(samples))
        digits = 3 if name == SECOND_CALL else 1
        yield name, *(f"{number:.{digits}f}" for number in numbers), str(len(samples))


def table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield rows as lines, the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()


def child_environ(environment: Environment) -> dict[str, str]:
    """Return this process's variables as they are in an activated environment, without those that steer Python."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "ENVLOCK_"))
    }
    path = os.pathsep.join([environment.program(""), os.environ.get("PATH", os.defpath)])
    return {**kept, "PATH": path, "VIRTUAL_ENV": str(environment.folder)}


def source_digest() -> str:
    """Return a hash of everything that gets into the wheel, so that a changed checkout is installed again."""
    digest = hashlib.sha256()
    files = [
        file
        for file in (ROOT / "envlock").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    ]
    for file in sorted([ROOT / "pyproject.toml", *files]):
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def step(line: list[str]) -> None:
    """Run a command that prepares; what it says goes to stderr.

    Raises:
        BenchmarkError: it fails.
    """
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if subprocess.run(line, stdout=sys.stderr, env=environ, check=False).returncode:
        raise BenchmarkError(f"this failed: {' '.join(line)}")


def say(text: str) -> None:
    """Tell people what is going on."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def bench(folder: Path, rounds: int, output: Path | None, history: Path | None) -> None:
    """Make the environment, measure, and print.

    Raises:
        BenchmarkError: something could not be measured.
    """
    environment = Environment(folder)
    environment.prepare()
    with tempfile.TemporaryDirectory() as work:
        meter = Meter(environment, Path(work))
        meter.run(
            Command(
                "envlock capture", [environment.program("envlock"), "capture", "-o", "envlock.lock"]
            )
        )
        lock = json.loads((meter.folder / "envlock.lock").read_text(encoding="utf-8"))
        about = describe(meter, lock, rounds)
        if about["distributions"] < DISTRIBUTIONS:
            raise BenchmarkError(
                f"{folder} has {about['distributions']} distributions, fewer than {DISTRIBUTIONS}"
            )
        crowded = Path(work) / "crowd"
        crowd(environment, crowded, about["distributions"])
        many = {"PYTHONPATH": str(crowded)}
        meter.run(
            Command(
                CAPTURE,
                [environment.program("envlock"), "capture", "-o", "many.lock"],
                environ=many,
            )
        )
        bare = environment.without_bytecode(folder.with_name(folder.name + "-bare"))
        try:
            measure(environment, meter, rounds, varied(environment, bare, crowded))
        finally:
            shutil.rmtree(bare.folder)
        promises = targets(meter)
    if output is not None:
        rows = [{**asdict(promise), "met": promise.met} for promise in promises]
        document = {"about": about, "cpu_milliseconds": meter.costs, "targets": rows}
        output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if history is not None:
        add_to_history(history, list(list_history(about, meter.costs)))
    print("\n".join(report(about, meter, promises)))


def main() -> int:
    """Return 0 when everything could be measured, met or not."""
    parser = argparse.ArgumentParser(description="What envlock costs, in CPU time.")
    parser.add_argument(
        "--env",
        type=Path,
        default=ROOT / ".venvs" / "bench",
        help="its environment (made if missing)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=7,
        help="how often the dear commands run (default: %(default)s)",
    )
    parser.add_argument(
        "--json", type=Path, help="also write the figures, every single one, to this file"
    )
    parser.add_argument(
        "--history", type=Path, help="also add the medians to this file of CSV, as a release does"
    )
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    try:
        bench(arguments.env.absolute(), arguments.rounds, arguments.json, arguments.history)
    except BenchmarkError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
