"""Make the calls of a determinism recipe in TensorFlow, and fix the size of its thread pools."""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Dict, List

_MODULES = {"tf": "tensorflow"}


def import_tensorflow() -> ModuleType:
    """Return TensorFlow, importing it if necessary.

    Raises:
        ImportError: it cannot be imported.
    """
    return import_module("tensorflow")


def format_call(call: str, seed: int) -> str:
    """Return a call from the table as the text of Python code, with the seed filled in."""
    return call.replace("{seed}", str(seed))


def make(call: str, seed: int) -> None:
    """Make a call from the table.

    Raises:
        ImportError: its module does not exist.
        AttributeError: its module has no such function.
    """
    words = call.partition("(")[0].split(".")
    function = _find([_MODULES.get(words[0], words[0]), *words[1:]])
    # Whatever it prints goes to stderr: stdout belongs to the program, and NVIDIA's patch prints
    # lines.
    stdout, sys.stdout = sys.stdout, sys.stderr
    try:
        if "{seed}" in call:
            function(seed)
        else:
            function()
    finally:
        sys.stdout = stdout


def _find(words: List[str]) -> Callable[..., object]:
    """Return the function with a dotted name."""
    found: object = import_module(words[0])
    for place, word in enumerate(words[1:-1], 1):
        if not hasattr(found, word):
            # A submodule that has not been imported yet.
            import_module(".".join(words[: place + 1]))
        found = getattr(found, word)
    function: Callable[..., object] = getattr(found, words[-1])
    return function


SAID = {"TF_NUM_INTRAOP_THREADS": "intra-op", "TF_NUM_INTEROP_THREADS": "inter-op"}


def is_initialised(tf: ModuleType) -> bool:
    """Return whether TensorFlow has created its context: from then on it refuses a different number
    of threads.

    A TensorFlow without these functions (1.x) creates it with its first session, and cannot be
    asked.
    """
    threading = _get_threading(tf)
    if threading is None:
        return False
    # That refusal is the only public sign, so one more thread is requested, and then the old number
    # again.
    before = threading.get_intra_op_parallelism_threads()
    try:
        threading.set_intra_op_parallelism_threads(before + 1)
    except RuntimeError:
        return True
    threading.set_intra_op_parallelism_threads(before)
    return False


def fix_threads(tf: ModuleType, counts: Dict[str, int]) -> None:
    """Fix the size of the pools, by variable as `own_variables.THREADS` names them.

    Raises:
        RuntimeError: TensorFlow has already started with a different number.
    """
    threading = _get_threading(tf)
    if threading is None:
        return
    for name, count in counts.items():
        pool = SAID[name].replace("-", "_")
        getattr(threading, f"set_{pool}_parallelism_threads")(count)


def _get_threading(tf: ModuleType) -> Any:
    return getattr(getattr(tf, "config", None), "threading", None)
