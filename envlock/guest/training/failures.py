"""The exception of a user's program as one line, and the traceback of the user's own code. No
folder is named.
"""

from __future__ import annotations

import os
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional

LINES = 80
"""Lines of a traceback; TensorFlow's can be longer, and the end says most."""
LONGEST = 300
"""Characters of a message."""
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_LIBRARIES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


def describe_failure(error: BaseException) -> str:
    """Return the exception, and its place in the user's code, in one line."""
    if isinstance(error, SystemExit):
        return f"the script exited with code {error.code}"
    description = type(error).__name__
    text = str(error).strip().partition("\n")[0][:LONGEST]
    if text:
        description += f": {text}"
    frame = _find_frame(error)
    if frame is not None:
        description += f" ({os.path.basename(frame.filename)}, line {frame.lineno})"
    return description


def _find_frame(error: BaseException) -> Optional[traceback.FrameSummary]:
    """Return the innermost frame of the user's own code, else of a library, else of any code."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = []
    own = []
    for frame in frames:
        if frame.filename.startswith((_OURS, "<")):
            continue
        outside.append(frame)
        if "site-packages" not in frame.filename and "runpy" not in frame.filename:
            own.append(frame)
    for candidates in (own, outside, frames):
        if candidates:
            return candidates[-1]
    return None


def format_traceback(error: BaseException) -> str:
    """Return the traceback, from the first line of the user's own code on, with file names relative
    to the user's folder.

    Empty if none of the user's code was running.
    """
    formatted = traceback.TracebackException(type(error), error, error.__traceback__)
    _shorten(formatted)
    if not formatted.stack:
        return ""
    lines = "".join(formatted.format()).splitlines()
    if len(lines) > LINES:
        lines = ["[...]", *lines[-LINES:]]
    return "\n".join(lines)


def _shorten(formatted: traceback.TracebackException) -> None:
    """Remove the frames of envlock and runpy before the user's code, in an error and in its causes."""
    errors: List[Optional[traceback.TracebackException]] = [formatted]
    while errors:
        error = errors.pop()
        if error is None:
            continue
        errors += [error.__cause__, error.__context__]
        while error.stack and _is_entry(error.stack[0].filename):
            del error.stack[0]
        for frame in error.stack:
            # The line is read now: there is no file with the shortened name.
            frame.line  # noqa: B018
            frame.filename = _shorten_name(frame.filename)


def _is_entry(file: str) -> bool:
    """Return whether a file only leads to the user's code: envlock's, Python's import, runpy."""
    return file.startswith((_OURS, "<frozen")) or os.path.basename(file) == "runpy.py"


def _shorten_name(file: str) -> str:
    """Return the path of a file relative to the current folder, or to its library, or only its
    name.
    """
    for libraries in _LIBRARIES:
        if libraries in file:
            return file.rpartition(libraries)[2]
    if file.startswith("<"):
        return file
    inside = os.path.relpath(file)
    if not inside.startswith(".."):
        return inside
    stdlib = os.path.dirname(os.__file__)
    if file.startswith(stdlib + os.sep):
        return os.path.relpath(file, stdlib)
    return os.path.basename(file)
