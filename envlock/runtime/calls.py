"""Act on TensorFlow as a recipe says: the calls of a table, and the size of its thread pools."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

_MODULES = {"tf": "tensorflow"}


def tensorflow() -> Any:
    """Return TensorFlow, imported now if it is not yet.

    Raises:
        ImportError: it cannot be imported.
    """
    from importlib import import_module

    return import_module("tensorflow")


def spelled(call: str, seed: int) -> str:
    """Return a call of a table as it is made with a seed."""
    return call.replace("{seed}", str(seed))


def make(call: str, seed: int) -> None:
    """Make a call of a table. What it prints goes to stderr: stdout is the program's, and NVIDIA's patch talks.

    Raises:
        ImportError: its module is not there.
        AttributeError: its module has no such function.
    """
    words = call.partition("(")[0].split(".")
    function = _find([_MODULES.get(words[0], words[0]), *words[1:]])
    stdout, sys.stdout = sys.stdout, sys.stderr
    try:
        function(seed) if "{seed}" in call else function()
    finally:
        sys.stdout = stdout


def _find(words: List[str]) -> Any:
    from importlib import import_module

    found = import_module(words[0])
    for number, word in enumerate(words[1:], 1):
        if not hasattr(found, word) and number < len(words) - 1:
            import_module(".".join(words[: number + 1]))  # a submodule that nobody has imported yet
        found = getattr(found, word)
    return found


SAID = {"TF_NUM_INTRAOP_THREADS": "intra-op", "TF_NUM_INTEROP_THREADS": "inter-op"}


def initialised(tf: Any) -> bool:
    """Return whether TensorFlow has begun to work: from then on it refuses another number of threads.

    That refusal is the only public sign. A TensorFlow without these functions (1.x) begins with its first session, and
    cannot be asked.
    """
    threading = _threading(tf)
    if threading is None:
        return False
    before = threading.get_intra_op_parallelism_threads()
    try:
        threading.set_intra_op_parallelism_threads(before + 1)
    except RuntimeError:
        return True
    threading.set_intra_op_parallelism_threads(before)
    return False


def fix_threads(tf: Any, counts: Dict[str, int]) -> None:
    """Fix the size of the pools, by variable as `own_variables.THREADS` names them.

    Raises:
        RuntimeError: TensorFlow has begun to work, with another number.
    """
    threading = _threading(tf)
    for name, count in counts.items() if threading is not None else ():
        getattr(threading, f"set_{SAID[name].replace('-', '_')}_parallelism_threads")(count)


def _threading(tf: Any) -> Any:
    return getattr(getattr(tf, "config", None), "threading", None)
