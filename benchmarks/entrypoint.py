"""What the entrypoint of a built image costs at each start: medians of CPU time in milliseconds, from inside.

docker run --rm --network=none --entrypoint /opt/venv/bin/python \\
    -v "$PWD/benchmarks/entrypoint.py:/entrypoint.py:ro" IMAGE /entrypoint.py
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess

PYTHON = "/opt/venv/bin/python"
ENTRYPOINT = [PYTHON, "-B", "/opt/envlock/entrypoint.py", "true"]
ROWS: list[tuple[str, list[str], str, int]] = [
    ("python -c pass", [PYTHON, "-B", "-c", "pass"], "", 15),
    ("entrypoint", ENTRYPOINT, "", 15),
    ("entrypoint, ENVLOCK_MODE=deep", ENTRYPOINT, "deep", 5),
    ("import tensorflow", [PYTHON, "-c", "import tensorflow"], "", 5),
]


def seconds(command: list[str], mode: str) -> float:
    """Return the CPU time of a command and of its children."""
    environ = {**os.environ, **({"ENVLOCK_MODE": mode} if mode else {})}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environ, check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Print a line a command."""
    for name, command, mode, rounds in ROWS:
        seconds(command, mode)  # from the disk the first time
        found = [1000 * seconds(command, mode) for _ in range(rounds)]
        least, most = min(found), max(found)
        print(
            f"{name}: {statistics.median(found):.0f} ms ({least:.0f} to {most:.0f}, {rounds} rounds)"
        )


if __name__ == "__main__":
    main()
