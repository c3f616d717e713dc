"""Started by a launcher as each rank of a job: one rank of each node computes the canary there, into a file.

Runs in the interpreter of the environment, with TensorFlow and NumPy. Argument: JSON with

    mark          what to put before every line of the answer
    folder, job   where the answer is written: the folder that all nodes share; null: it is printed
    ranks         those that compute; the others end
    battery       what the battery is asked (envlock/guest/battery.py)
"""

from __future__ import annotations

import json
import os
import sys

from envlock.fleet.ranks import rank_of
from envlock.guest import battery


def main() -> None:
    """Compute the canary, where this rank is one of those."""
    asked = json.loads(sys.argv[1])
    rank = rank_of(os.environ, "").rank
    if rank not in asked["ranks"]:
        return
    if asked["folder"] is not None:
        file = os.path.join(asked["folder"], asked["job"], f"bits-{rank}.txt")
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)
    sys.argv[1] = json.dumps({"mark": asked["mark"], **asked["battery"]})
    battery.main()
