"""The facts of another interpreter's environment, so that envlock need not be installed there.

Only the runtime half runs over there, from this installation's own folder: standard library, Python 3.8 or newer. The
folder leaves the import path before anything is looked at, so nothing of this environment is seen in that one.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import envlock
from envlock.runtime.capture import Snapshot
from envlock.runtime.errors import FactError, UsageError

TIMEOUT = 60  # seconds; a capture takes a fifth of one, plus the start of a slow disk's Python

_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from envlock.runtime.capture import snapshot
sys.path.remove(sys.argv[1])
sys.argv[1:] = []
found = snapshot()
import json
sys.stdout.buffer.write(json.dumps([found.facts, found.unavailable]).encode("ascii"))
"""


def snapshot_of(python: Path) -> Snapshot:
    """Return what the collectors find when the interpreter `python` runs them.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
        FactError: it did not answer, or not with facts.
    """
    command = [str(python), "-c", _PROGRAM, str(Path(envlock.__file__).parents[1])]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False)
    except OSError as error:
        hint = "name the interpreter of an environment, such as .venv/bin/python"
        raise UsageError(f"cannot run {python}: {error.strerror}", hint=hint) from None
    except subprocess.TimeoutExpired:
        raise FactError(f"{python} did not answer within {TIMEOUT} seconds") from None
    try:
        facts, unavailable = json.loads(done.stdout)
    except ValueError:
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise FactError(
            f"{python} gave no facts (exit code {done.returncode}): {last[:200]}",
            hint="envlock needs Python 3.8 or newer",
        ) from None
    return Snapshot(facts, unavailable)
