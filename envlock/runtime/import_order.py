"""Where `activate()` would have had to stand: told from the source of the script and of who called it."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple

_PACKAGES = ("tensorflow", "keras", "tf_keras")
OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def where_to_move() -> str:
    """Return what to move where, with file and line where the source tells them."""
    caller = _caller()
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    for file in dict.fromkeys([caller[0] if caller else None, main]):
        line = first_import(file) if isinstance(file, str) else None
        if line is not None:
            place = f" (now line {caller[1]} of {caller[0]})" if caller else ""
            return f"move `envlock.activate()`{place} above line {line} of {file}, which imports TensorFlow"
    return "move `envlock.activate()` above every import of TensorFlow, best to the first lines of the program"


def first_import(file: str) -> Optional[int]:
    """Return the first line of a file that imports TensorFlow or Keras; None where none does, or it is no source."""
    import ast

    try:
        with open(file, "rb") as stream:
            tree = ast.parse(stream.read())
    except (OSError, ValueError, SyntaxError):
        return None
    lines = [
        node.lineno for node in ast.walk(tree) if isinstance(node, ast.Import) and _any(node.names)
    ]
    lines += [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and _is(node.module)
    ]
    return min(lines, default=None)


def _any(names: list) -> bool:  # type: ignore[type-arg]
    return any(_is(alias.name) for alias in names)


def _is(module: Optional[str]) -> bool:
    return (module or "").partition(".")[0] in _PACKAGES


def _caller() -> Optional[Tuple[str, int]]:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return (
        (frame.f_code.co_filename, frame.f_lineno)
        if os.path.isfile(frame.f_code.co_filename)
        else None
    )
