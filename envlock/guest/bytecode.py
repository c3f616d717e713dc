"""What runs in a child process of the environment's own interpreter: does each .pyc file hold its source's code?

Started as `python -I -S -B -W ignore bytecode.py`, with one JSON list [pyc, source, tag, optimization] a line
on its standard input; it says `ready`, and answers each with one word a line. Nothing is imported or run, only
compiled and compared; but the bytes of a .pyc are not to be trusted, so what they do to the interpreter must happen in
a process of its own.

    fine          Python takes it, and it is the code of the source; or Python does not take it and compiles anew
    unchecked     Python takes it whatever the source says, by a flag in its header; today it is the code of the source
    other-code    Python takes it, and it is not the code of the source
    unreadable    one of the two files cannot be read
    too-large     loading it took more memory than a file is given
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
    from typing import Any

HEADER = 16


def main() -> None:
    """Answer until there is no more to ask."""
    os.write(1, b"ready\n")
    for line in sys.stdin.buffer:
        pyc, source, tag, optimization = json.loads(line)
        word = _answer(pyc, source, optimization) if tag == sys.implementation.cache_tag else "fine"
        os.write(1, (word + "\n").encode("ascii"))


def _answer(pyc: str, source: str, optimization: int) -> str:
    try:
        held, _ = _read(pyc)
        text, mtime = _read(source)
    except (OSError, ValueError):
        return "unreadable"
    accepted = taken(held, text, mtime)
    if accepted is None:
        return "fine"
    try:
        return accepted if is_code_of(held[HEADER:], text, source, optimization) else "other-code"
    except MemoryError:
        return "too-large"
    except (SyntaxError, ValueError, EOFError, TypeError, RecursionError):
        return "other-code"  # one of them is damaged


def taken(held: bytes, text: bytes, mtime: float) -> str | None:
    """Return `fine` or `unchecked` when Python takes these bytes for the source, None when it compiles anew.

    As importlib's `_classify_pyc`, `_validate_timestamp_pyc` and `_validate_hash_pyc` decide (PEP 552).
    """
    flags = int.from_bytes(held[4:8], "little")
    if held[:4] != importlib.util.MAGIC_NUMBER or len(held) < HEADER or flags & ~0b11:
        return None
    if flags & 0b01:
        if not flags & 0b10:
            return "unchecked"
        return "fine" if held[8:16] == importlib.util.source_hash(text) else None
    is_of = (int.from_bytes(held[8:12], "little"), int.from_bytes(held[12:16], "little"))
    return "fine" if is_of == (int(mtime) & 0xFFFFFFFF, len(text) & 0xFFFFFFFF) else None


def is_code_of(body: bytes, text: bytes, source: str, optimization: int) -> bool:
    """Return whether the bytes are the code that this interpreter makes of the source, and nothing after it.

    File names are not compared: Python puts its own in when it loads the file.
    """
    found: Any = marshal.loads(body)  # noqa: S302 (in a process of its own)
    wanted: Any = compile(text, source, "exec", dont_inherit=True, optimize=optimization)
    return bool(found == wanted) and _ends_there(body)


def _ends_there(body: bytes) -> bool:
    """Return whether the last byte belongs to the object: without it, loading must fail."""
    try:
        marshal.loads(body[:-1])  # noqa: S302 (`marshal.load` of a stream would tell, at ten times the time)
    except (EOFError, ValueError, TypeError):
        return True
    return False


def _read(path: str) -> tuple[bytes, float]:
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
