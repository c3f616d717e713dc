"""Call what a table names: `tf.config.experimental.enable_op_determinism()`, `random.seed({seed})`.

This is the one place of the runtime half that imports TensorFlow and NumPy, by name and only when `activate()` asks for
it: their own functions are the only way to switch determinism on and to seed them.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

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
