"""Whether each .pyc file holds its source's code, asked of the environment's interpreter in child processes."""

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
from envlock.runtime.files.compiled import Compiled
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.read_file import workers
from envlock.runtime.report import ERROR, INFO, UNKNOWN

CHILD = Path(launch.__file__).with_name("bytecode.py")
MEMORY = 2 << 30  # bytes: a .pyc can claim to hold a tuple of any size
MOST_CHILDREN = (
    2  # each takes some 70 MB for the largest sources met, and all of it is to stay under 200 MB
)
SILENCE = 60  # seconds for one file; the largest source of TensorFlow takes 0.3
TICK = 0.1  # seconds until an interrupt is noticed
MOST_CRASHES = 10  # of one child's share

WORDS = {
    "unchecked": (
        "is run without a check of its source (an unchecked hash in its header); at present the two agree",
        INFO,
    ),
    "other-code": ("differs from the source beside it", ERROR),
    "crashed": ("crashes the interpreter when it is loaded", ERROR),
    "too-large": ("takes too much memory to load, so it was not compared with its source", ERROR),
    "unreadable": ("cannot be read", UNKNOWN),
    "not-told": ("could not be compared: the interpreter did not answer", UNKNOWN),
}
CRASHED, NOT_TOLD, FINE = "crashed", "not-told", "fine"


def compare(
    python: Path, files: Iterable[Compiled], advance: Callable[[int], None] = lambda _: None
) -> dict[str, str]:
    """Return path -> what is to be said of it, for those that are not `fine`; see guest/bytecode.py for the words.

    A file that ends or stops the interpreter when it is loaded is `crashed`; `not-told` where that interpreter
    cannot be asked at all.
    """
    listed = sorted(files)
    count = max(1, min(workers(), MOST_CHILDREN, len(listed)))
    stop = threading.Event()
    with ThreadPoolExecutor(count, thread_name_prefix="envlock-bytecode") as pool:
        try:
            shares = [listed[start::count] for start in range(count)]
            answers = list(pool.map(lambda share: _share(python, share, advance, stop), shares))
        finally:
            stop.set()  # an interrupt ends the children, too; no new one must be started
    return {path: word for answer in answers for path, word in answer.items() if word != FINE}


def compare_bytecode(
    python: Path,
    compiled: list[Compiled],
    faults: list[Fault],
    advance: Callable[[int], None] = lambda _: None,
) -> list[Fault]:
    """Return the bytecode that is not its source's; another source than the recorded one is a finding already."""
    wrong = {fault.path for fault in faults}
    asked = [each for each in compiled if each.source not in wrong and Path(each.source).exists()]
    told = compare(python, asked, advance)
    return [
        Fault("bytecode", path, WORDS[word][0], severity=WORDS[word][1])
        for path, word in sorted(told.items())
    ]


def _share(
    python: Path, files: list[Compiled], advance: Callable[[int], None], stop: threading.Event
) -> dict[str, str]:
    told: dict[str, str] = {}
    left = files
    for _ in range(MOST_CRASHES):
        if not left or stop.is_set():
            break
        ready, words = _ask(python, left, advance, stop)
        told.update(zip((each.path for each in left), words, strict=False))
        left = left[len(words) :]
        if not ready:
            break
        if left:
            told[left[0].path] = CRASHED
            left = left[1:]
    return told | {each.path: NOT_TOLD for each in left}


def _ask(
    python: Path, files: list[Compiled], advance: Callable[[int], None], stop: threading.Event
) -> tuple[bool, list[str]]:
    """Return whether a child was there, and its words, one a file, up to the file at which it ended."""
    with tempfile.TemporaryFile() as asked:
        asked.write("".join(json.dumps(each) + "\n" for each in files).encode("ascii"))
        asked.seek(0)
        words = ["-I", "-S", "-B", "-W", "ignore", str(CHILD)]
        try:
            child = launch.start(
                words,
                python,
                stdin=asked,
                output=subprocess.PIPE,
                errors=subprocess.DEVNULL,
                memory=MEMORY,
            )
        except UsageError:
            return False, []
    try:
        ready, *answers = [*_lines(child.stdout, advance, stop), ""]
    finally:
        launch.end(child)  # it has ended, or says nothing any more
    return ready == "ready", answers[:-1][: len(files)]


def _lines(
    stream: IO[bytes] | None, advance: Callable[[int], None], stop: threading.Event
) -> list[str]:
    """Return what is written until the end, until nothing was for too long, or until nobody wants to know."""
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
