"""How commands grow: CPU time with 10 to 5,000 packages and with 1 to 64 GPUs, and a chart of it.

    python benchmarks/growth.py [--rounds N] [--svg FILE]      # Linux, from a checkout, with the tools of `make`

Packages are metadata folders in the environment of another interpreter, each requiring the next; the linter gets
as many modules. GPUs are a profile of the tests, of which there are as many as asked for, answered by the fake NVML
in this process: asking and making facts of the answer is measured, not the child process.
Each figure is the least of the rounds: other work only adds. Exit 1: something grows faster than linearly.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
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
STEEPEST = 1.35
"""The exponent that still counts as linear: caches that are too small bend a straight line; a square is 2."""

Costs = dict[str, dict[int, float]]
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
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}", encoding="utf-8")
        (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", encoding="utf-8")
        (info / "INSTALLER").write_text("pip\n", encoding="utf-8")
        (info / "RECORD").write_text(f"{info.name}/METADATA,,\n{info.name}/RECORD,,\n", encoding="utf-8")
        code = "import random\n\n\ndef draw(seed):\n    random.seed(seed)\n    return random.random()\n"
        (folder / "code" / f"{name}.py").write_text(code, encoding="utf-8")
    (folder / "pyproject.toml").write_text("[tool.envlock]\n", encoding="utf-8")
    return folder / "env" / "bin" / "python"


def commands(python: Path) -> dict[str, list[str]]:
    """Return the command lines that are measured, by the name in the chart."""
    tool, lock, other = [sys.executable, "-m", "envlock"], "envlock.lock", ["--python", str(python)]
    return {
        "capture": [*tool, "capture", "-o", "-", *other],
        "verify": [*tool, "verify", lock, *other],
        "assert_locked()": [str(python), "-c", ASSERT],
        "show": [*tool, "show", lock, "--format", "json"],
        "diff": [*tool, "diff", lock, lock],
        "doctor": [*tool, "doctor", *other],
        "policy": [*tool, "policy", lock],
        "lint": [*tool, "lint", "code"],
    }


def of_packages(rounds: int) -> Iterator[tuple[str, int, float]]:
    """Yield the command, the number of packages and the least CPU seconds of it and its children."""
    for count in PACKAGES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            python = environment(folder, count)
            lines = commands(python)
            bare = {"PATH": os.environ["PATH"], "HOME": name}
            environ = {**bare, "PYTHONPATH": str(ROOT)}
            capture = [*lines["capture"][:4], "-o", "envlock.lock", "--python", str(python)]
            subprocess.run(capture, cwd=folder, env=environ, check=True, capture_output=True)
            costs: dict[str, list[float]] = {command: [] for command in lines}
            for _ in range(rounds):
                for command, line in lines.items():
                    here = {
                        key: value for key, value in environ.items() if key != "PYTHONPATH" or line[0] != str(python)
                    }
                    costs[command].append(_cpu(line, folder, here))
            yield from ((command, count, min(found)) for command, found in costs.items())


def _cpu(line: list[str], folder: Path, environ: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(line, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise SystemExit(f"bench: error: {' '.join(line)} exits {done.returncode}:\n{done.stderr[-2000:]}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def of_gpus(rounds: int) -> Iterator[tuple[str, int, float]]:
    """Yield "GPU facts", the number of GPUs and the least CPU seconds in this process."""
    for count in GPUS:
        many = deepcopy(profile("h100-80gb-hbm3__535__eight"))
        first = many["devices"][0]
        many["devices"] = [{**first, "uuid": f"{first['uuid'][:-4]}{number:04}"} for number in range(count)]

        def collect(many: Profile = many, count: int = count) -> None:
            found = devices.tree({**replay.capture(many), "library_version": None, "binding": {}}, wsl2=False)
            assert len(found["devices"]) == count, found

        yield "GPU facts", count, min(_own(collect) for _ in range(rounds * 3))


def _own(call: Callable[[], None]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def exponent(costs: dict[int, float]) -> float:
    """Return the power of the size that the cost above that of the smallest size grows with; 1 is linear.

    A growth of less than a tenth is not told from noise, so as much is granted to the second largest size.
    """
    smallest, *_, large, largest = sorted(costs)
    noise = costs[smallest] / 10
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
            axis.plot(list(found), [1000 * cost for cost in found.values()], marker="o", markersize=3, label=name)
        axis.set(xscale="log", yscale="log", xlabel=what, ylabel="CPU time, ms")
        axis.set_xticks(
            list(next(iter(costs.values()))), [f"{size:,}" for size in next(iter(costs.values()))], minor=False
        )
        axis.grid(visible=True, which="major", linewidth=0.3)
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(file, format="svg", metadata={"Date": None})


def table(costs: Costs) -> Iterator[str]:
    """Yield a table of Markdown: a row a command, CPU milliseconds for each size, and the exponent."""
    sizes = sorted(next(iter(costs.values())))
    yield f"| CPU ms | {' | '.join(f'{size:,}' for size in sizes)} | exponent |"
    yield "|---|" + "--:|" * (len(sizes) + 1)
    for name, found in costs.items():
        yield f"| {name} | {' | '.join(f'{1000 * found[size]:.0f}' for size in sizes)} | {exponent(found):.2f} |"


def main() -> int:
    """Measure, print the tables and draw the chart."""
    parser = argparse.ArgumentParser(description="How envlock's commands grow, in CPU time.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run (default: %(default)s)")
    parser.add_argument("--svg", type=Path, help="draw a chart into this file")
    parser.add_argument("--json", type=Path, help="also write the figures into this file")
    arguments = parser.parse_args()
    found: list[Costs] = []
    for measured in (of_packages, of_gpus):
        costs: Costs = {}
        for name, size, cost in measured(arguments.rounds):
            costs.setdefault(name, {})[size] = cost
        found.append(costs)
        print("\n".join(table(costs)), end="\n\n")
    packages, gpus = found
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if arguments.svg:
        draw(packages, gpus, arguments.svg)
    steep = [name for name, cost in {**packages, **gpus}.items() if exponent(cost) > STEEPEST]
    print(f"faster than linearly: {', '.join(steep) or 'nothing'}; load {os.getloadavg()[0]:.0f}")
    return bool(steep)


if __name__ == "__main__":
    sys.exit(main())
