"""How fast `envlock verify --deep` reads the files of an environment, against what hashes files otherwise.

    python benchmarks/deep.py PYTHON [--rounds N]      # Linux, with envlock's own dependencies

PYTHON is the interpreter of a large environment. All programs hash the same files, those that its RECORDs list with a
hash, on all visible processors, from the page cache (the first, uncounted turn warms it); they take turns, in another
order each time. `xargs -P` runs sha256sum and openssl on as many processors, the large files first.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from envlock.packages.file_verification import survey
from envlock.packages.installation import find_installation
from envlock.runtime.files.read_file import count_workers, get_expected_size

ROOT = Path(__file__).resolve().parents[1]
BATCH = "16"  # files a program is started for; fewer cost starts, more leave a processor idle at the end
FILES = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from envlock.packages.installation import find_installation
from envlock.runtime.files.verify_files import look
from envlock.packages.file_verification import survey
states, faults = look(survey(find_installation(Path(sys.argv[2]))))
assert not faults, faults
"""
WHOLE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from envlock.packages.installation import find_installation
from envlock.packages.file_verification import verify_files
from envlock.packages.file_verification import survey
python = Path(sys.argv[2])
found = verify_files(survey(find_installation(python)), python, {})
assert not [each for each in found if each.severity != "info"], found
"""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measure how fast files are verified.")
    parser.add_argument("python", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    wanted = [
        each for each in survey(find_installation(chosen.python)).list_requests() if each.algorithms
    ]
    wanted.sort(key=get_expected_size, reverse=True)
    size = sum(map(get_expected_size, wanted))
    with tempfile.NamedTemporaryFile() as names:
        names.write(b"".join(os.fsencode(each.path) + b"\0" for each in wanted))
        names.flush()
        xargs = ["xargs", "-0", "-a", names.name, "-n", BATCH, "-P", str(count_workers())]
        envlock = [sys.executable, "-c"]
        commands = {
            "`sha256sum`, by `xargs -P`": [*xargs, "sha256sum"],
            "`openssl dgst -sha256 -r`, by `xargs -P`": [
                *xargs,
                "openssl",
                "dgst",
                "-sha256",
                "-r",
            ],
            "envlock, files against RECORDs": [*envlock, FILES, str(ROOT), str(chosen.python)],
            "envlock, with bytecode and all else": [*envlock, WHOLE, str(ROOT), str(chosen.python)],
        }
        memory = {name: peak(command) for name, command in commands.items()}
        times = measure(commands, chosen.rounds)
    print(
        f"Python {platform.python_version()}, {count_workers()} processors, {chosen.rounds} rounds;"
    )
    print(f"{len(wanted):,} files with a hash, {size / 1e9:.2f} GB\n")
    print(
        "Medians; throughput against sha256sum by wall time and by CPU time; memory of all processes together.\n"
    )
    print("| | wall s | min | max | GB/s | of sha256sum | CPU s | of sha256sum | memory, MB |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    medians = {
        name: tuple(map(statistics.median, zip(*rows, strict=True))) for name, rows in times.items()
    }
    first = next(iter(medians.values()))
    for name, (wall, cpu) in medians.items():
        walls = [row[0] for row in times[name]]
        by_wall = f"{wall:.2f} | {min(walls):.2f} | {max(walls):.2f} | {size / wall / 1e9:.2f} | {first[0] / wall:.0%}"
        print(f"| {name} | {by_wall} | {cpu:.2f} | {first[1] / cpu:.0%} | {memory[name]:.0f} |")


def measure(commands: dict[str, list[str]], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Return (wall, CPU) in seconds of each command, with its children; all of them run once a round."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name in random.sample(sorted(commands), len(commands)):
            begin, before = time.perf_counter(), _cpu()
            subprocess.run(commands[name], check=True, stdout=subprocess.DEVNULL)
            times[name].append((time.perf_counter() - begin, _cpu() - before))
    return times


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def peak(command: list[str]) -> float:
    """Return the most memory in MB that a command and its children had together, looked at 50 times a second."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most = 0.0
    done = threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.02):
            most = max(most, sum(map(_share, _family(child.pid))) / 1000)

    watcher = threading.Thread(target=watch)
    watcher.start()
    if child.wait():
        raise SystemExit(f"{command[0]} failed")
    done.set()
    watcher.join()
    return most


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        threads = [int(name) for name in os.listdir(f"/proc/{pid}/task") if int(name) != pid]  # noqa: PTH208
        for thread in threads:  # a child belongs to the thread that started it
            children += (
                Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii").split()
            )
    except OSError:
        return [pid]
    return [pid, *(one for child in children for one in _family(int(child)))]


def _share(pid: int) -> int:
    """Return the KB of a process, what it shares divided among those that share it."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


if __name__ == "__main__":
    main()
