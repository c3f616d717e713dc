"""torchrun as far as its processes see it: the variables that torchrun of PyTorch 2.14.1 sets, and its restarts.

The wheel of PyTorch needs 3 GB of CUDA libraries to be imported. What it sets was printed by
`torchrun --standalone --nproc-per-node 1 --no-python env` on 2026-11-25; docs/guides/fleet/torchrun.md was run with it then.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import uuid


def start(command: list[str], number: int, job: str, restart: int, most: int) -> int:
    """Run a command as each of so many processes, and return how many have failed."""
    shared = {
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "LOCAL_WORLD_SIZE": str(number),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29500",
        "OMP_NUM_THREADS": "1",
        "ROLE_NAME": "default",
        "ROLE_WORLD_SIZE": str(number),
        "TORCHELASTIC_MAX_RESTARTS": str(most),
        "TORCHELASTIC_RESTART_COUNT": str(restart),
        "TORCHELASTIC_RUN_ID": job,
        "WORLD_SIZE": str(number),
    }
    started = []
    for rank in range(number):
        own = {"LOCAL_RANK": str(rank), "RANK": str(rank), "ROLE_RANK": str(rank)}
        started.append(subprocess.Popen(command, env={**os.environ, **shared, **own}))
    return sum(each.wait() != 0 for each in started)


def main() -> int:
    """Start the processes, and again while one fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--standalone", action="store_true", required=True)
    parser.add_argument("--nproc-per-node", type=int, required=True)
    parser.add_argument("--max-restarts", type=int, default=0)
    parser.add_argument("--no-python", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    command = asked.command
    if not asked.no_python:
        command = [sys.executable, "-u", *command]
    job = str(uuid.uuid4())
    for restart in range(asked.max_restarts + 1):
        if not start(command, asked.nproc_per_node, job, restart, asked.max_restarts):
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
