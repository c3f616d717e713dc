"""A job: `program.py files`, or `program.py mpi`, which imports mpi4py.

Each rank writes `began-RANK` once `assert_fleet()` has let it go on.
"""

import os
import sys
import time
from pathlib import Path

if sys.argv[1] == "mpi":
    from mpi4py import MPI  # type: ignore[import-not-found] # noqa: F401

import envlock

rank = next(os.environ[name] for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID") if name in os.environ)
start = time.monotonic()
try:
    envlock.assert_fleet(timeout=float(os.environ.get("FLEET_TIMEOUT", "60")))
except envlock.EnvironmentMismatch as error:
    seconds = time.monotonic() - start
    whole = Path(f".refused-{rank}")  # a launcher may kill a rank while it writes, as another one has ended
    whole.write_text(f"{error.exit_code} {seconds:.3f} {error}", encoding="utf-8")
    whole.rename(whole.name[1:])
    sys.exit(error.exit_code)
Path(f"began-{rank}").write_text(str(time.time()), encoding="utf-8")
