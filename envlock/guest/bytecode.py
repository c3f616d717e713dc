"""Print whether each .pyc file contains the code of its source: a child process of the interpreter
of the environment.

It is started as `python -I -S -B -W ignore bytecode.py`, with one JSON list [pyc, source, tag,
optimization] a line on its standard input; it says `ready`, and answers each with one word a line.
Nothing is imported or run, only compiled and compared. The bytes of a .pyc cannot be trusted: they
can crash the interpreter, so this is a process of its own.

    fine          Python uses it, and it is the code of the source; or Python does not use it and compiles again
    unchecked     Python uses it whatever the source is, because of a flag in its header; now it is the code of the source
    other-code    Python uses it, and it is not the code of the source
    unreadable    one of the two files cannot be read
    too-large     loading it took more memory than a file may use
"""

from __future__ import annotations

import importlib.util
import json
import marshal
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple

HEADER = 16
"""Bytes before the code (PEP 552)."""
IS_BY_HASH, IS_CHECKED = 0b01, 0b10
"""Flags in the header: the source is identified by its hash, and Python compares that hash."""


def main() -> None:
    """Answer each line of the standard input."""
    os.write(1, b"ready\n")
    for line in sys.stdin.buffer:
        pyc, source, tag, optimization = json.loads(line)
        # Python ignores a .pyc of another version.
        word = _judge(pyc, source, optimization) if tag == sys.implementation.cache_tag else "fine"
        os.write(1, (word + "\n").encode("ascii"))


def _judge(pyc: str, source: str, optimization: int) -> str:
    try:
        compiled, _ = _read(pyc)
        text, mtime = _read(source)
    except (OSError, ValueError):
        return "unreadable"
    word = check_header(compiled, text, mtime)
    if word is None:
        return "fine"
    try:
        if is_code_of(compiled[HEADER:], text, source, optimization):
            return word
    except MemoryError:
        return "too-large"
    except (SyntaxError, ValueError, EOFError, TypeError, RecursionError):
        pass  # one of the two files is damaged
    return "other-code"


def check_header(compiled: bytes, text: bytes, mtime: float) -> Optional[str]:
    """Return `fine` or `unchecked` if Python uses a .pyc for the source; None if it compiles the
    source again.

    As importlib's `_classify_pyc`, `_validate_timestamp_pyc` and `_validate_hash_pyc` decide (PEP
    552).
    """
    if compiled[:4] != importlib.util.MAGIC_NUMBER or len(compiled) < HEADER:
        return None
    flags = int.from_bytes(compiled[4:8], "little")
    if flags & ~(IS_BY_HASH | IS_CHECKED):
        return None
    if flags & IS_BY_HASH:
        if not flags & IS_CHECKED:
            return "unchecked"
        is_same = compiled[8:16] == importlib.util.source_hash(text)
    else:
        seconds = int.from_bytes(compiled[8:12], "little")
        size = int.from_bytes(compiled[12:16], "little")
        is_same = (seconds, size) == (int(mtime) & 0xFFFFFFFF, len(text) & 0xFFFFFFFF)
    if is_same:
        return "fine"
    return None


def is_code_of(body: bytes, text: bytes, source: str, optimization: int) -> bool:
    """Return whether the bytes are exactly the code that this interpreter compiles from the source.

    File names are not compared: Python replaces them when it loads the file.
    """
    found: object = marshal.loads(body)  # noqa: S302 (in a process of its own)
    wanted = compile(text, source, "exec", dont_inherit=True, optimize=optimization)
    return bool(found == wanted) and _needs_last_byte(body)


def _needs_last_byte(body: bytes) -> bool:
    """Return whether the last byte belongs to the object, so that loading fails without it."""
    try:
        # `marshal.load` on a stream would show where the object ends, in ten times the time.
        marshal.loads(body[:-1])  # noqa: S302 (in a process of its own)
    except (EOFError, ValueError, TypeError):
        return True
    return False


def _read(path: str) -> Tuple[bytes, float]:
    """Return the content and the modification time of a file.

    Raise ValueError for anything but a regular file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(path)
        with open(fd, "rb", closefd=False) as stream:
            return stream.read(status.st_size), status.st_mtime
    finally:
        os.close(fd)


if __name__ == "__main__":
    main()
