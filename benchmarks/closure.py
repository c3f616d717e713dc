"""Compare what a program really imports with what `capture --for` says that it can import.

python benchmarks/closure.py PYTHON FOLDER PROGRAM [WORDS ...]

The program of a project in FOLDER runs with WORDS in the environment of PYTHON, and is interrupted after
ENVLOCK_BENCH_SECONDS (180). One line is printed: how many packages it has imported, how many are held and installed,
CPU seconds for finding them, how it ended, and what was imported and is not held. Exit 1: there is such a package.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from envlock.guest.launch import read
from envlock.guest.observer import SEEN
from envlock.packages.closure import find_imported_distributions
from envlock.packages.installation import collect_distributions, find_installation
from envlock.packages.observation import find_used


def observed(python: Path, folder: Path, words: list[str]) -> tuple[str, list[str]]:
    """Run a program; return how it ended, and what the observer noted."""
    with TemporaryDirectory() as notes:
        Path(notes, "sitecustomize.py").write_text(read("observer"), encoding="utf-8")
        path = os.pathsep.join(filter(None, [notes, os.environ.get("PYTHONPATH")]))
        child = subprocess.Popen(
            [python, *words], cwd=folder, env={**os.environ, "PYTHONPATH": path}, stdout=2
        )
        try:
            ending = (
                f"exit code {child.wait(float(os.environ.get('ENVLOCK_BENCH_SECONDS', '180')))}"
            )
        except subprocess.TimeoutExpired:
            ending = "interrupted"
            child.send_signal(signal.SIGINT)
            try:
                child.wait(60)
            except subprocess.TimeoutExpired:
                child.kill()
        return ending, Path(notes, SEEN).read_text(errors="surrogateescape").splitlines()


def main() -> int:
    """Print the line."""
    python, folder, *words = sys.argv[1:]
    place = find_installation(Path(python))
    before = time.process_time()
    held = find_imported_distributions(words[:1], Path(folder).resolve(), place)
    seconds = time.process_time() - before
    ending, lines = observed(Path(python).absolute(), Path(folder), words)
    found = find_used(lines, place)
    missing = sorted({*found} - {*held})
    counts = f"{len(found)} imported, {len(held)} held, {len(collect_distributions(place))} installed, {seconds:.2f} s"
    print(
        f"{Path(folder).name}/{words[0]}: {counts}, {ending}, missing: {', '.join(missing) or 'none'}"
    )
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
