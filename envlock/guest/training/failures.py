"""What a user's program raised, for people: one line, and the traceback of his own code. No folder is named."""

from __future__ import annotations

import os
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional

LINES = 80
"""Of a traceback; TensorFlow's can be longer, and the end says most."""
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_LIBRARIES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


def described(error: BaseException) -> str:
    """Return what was raised and where in the user's code, on one line."""
    kind = type(error).__name__
    text = str(error).strip().partition("\n")[0][:300]
    if isinstance(error, SystemExit):
        return f"the script exited with code {error.code}"
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith((_OURS, "<"))]
    own = [
        frame
        for frame in theirs
        if "site-packages" not in frame.filename and "runpy" not in frame.filename
    ]
    at = (own or theirs or frames)[-1:]
    place = "".join(f" ({os.path.basename(frame.filename)}, line {frame.lineno})" for frame in at)
    return f"{kind}: {text}{place}" if text else f"{kind}{place}"


def traceback_of(error: BaseException) -> str:
    """Return the traceback, from the first line of the user's own code on; files are named from his folder on.

    Empty where none of the user's code was running.
    """
    found = traceback.TracebackException(type(error), error, error.__traceback__)
    _shorten(found)
    if not found.stack:
        return ""
    lines = "".join(found.format()).splitlines()
    left_out = ["[...]"] if len(lines) > LINES else []
    return "\n".join([*left_out, *lines[-LINES:]])


def _shorten(found: traceback.TracebackException) -> None:
    """Leave out what envlock and runpy did to get there, in an error and in those that led to it."""
    todo: List[Optional[traceback.TracebackException]] = [found]
    while todo:
        each = todo.pop()
        if each is None:
            continue
        todo += [each.__cause__, each.__context__]
        start = next(
            (n for n, frame in enumerate(each.stack) if not _leads_there(frame.filename)),
            len(each.stack),
        )
        del each.stack[:start]
        for frame in each.stack:
            frame.line  # noqa: B018 (it is read now: under the short name there is no such file)
            frame.filename = _name(frame.filename)


def _leads_there(file: str) -> bool:
    return file.startswith((_OURS, "<frozen")) or os.path.basename(file) == "runpy.py"


def _name(file: str) -> str:
    """Return how a file is called: from the current folder on, from its library on, or by its own name only."""
    for libraries in _LIBRARIES:
        if libraries in file:
            return file.rpartition(libraries)[2]
    if file.startswith("<"):
        return file
    inside = os.path.relpath(file)
    stdlib = os.path.dirname(os.__file__)
    if not inside.startswith(".."):
        return inside
    return (
        os.path.relpath(file, stdlib)
        if file.startswith(stdlib + os.sep)
        else os.path.basename(file)
    )
