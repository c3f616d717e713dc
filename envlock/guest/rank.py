"""State the facts of a rank's environment: a launcher starts this program as each rank of a job, in
the interpreter of the job.

Argument: JSON with

    folder      the folder that all nodes share; null: print the statement and its facts
    job         the name of the job for a statement; null: as the launcher calls it
    lock        the path of the lockfile; null: the nearest one, if any
    policy      how strictly to compare; null: the lockfile's own
    settings    variables that set how strictly to compare, where the launcher has not passed them on
    command     null: write a statement and exit. Else wait for the verdict on all ranks, then become this command
    timeout     seconds to wait for that verdict
"""

from __future__ import annotations

import json
import os
import sys

from envlock.fleet.rank_process import become, inspect_to_report, write_statement
from envlock.fleet.ranks import find_rank
from envlock.runtime.errors import EnvlockError


def main() -> None:
    """Do what the argument requests; exit with the code of the answer."""
    asked = json.loads(sys.argv[1])
    for name, value in asked["settings"].items():
        os.environ.setdefault(name, value)
    try:
        if asked["command"] is not None:
            code = become(
                asked["command"],
                asked["folder"],
                asked["lock"],
                asked["policy"],
                asked["timeout"],
                job=asked["job"],
            )
            sys.exit(code)
        if asked["folder"] is not None:
            write_statement(asked["folder"], asked["lock"], asked["job"], asked["policy"])
        else:
            rank = find_rank(os.environ, os.uname().nodename)
            json.dump(inspect_to_report(rank, asked["lock"], asked["policy"]), sys.stdout)
    except EnvlockError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
