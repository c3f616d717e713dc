"""How commands grow: calls and CPU time with 10 to 5,000 packages and with 1 to 64 GPUs, and a
chart.

    python benchmarks/growth.py [--rounds N] [--svg FILE]      # Linux, from a checkout, with the
    tools of `make`

Packages are metadata folders in the environment of another interpreter, each requiring the next;
the linter gets as many modules. GPUs are a profile of the tests, of which there are as many as
asked for, answered by the fake NVML in this process: asking and making facts of the answer is
measured, not the child process.

Calls are those of Python and C functions in a command and its children, as `sys.setprofile` sees
them: the same in every run, whatever else the machine does, so that a straight line can be
distinguished from a bent one. What grows within one call of C (a search in a list, a long text that is copied)
they do not show; for that there is CPU time, the least of the rounds. Exit 1: something grows
faster than linearly.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from envlock.runtime.gpu import devices
from tests.fakes import replay
from tests.fakes.fake_nvml import Profile, profile

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (10, 100, 1_000, 5_000)
GPUS = (1, 8, 64)
STEEPEST = {"calls": 1.02, "CPU time": 1.5}
"""The exponents that still count as linear. Other work, and caches that are too small, bend CPU time; a square is 2."""
NOISE = {"calls": 0.0, "CPU time": 0.1}
"""The growth that is not told from noise, as a share of the cost at the smallest size."""

Costs = dict[str, dict[int, float]]
Measured = Iterator[tuple[str, int, int, float]]
"""A command, a size, the calls and the least CPU seconds."""
COUNTER = """
import atexit, os, sys, threading

count = [0]

def note(frame, event, argument):
    if event == "call" or event == "c_call":
        count[0] += 1

def tell():
    sys.setprofile(None)
    with open(os.path.join(os.environ["GROWTH_CALLS"], str(os.getpid())), "w") as file:
        file.write(str(count[0]))

atexit.register(tell)
threading.setprofile(note)
sys.setprofile(note)
"""
"""What every interpreter runs first, as `sitecustomize`."""
ASSERT = f"import sys; sys.path.append({str(ROOT)!r}); import envlock; envlock.assert_locked()"


def environment(folder: Path, count: int) -> Path:
    """Make an environment with as many distributions, and as many modules beside it; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    (site,) = (folder / "env").glob("lib/python3*/site-packages")
    (folder / "code").mkdir()
    for number in range(count):
        name, info = f"package_{number}", site / f"package_{number}-1.0.dist-info"
        info.mkdir()
        needs = f"Requires-Dist: package_{number + 1}>=1\n" if number + 1 < count else ""
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}", encoding="utf-8"
        )
        (info / "WHEEL").write_text(
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", encoding="utf-8"
        )
        (info / "INSTALLER").write_text("pip\n", encoding="utf-8")
        (info / "RECORD").write_text(
            f"{info.name}/METADATA,,\n{info.name}/RECORD,,\n", encoding="utf-8"
        )
        code = "import random\n\n\ndef draw(seed):\n    random.seed(seed)\n    return random.random()\n"
        (folder / "code" / f"{name}.py").write_text(code, encoding="utf-8")
    (folder / "pyproject.toml").write_text("[tool.envlock]\n", encoding="utf-8")
    return folder / "env" / "bin" / "python"


def commands(python: Path) -> dict[str, list[str]]:
    """Return the command lines that are measured, by the name in the chart."""
    tool, lock, other = [sys.executable, "-m", "envlock"], "envlock.lock", ["--python", str(python)]
    return {
        "capture": [*tool, "capture", "--without-tensorflow", "-o", "-", *other],
        "verify": [*tool, "verify", lock, *other],
        "assert_locked()": [str(python), "-c", ASSERT],
        "show": [*tool, "show", lock, "--format", "json"],
        "diff": [*tool, "diff", lock, lock],
        "doctor": [*tool, "doctor", *other],
        "explain": [*tool, "explain", "packages.*", *other],
        "export": [*tool, "export", lock, "--format", "cyclonedx"],
        "lint": [*tool, "lint", "code"],
    }


def of_packages(rounds: int) -> Measured:
    """Yield what each command and its children cost, by the number of packages."""
    for count in PACKAGES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            python = environment(folder, count)
            lines = commands(python)
            bare = {"PATH": os.environ["PATH"], "HOME": name}
            environ = {**bare, "PYTHONPATH": str(ROOT)}
            capture = [*lines["capture"][:5], "-o", "envlock.lock", "--python", str(python)]
            subprocess.run(capture, cwd=folder, env=environ, check=True, capture_output=True)
            costs: dict[str, list[float]] = {command: [] for command in lines}
            for _ in range(rounds):
                for command, line in lines.items():
                    here = {
                        key: value
                        for key, value in environ.items()
                        if key != "PYTHONPATH" or line[0] != str(python)
                    }
                    costs[command].append(_cpu(line, folder, here))
            for command, line in lines.items():
                plain = {
                    key: value
                    for key, value in environ.items()
                    if key != "PYTHONPATH" or line[0] != str(python)
                }
                yield command, count, _calls(line, folder, plain), min(costs[command])


