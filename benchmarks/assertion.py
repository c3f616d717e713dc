"""What line 1 of a script costs: `assert_locked()` beside `import tensorflow`, in turns with another
checkout.

    python benchmarks/assertion.py PYTHON [--against FOLDER] [--rounds N] [--distributions N ...]

PYTHON is the interpreter of an environment with TensorFlow, without envlock, and with what its
command line needs. Distributions beyond those that it has are metadata folders on PYTHONPATH. For
each number of them, each checkout captures a lockfile of its own; then fresh processes measure the
CPU time from before envlock is imported to after a match. The least and the median of the rounds are
printed, and which share of the median import of TensorFlow the median is. Exit code 1: more than
0.5 %.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 0.5
"""Percent of the import of TensorFlow."""
ASSERT = """
import time
begin = time.process_time()
import envlock
report = envlock.assert_locked()
end = time.process_time()
assert report is not None and report.match and not report.findings
print(end - begin)
"""
IMPORT = """
import time
begin = time.process_time()
import tensorflow
print(time.process_time() - begin)
"""
COUNT = """
from importlib.metadata import distributions
print(len({each.metadata["Name"] for each in distributions()}))
"""


class Environment:
    """An interpreter with a number of distributions, and checkouts of envlock to run in it."""

    def __init__(self, python: Path, folder: Path, distributions: int) -> None:
        self.python = python.absolute()  # not resolved: a link is what makes it an environment
        self.folder = folder
        self.extra = folder / "extra"
        self.extra.mkdir(parents=True)
        for number in range(distributions - int(self.run(COUNT, None))):
            info = self.extra / f"made_{number}-1.0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: made-{number}\nVersion: 1.0\n"
            )
            (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
            (info / "INSTALLER").write_text("pip\n")
            (info / "RECORD").write_text("")

    def run(self, code: str, checkout: Path | None) -> str:
        """Return what code prints."""
        return self.start(["-c", code], checkout)

    def capture(self, checkout: Path) -> None:
        """Write the lockfile of a checkout."""
        self.place(checkout).mkdir()
        self.start(["-m", "envlock", "capture", "-q"], checkout)

    def place(self, checkout: Path | None) -> Path:
        """Return the folder of a checkout's lockfile."""
        if checkout is None:
            return self.folder
        return self.folder / str(abs(hash(checkout)))

    def start(self, words: list[str], checkout: Path | None) -> str:
        """Return what the interpreter prints."""
        path = [str(self.extra)]
        if checkout is not None:
            path.insert(0, str(checkout))
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PYTHONPATH": os.pathsep.join(path),
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        done = subprocess.run(
            [self.python, *words],
            cwd=self.place(checkout),
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("python", type=Path)
    parser.add_argument("--against", type=Path, help="another checkout, measured in turns")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--distributions", type=int, nargs="+", default=[140, 280])
    options = parser.parse_args()
    checkouts = [ROOT]
    if options.against is not None:
        checkouts.append(options.against.resolve())
    is_dear = False
    for number in options.distributions:
        with tempfile.TemporaryDirectory() as folder:
            environment = Environment(options.python, Path(folder) / "environment", number)
            imports = [float(environment.run(IMPORT, None)) for _ in range(5)]
            for checkout in checkouts:
                environment.capture(checkout)
            found: dict[Path, list[float]] = {checkout: [] for checkout in checkouts}
            for _ in range(options.rounds):
                for checkout in checkouts:
                    found[checkout].append(float(environment.run(ASSERT, checkout)))
        whole = statistics.median(imports)
        print(f"{number} distributions; import tensorflow: {whole:.2f} s of CPU")
        for checkout, seconds in found.items():
            median = statistics.median(seconds)
            share = 100 * median / whole
            name = "against" if checkout != ROOT else "this"
            print(
                f"  {name:8} {min(seconds) * 1e3:6.1f} ms least, {median * 1e3:6.1f} ms median: {share:.2f} %"
            )
            is_dear = is_dear or (checkout == ROOT and share > LIMIT)
    return int(is_dear)


if __name__ == "__main__":
    sys.exit(main())
