"""Compute the canary on each node of a job: a launcher starts this as each rank, and one rank of
each node computes.

It runs in the interpreter of the environment, with TensorFlow and NumPy. Argument: JSON with

    mark          the beginning of every line of the answer
    folder, job   where the answer is written: the folder that all nodes share; null: print it
    ranks         the ranks that compute; the others end at once
    battery       the argument of the battery (envlock/guest/battery.py)
"""

from __future__ import annotations

import json
import os
import sys

from envlock.fleet.ranks import find_rank
from envlock.guest import battery


def main() -> None:
    """Compute the canary if this rank is one of those that should."""
    asked = json.loads(sys.argv[1])
    rank = find_rank(os.environ, "").rank
    if rank not in asked["ranks"]:
        return
    if asked["folder"] is not None:
        file = os.path.join(asked["folder"], asked["job"], f"bits-{rank}.txt")
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)
    sys.argv[1] = json.dumps({"mark": asked["mark"], **asked["battery"]})
    battery.main()