def _calls(line: list[str], folder: Path, environ: dict[str, str]) -> int:
    """Return how many functions a command calls, with its children."""
    hook, told = folder / "hook", folder / "told"
    for each in (hook, told):
        each.mkdir(exist_ok=True)
    (hook / "sitecustomize.py").write_text(COUNTER, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(hook), environ.get("PYTHONPATH")]))
    _cpu(line, folder, {**environ, "PYTHONPATH": path, "GROWTH_CALLS": str(told)})
    found = [int(each.read_text(encoding="ascii")) for each in told.iterdir()]
    shutil.rmtree(told)
    return sum(found)


def _cpu(line: list[str], folder: Path, environ: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        line, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise SystemExit(
            f"bench: error: {' '.join(line)} exits {done.returncode}:\n{done.stderr[-2000:]}"
        )
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def of_gpus(rounds: int) -> Measured:
    """Yield what "GPU facts" costs in this process, by the number of GPUs."""
    for count in GPUS:
        many = deepcopy(profile("h100-80gb-hbm3__535__eight"))
        first = many["devices"][0]
        many["devices"] = [
            {**first, "uuid": f"{first['uuid'][:-4]}{number:04}"} for number in range(count)
        ]

        def collect(many: Profile = many, count: int = count) -> None:
            found = devices.convert_answer(
                {**replay.capture(many), "library_version": None, "binding": {}}, wsl2=False
            )
            assert len(found["devices"]) == count, found

        seconds = min(_own(collect) for _ in range(rounds * 3))
        yield "GPU facts", count, _counted(collect), seconds


def _counted(call: Callable[[], None]) -> int:
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def _own(call: Callable[[], None]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def exponent(costs: dict[int, float], share: float = NOISE["CPU time"]) -> float:
    """Return the power of the size that the cost above that of the smallest size grows with; 1 is linear.

    What may be noise is granted to the second largest size.
    """
    smallest, *_, large, largest = sorted(costs)
    noise = costs[smallest] * share
    more = costs[largest] - costs[smallest], max(costs[large] - costs[smallest], noise)
    if more[0] <= noise:
        return 0.0
    return math.log(more[0] / more[1]) / math.log((largest - smallest) / (large - smallest))


def draw(packages: Costs, gpus: Costs, file: Path) -> None:
    """Write the chart."""
    from matplotlib import pyplot, rcParams

    rcParams.update({"svg.hashsalt": "envlock", "font.size": 9})
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), width_ratios=(3, 1))
    for costs, axis, what in ((packages, axes[0], "packages"), (gpus, axes[1], "GPUs")):
        for name, found in costs.items():
            axis.plot(
                list(found),
                [1000 * cost for cost in found.values()],
                marker="o",
                markersize=3,
                label=name,
            )
        axis.set(xscale="log", yscale="log", xlabel=what, ylabel="CPU time, ms")
        axis.set_xticks(
            list(next(iter(costs.values()))),
            [f"{size:,}" for size in next(iter(costs.values()))],
            minor=False,
        )
        axis.grid(visible=True, which="major", linewidth=0.3)
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(file, format="svg", metadata={"Date": None})


def table(what: str, costs: Costs, share: float) -> Iterator[str]:
    """Yield a table of Markdown: a row a command, the costs for each size, and the exponent."""
    sizes = sorted(next(iter(costs.values())))
    yield f"| {what} | {' | '.join(f'{size:,}' for size in sizes)} | exponent |"
    yield "|---|" + "--:|" * (len(sizes) + 1)
    for name, found in costs.items():
        yield f"| {name} | {' | '.join(f'{found[size]:,.0f}' for size in sizes)} | {exponent(found, share):.2f} |"


def main() -> int:
    """Measure, print the tables and draw the chart."""
    parser = argparse.ArgumentParser(description="How envlock's commands grow, in CPU time.")
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often each is run (default: %(default)s)"
    )
    parser.add_argument("--svg", type=Path, help="draw a chart into this file")
    parser.add_argument("--json", type=Path, help="also write the figures into this file")
    arguments = parser.parse_args()
    found: list[tuple[Costs, Costs]] = []
    steep: list[str] = []
    for measured in (of_packages, of_gpus):
        calls: Costs = {}
        seconds: Costs = {}
        for name, size, count, cost in measured(arguments.rounds):
            calls.setdefault(name, {})[size], seconds.setdefault(name, {})[size] = count, cost
        found.append((calls, seconds))
        thousands = {
            name: {size: count / 1e3 for size, count in each.items()}
            for name, each in calls.items()
        }
        millis = {
            name: {size: 1e3 * cost for size, cost in each.items()}
            for name, each in seconds.items()
        }
        for what, costs in (("thousands of calls", thousands), ("CPU ms", millis)):
            share = NOISE["calls" if costs is thousands else "CPU time"]
            print("\n".join(table(what, costs, share)), end="\n\n")
        for what, costs in (("calls", calls), ("CPU time", seconds)):
            steep += [
                f"{name} ({what})"
                for name, each in costs.items()
                if exponent(each, NOISE[what]) > STEEPEST[what]
            ]
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if arguments.svg:
        draw(found[0][1], found[1][1], arguments.svg)
    print(f"faster than linearly: {', '.join(steep) or 'nothing'}; load {os.getloadavg()[0]:.0f}")
    return bool(steep)


if __name__ == "__main__":
    sys.exit(main())
