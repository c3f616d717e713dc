"""Started by a launcher as each rank of a job: one rank of each node computes the canary there, into a file.

Runs in the interpreter of the environment, with TensorFlow and NumPy. Argument: JSON with

    mark        what to put before every line of the answer
    folder      the folder of the job, which all nodes share
    ranks       those that compute; the others end
    battery     what the battery is asked (envlock/guest/battery.py)
"""

from __future__ import annotations

import json
import os
import sys

from envlock.guest import battery
from envlock.runtime.fleet.ranks import rank_of


def main() -> None:
    """Compute the canary, where this rank is one of those."""
    asked = json.loads(sys.argv[1])
    rank = rank_of(os.environ, "").rank
    if rank not in asked["ranks"]:
        return
    answers = os.open(os.path.join(asked["folder"], f"bits-{rank}.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(answers, 1)
    sys.argv[1] = json.dumps({"mark": asked["mark"], **asked["battery"]})
    battery.main()
