"""What asking NVML costs: medians in milliseconds, with the stand-in library, beside a bare interpreter.

Run it from a checkout: python benchmarks/nvml.py
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from envlock.runtime.collectors import gpu
from envlock.runtime.gpu import hostfs, probe
from envlock.runtime.host import Host
from tests.fakes.fake_nvml import profile
from tests.fakes.replay import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 25


def median(call: Callable[[], object]) -> float:
    """Return the median of `ROUNDS` calls, in milliseconds, after one that warms up."""
    call()
    costs = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        costs.append((time.perf_counter() - start) * 1000)
    return statistics.median(costs)


def spawn(*arguments: str) -> None:
    """Run this interpreter and wait."""
    command = [sys.executable, *arguments]
    os.waitpid(os.posix_spawn(command[0], command, os.environ), 0)


def main() -> None:
    """Print the table."""
    rows = {"python -I -S -c pass": median(lambda: spawn("-I", "-S", "-c", "pass"))}
    here = Host()
    rows["this machine: does anything hint at a GPU"] = median(lambda: hostfs.has_gpu_hint(here))
    for name in ("t4__515__whole", "h100-80gb-hbm3__535__eight", "h200__590__mig"):
        with tempfile.TemporaryDirectory() as folder:
            machine = Machine(Path(folder), profile(name))
            rows[f"{name}: child"] = median(lambda machine=machine: probe.ask(machine.host(), 20))  # type: ignore[misc]
            rows[f"{name}: collector"] = median(lambda machine=machine: gpu.collect(machine.host()))  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(
            Path(folder), profile("t4__515__whole"), faults="hang:nvmlInitWithFlags=60"
        )
        start = time.perf_counter()
        probe.ask(machine.host(), 1.0)
        rows["a hang with a limit of 1000 ms"] = (time.perf_counter() - start) * 1000
    for what, cost in rows.items():
        print(f"{cost:9.2f}  {what}")


if __name__ == "__main__":
    main()
