"""Where a call that belongs on line 1 should have been, found in the source of the script and of
its caller.
"""

from __future__ import annotations

import ast
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Optional, Tuple

_PACKAGES = ("tensorflow", "keras", "tf_keras")
OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def where_to_move() -> str:
    """Return a sentence on what to move where, with file and line if the source shows them."""
    caller = _find_caller()
    files = [getattr(sys.modules.get("__main__"), "__file__", None)]
    place = ""
    if caller is not None:
        file, line = caller
        files.insert(0, file)
        place = f" (now line {line} of {file})"
    for file in filter(None, files):
        first = find_first_import(file)
        if first is not None:
            above = f"above line {first} of {file}, which imports TensorFlow"
            return f"move `envlock.activate()`{place} {above}"
    return (
        "move `envlock.activate()` above every import of TensorFlow, "
        "best to the first lines of the program"
    )


def explain_repeated_import(caller: FrameType) -> Optional[str]:
    """Return where to move a call that a worker repeats when it imports the script; None elsewhere.

    A process that `multiprocessing` spawns imports the script of its parent as `__mp_main__`, and
    so do the workers of Dask; source: https://docs.python.org/3/library/multiprocessing.html, Safe
    importing of main module.
    """
    if caller.f_globals.get("__name__") != "__mp_main__" or caller.f_code.co_name != "<module>":
        return None
    place = f"line {caller.f_lineno} of {caller.f_code.co_filename}"
    return (
        "this process is a worker that imports the script again: "
        f'move {place} below `if __name__ == "__main__":`, where only the parent process calls it'
    )


def find_first_import(file: str) -> Optional[int]:
    """Return the first line of a file that imports TensorFlow or Keras.

    None if no line does, or the file is not Python source.
    """
    try:
        with open(file, "rb") as stream:
            tree = ast.parse(stream.read())
    except (OSError, ValueError, SyntaxError):
        return None
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            if any(_is_tensorflow(alias.name) for alias in node.names):
                lines.append(node.lineno)
        elif isinstance(node, ast.ImportFrom) and _is_tensorflow(node.module or ""):
            lines.append(node.lineno)
    return min(lines, default=None)


def _is_tensorflow(module: str) -> bool:
    return module.partition(".")[0] in _PACKAGES


def _find_caller() -> Optional[Tuple[str, int]]:
    """Return file and line of the nearest code outside envlock; None if it is not in a file."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    file = frame.f_code.co_filename
    if not os.path.isfile(file):
        return None
    return file, frame.f_lineno
