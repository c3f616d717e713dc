"""Close, break or fill the streams of every command, and look at its exit code.

As a program (`python -m tests.chaos.streams [COMMAND ...]`) it forks for every victim and prints, as JSON, by command
and by what was done to its streams, the exit code and what it still could say.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from envlock.__main__ import main as envlock
from tests import forking
from tests.locks import document, encode
from tests.packages.identified import lock_document, proof, wheel

COMMANDS: dict[str, tuple[str, ...]] = {
    "capture": ("capture", "--without-tensorflow", "-o", "new.lock"),
    "capture to stdout": ("capture", "--without-tensorflow", "-o", "-"),
    "show": ("show", "x.lock"),
    "show stdin": ("show", "-"),
    "show json": ("show", "-f", "json", "x.lock"),
    "verify": ("verify", "x.lock"),
    "verify stdin": ("verify", "-"),
    "diff": ("diff", "x.lock", "live"),
    "explain": ("explain", "cpu.flags", "x.lock"),
    "explain all": ("explain", "--lock", "x.lock"),
    "doctor": ("doctor", "-f", "json"),
    "lint": ("lint", "train.py"),
    "export": ("export", "x.lock", "--format", "pylock"),
    "images": ("images",),
    "init": ("init",),
    "help": ("--help",),
    "wrong": ("verify", "--no-such"),
}


def _closed(stream: int) -> Callable[[], object]:
    return lambda: os.close(stream)


def _full(stream: int) -> Callable[[], object]:
    return lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), stream)


def _broken(stream: int) -> Callable[[], object]:
    def do() -> None:
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, stream)
        os.close(writer)

    return do


def _all(*each: Callable[[], object]) -> Callable[[], object]:
    return lambda: [one() for one in each]


TROUBLES: dict[str, Callable[[], object]] = {
    "stdin closed": _closed(0),
    "stdout closed": _closed(1),
    "stderr closed": _closed(2),
    "all closed": _all(_closed(0), _closed(1), _closed(2)),
    "stdout full": _full(1),
    "stderr full": _full(2),
    "both full": _all(_full(1), _full(2)),
    "stdout broken": _broken(1),
    "stderr broken": _broken(2),
    "stdin of noise": lambda: os.dup2(os.open("/dev/urandom", os.O_RDONLY), 0),
}


def run(command: str, trouble: str, folder: Path, program: Callable[[], object] = envlock) -> tuple[int, str]:
    """Return how a command in trouble ended, and what it said."""
    reader, teller = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.chdir(folder)
            signal.alarm(60)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for stream in (1, 2):
                os.dup2(teller, stream)
            os.close(teller)
            os.close(reader)
            TROUBLES[trouble]()
            sys.argv = ["__main__.py", *COMMANDS[command]]
            sys.stdin, sys.stdout, sys.stderr = (_stream(each) for each in range(3))
            try:
                program()
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
            for each in (sys.stdout, sys.stderr):  # as Python does when it ends, with 120 where that fails
                code = _flushed(each, code)
        finally:
            os._exit(code)
    os.close(teller)
    with os.fdopen(reader, "rb") as words:
        said = words.read().decode("utf-8", "replace")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def _stream(number: int) -> object:
    """Return a standard stream as Python opens it: None where it is closed."""
    try:
        os.fstat(number)
    except OSError:
        return None
    return open(number, "w" if number else "r", encoding="utf-8", errors="backslashreplace", closefd=False)


def _flushed(stream: object, code: int) -> int:
    try:
        stream.flush()  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return code
    except OSError:
        return 120
    return code


def prepare(folder: Path) -> None:
    """Write what the commands read."""
    name = "aa-1.0-py3-none-any.whl"
    whole = encode(lock_document({"aa": proof("1.0", wheel(name, b"content"))}))
    for lock, data in (("x.lock", whole), ("y.lock", encode(document()))):
        (folder / lock).write_bytes(data)
    (folder / "train.py").write_text("import tensorflow as tf\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text('[project]\nname = "mine"\n', encoding="utf-8")


def main(words: Sequence[str]) -> None:
    """Try these commands, or all, in every trouble."""
    forking.warm()
    found: dict[str, dict[str, tuple[int, str]]] = {}
    for command in words or COMMANDS:
        found[command] = {}
        for trouble in TROUBLES:
            with tempfile.TemporaryDirectory(prefix="envlock-chaos-") as name:
                prepare(Path(name))
                found[command][trouble] = run(command, trouble, Path(name))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
