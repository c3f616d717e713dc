"""What envlock's pytest plugin costs a run that does not use it: CPU milliseconds, beside the import of pytest itself.

    python benchmarks/pytest_plugin.py [--rounds N]      # an interpreter with envlock and pytest

Each round is a fresh process that has imported pytest, as every run has when it loads its plugins. The asked figure is less
than a millisecond; `envlock.integrations` and the plugin are all that is imported.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MEASURE = """
import sys, time
start = time.process_time()
import pytest
middle = time.process_time()
import envlock.integrations.pytest
print(middle - start, time.process_time() - middle)
"""


def measure_once() -> tuple[float, float]:
    """Return the CPU milliseconds of `import pytest` and of the plugin's import after it."""
    argv = [sys.executable, "-c", MEASURE]
    environ = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    done = subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    pytest_seconds, plugin_seconds = map(float, done.stdout.split())
    return pytest_seconds * 1000, plugin_seconds * 1000


def main() -> None:
    """Measure, and print the medians and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    measure_once()  # writes the bytecode
    figures = [measure_once() for _ in range(rounds)]
    pytest_cost = statistics.median(figure[0] for figure in figures)
    plugin_cost = statistics.median(figure[1] for figure in figures)
    print(
        f"import pytest: {pytest_cost:.1f} ms, the plugin: {plugin_cost:.2f} ms, {plugin_cost / pytest_cost:.2%} of it"
    )


if __name__ == "__main__":
    main()
