"""The facts of another interpreter's environment, so that envlock need not be installed there.

Only the runtime half runs over there, from this installation's own folder: standard library, Python 3.8 or newer. That
folder never enters the import path, so nothing of this environment is seen in that one, and no other module called
`envlock`, nor a file in the current folder, stands in for what we need.
"""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import envlock
from envlock.runtime.capture import Snapshot
from envlock.runtime.errors import FactError, UsageError

TIMEOUT = 60  # seconds; a capture takes a fifth of one, plus the start of a slow disk's Python

BORROWED = """
import sys
package = sys.argv[1]
del sys.argv[1]
sys.path[:] = [folder for folder in sys.path if folder]  # -c puts the current folder there, as an empty name
for name in [name for name in sys.modules if name.partition(".")[0] == "envlock"]:
    del sys.modules[name]  # what a .pth file or sitecustomize has imported over there
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("envlock", package + "/__init__.py", submodule_search_locations=[package])
sys.modules["envlock"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["envlock"])
"""
"""How a program for another interpreter begins: its first argument, envlock's folder, becomes the package `envlock`."""

_BINDING = """
binding = sys.argv.pop(1)
"""
_SNAPSHOT = """
from envlock.runtime.capture import snapshot
from envlock.runtime.gpu import probe
probe.LAST_RESORT[:] = [binding] if binding else []
found = snapshot()
answer = [found.facts, found.unavailable]
"""
_ANSWER = """
import json
sys.stdout.buffer.write(json.dumps(answer).encode("ascii"))
"""


def snapshot_of(python: Path) -> Snapshot:
    """Return what the collectors find when the interpreter `python` runs them.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
        FactError: it did not answer, or not with facts.
    """
    facts, unavailable = ask(python, _SNAPSHOT)
    return Snapshot(facts, unavailable)


def ask(python: Path, program: str) -> list[Any]:
    """Return the list that `program` leaves in `answer` when the interpreter `python` runs it.

    Nothing but `sys` and the runtime half is there for it to use.

    Raises:
        UsageError: there is no such interpreter, or it cannot be run.
        FactError: it did not answer, or not with a list.
    """
    program = BORROWED + _BINDING + program + _ANSWER
    command = [str(python), "-c", program, str(Path(envlock.__file__).parent), _binding_folder()]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False)
    except OSError as error:
        hint = "name the interpreter of an environment, such as .venv/bin/python"
        raise UsageError(f"cannot run {python}: {error.strerror}", hint=hint) from None
    except subprocess.TimeoutExpired:
        raise FactError(f"{python} did not answer within {TIMEOUT} seconds") from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise FactError(
            f"{python} gave no facts (exit code {done.returncode}): {last[:200]}",
            hint="envlock needs Python 3.8 or newer",
        ) from None
    return list(answer)


def _binding_folder() -> str:
    """Return the folder of this environment's NVML binding, for one that has none; empty where there is none here."""
    spec = find_spec("pynvml")
    return (
        "" if spec is None or spec.origin is None or spec.submodule_search_locations else str(Path(spec.origin).parent)
    )
