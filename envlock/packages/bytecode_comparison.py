"""Whether each .pyc file has the code of its source: the interpreter of the environment compares
them.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from envlock.guest import launch
from envlock.runtime.errors import UsageError
from envlock.runtime.files.compiled_file import CompiledFile
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.read_file import count_workers
from envlock.runtime.report import ERROR, INFO, UNKNOWN, Severity

CHILD = Path(launch.__file__).with_name("bytecode.py")
MEMORY = 2 << 30
"""Bytes of one child process: a .pyc can claim to contain a tuple of any size."""
MOST_CHILDREN = 2
"""Each needs some 70 MB for the largest sources seen; all together must stay under 200 MB."""
SILENCE = 60
"""Seconds without an answer for one file; the largest source of TensorFlow takes 0.3."""
TICK = 0.1
"""Seconds until an interrupt is noticed."""
MOST_CRASHES = 10
"""How often a child is started again for its share of the files."""

WORDS: dict[str, tuple[str, Severity]] = {
    "unchecked": (
        "is run without a check of its source (an unchecked hash in its header); "
        "at present the two agree",
        INFO,
    ),
    "other-code": ("differs from the source beside it", ERROR),
    "crashed": ("crashes the interpreter when it is loaded", ERROR),
    "too-large": ("takes too much memory to load, so it was not compared with its source", ERROR),
    "unreadable": ("cannot be read", UNKNOWN),
    "no-answer": ("could not be compared: the interpreter did not answer", UNKNOWN),
}
CRASHED, NO_ANSWER, FINE = "crashed", "no-answer", "fine"


def compare(
    python: Path, files: Iterable[CompiledFile], advance: Callable[[int], None] = lambda _: None
) -> dict[str, str]:
    """Return the problems of files, by path: a key of `WORDS`.

    A file is `crashed` if the interpreter ends or stops when it loads the file, and `no-answer` if
    the interpreter gives no answers at all.
    """
    ordered = sorted(files)
    count = max(1, min(count_workers(), MOST_CHILDREN, len(ordered)))
    stop = threading.Event()
    with ThreadPoolExecutor(count, thread_name_prefix="envlock-bytecode") as pool:
        try:
            shares = [ordered[start::count] for start in range(count)]
            words: dict[str, str] = {}
            for answers in pool.map(
                lambda share: _compare_share(python, share, advance, stop), shares
            ):
                words.update(answers)
        finally:
            stop.set()  # an interrupt ends the children, too, and no new one is started
    return {path: word for path, word in words.items() if word != FINE}


def compare_bytecode(
    python: Path,
    compiled: list[CompiledFile],
    faults: list[Fault],
    advance: Callable[[int], None] = lambda _: None,
) -> list[Fault]:
    """Return a fault for each file whose bytecode was not compiled from its source.

    A file is skipped if its source is missing, or is among `faults` already.
    """
    wrong = {fault.path for fault in faults}
    comparable = [
        file for file in compiled if file.source not in wrong and Path(file.source).exists()
    ]
    found = []
    for path, word in sorted(compare(python, comparable, advance).items()):
        sentence, severity = WORDS[word]
        found.append(Fault("bytecode", path, sentence, severity=severity))
    return found


def _compare_share(
    python: Path, files: list[CompiledFile], advance: Callable[[int], None], stop: threading.Event
) -> dict[str, str]:
    """Return a word of `WORDS` for each file."""
    answers: dict[str, str] = {}
    paths = [file.path for file in files]
    position = 0
    for _ in range(MOST_CRASHES):
        if position == len(files) or stop.is_set():
            break
        is_ready, words = _ask(python, files[position:], advance, stop)
        answers.update(zip(paths[position:], words, strict=False))
        position += len(words)
        if not is_ready:
            break
        # The child ended at the next file, so another child is asked about the files after it.
        if position < len(files):
            answers[paths[position]] = CRASHED
            position += 1
    return answers | dict.fromkeys(paths[position:], NO_ANSWER)


def _ask(
    python: Path, files: list[CompiledFile], advance: Callable[[int], None], stop: threading.Event
) -> tuple[bool, list[str]]:
    """Return whether a child was started, and its words, one for each file, until it ended."""
    with tempfile.TemporaryFile() as request:
        for file in files:
            request.write((json.dumps(file) + "\n").encode("ascii"))
        request.seek(0)
        # Code of the environment must not run in it, as that could change the answers: no variables
        # and no folder of the user's (-I), and no .pth files (-S).
        words = ["-I", "-S", "-B", "-W", "ignore", str(CHILD)]
        try:
            child = launch.start(
                words,
                python,
                stdin=request,
                output=subprocess.PIPE,
                errors=subprocess.DEVNULL,
                memory=MEMORY,
            )
        except UsageError:
            return False, []
    try:
        lines = _read_lines(child.stdout, advance, stop)
    finally:
        launch.kill(child)  # it has ended, or no longer answers
    if not lines:
        return False, []
    return lines[0] == "ready", lines[1 : 1 + len(files)]


def _read_lines(
    stream: IO[bytes] | None, advance: Callable[[int], None], stop: threading.Event
) -> list[str]:
    """Return the whole lines until the end of the stream, `SILENCE` seconds without one, or `stop`."""
    text = b""
    until = time.monotonic() + SILENCE
    while stream is not None and time.monotonic() < until and not stop.is_set():
        if not select.select([stream], [], [], TICK)[0]:
            continue
        until = time.monotonic() + SILENCE
        piece = os.read(stream.fileno(), 65536)
        if not piece:
            break
        text += piece
        advance(piece.count(b"\n"))
    return text.decode("ascii", "replace").split("\n")[:-1]
