"""Kill every command that writes, at random moments, and look at what it leaves.

As a program (`python -m tests.chaos.killer COMMAND KILLS SEED [PLANT]`) it has imported envlock once and forks for each
victim, so that one costs no more than its own work. All are killed while they write, that is from the first
event that opens a file for writing, makes, renames or removes one, as Python's audit hooks see it: half of them at an
event, where nothing but the seed decides, the others at a moment in time, which may lie within a system call.
"""

from __future__ import annotations

import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType

from envlock.lock import document, writer
from envlock.runtime import drafts
from tests import forking
from tests.chaos.victims import VICTIMS, Victim

ROOT = Path(__file__).resolve().parents[2]

EVENTS = ("open", "os.", "shutil.", "tempfile.", "fcntl.", "socket.", "subprocess.")
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
DOORS = ("lock/writer.py", "lock/temporary.py", "lock/document.py", "runtime/drafts.py")
"""What other files of envlock write with."""
DRAFT = (".envlock.", ".tmp")
OLD = 120
"""Seconds after which what a killed process left may be removed; see envlock/runtime/drafts.py."""
State = bytes | None
"""What a file or folder holds; None where there is none."""


@dataclass
class Outcome:
    """How many victims were killed, how many had ended before, and what was found wrong.

    Attributes:
        counted: how many of those that were killed fell at an event; time has no part in it.
        old: how often the old state was found.
        new: how often the new one.
        drafts: the most drafts that lay there at once.
        sites: the functions of envlock from which drafts were made.
    """

    killed: int = 0
    ended: int = 0
    counted: int = 0
    old: int = 0
    new: int = 0
    drafts: int = 0
    sites: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, text: bytes) -> Outcome:
        """Return the outcome that the program printed last."""
        return cls(**json.loads(text.splitlines()[-1]))


@dataclass
class Watch:
    """What a process has done so far: its events, those with which it changes files, and who asked for a draft.

    `last` is the number of the event at which it kills itself, 0 for none; `teller` gets a byte at the first change.
    """

    place: str
    last: int
    teller: int
    events: int = 0
    first: int = 0
    latest: int = 0
    begun: float = 0.0
    sites: set[str] = field(default_factory=set)

    def __call__(self, event: str, about: tuple[object, ...]) -> None:
        """Take an event, as an audit hook."""
        if not event.startswith(EVENTS):
            return
        self.events += 1
        if self._changes(event, about):
            self.latest = self.events
            if not self.first:
                self.first, self.begun = self.events, time.monotonic()
                os.write(self.teller, b".")
        if event.startswith("tempfile.mk"):
            self.sites.add(find_writer(sys._getframe(1)))
        if self.events == self.last:
            os.kill(os.getpid(), signal.SIGKILL)

    def _changes(self, event: str, about: tuple[object, ...]) -> bool:
        to_write = event == "open" and isinstance(about[2], int) and about[2] & TO_WRITE
        if not (to_write or event in CHANGES) or not isinstance(about[0], str | bytes | os.PathLike):
            return False
        return os.path.abspath(os.fsdecode(about[0])).startswith(self.place)  # noqa: PTH100 (it follows no link)


def find_writer(frame: FrameType | None) -> str:
    """Return the function of envlock that opened one of the doors in which a frame was called, "" for none."""
    while frame is not None:
        name = frame.f_code.co_filename.removeprefix(f"{ROOT}/envlock/")
        if name != frame.f_code.co_filename and name not in DOORS:
            return f"{name}:{frame.f_code.co_name}"
        frame = frame.f_back
    return ""


def state(path: Path) -> State:
    """Return what a file, or a folder with all below it, holds."""
    if path.is_dir():
        parts = [str(each.relative_to(path)).encode() + b"\0" + (state(each) or b"") for each in sorted(path.iterdir())]
        return b"\1".join(parts)
    return path.read_bytes() if path.exists() else None


def attack(victim: Victim, folder: Path, kills: int, seed: int) -> Outcome:
    """Kill a command so often; each starts where nothing of the one before is left, but for its drafts."""
    outcome, draw = Outcome(), Random(seed)
    victim.prepare(folder)
    with victim.around(folder):
        restore(victim, folder)
        old = {name: state(folder / name) for name in victim.writes}
        before = _there(folder)
        seconds, first, last, outcome.sites = _whole(victim, folder)
        new = {name: state(folder / name) for name in victim.writes}
        if new == old:
            outcome.wrong.append("it writes nothing")
        for number in range(kills):
            restore(victim, folder)
            late = draw.uniform(0, seconds) if number % 2 else None
            ended = _victim(victim, folder, late, 0 if late is not None else draw.randint(first, last))
            outcome.killed, outcome.ended = outcome.killed + (not ended), outcome.ended + ended
            outcome.counted += late is None and not ended
            _look(victim, folder, old, new, outcome, number)
        _sweep(victim, folder, before, outcome)
    return outcome


def _whole(victim: Victim, folder: Path) -> tuple[float, int, int, list[str]]:
    """Let the command run to its end; return for how long it writes, the first and last event of that, and where."""
    reader, teller = os.pipe()
    pid = _fork(victim, folder, 0, teller, is_told=True)
    os.close(teller)
    with os.fdopen(reader) as said:
        words = said.read().lstrip(".").split()
    status = os.waitpid(pid, 0)[1]
    if status or len(words) < 3:
        raise AssertionError(f"the command itself fails, or writes nothing: {status}")
    return float(words[0]), int(words[1]), int(words[2]), sorted(words[3:])


def _victim(victim: Victim, folder: Path, late: float | None, event: int) -> bool:
    """Start a command and kill it, so many seconds after it has begun to write; return whether it had ended by then."""
    reader, teller = os.pipe()
    pid = _fork(victim, folder, event, teller)
    os.close(teller)
    os.read(reader, 1)
    os.close(reader)
    if late is not None:
        time.sleep(late)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def _fork(victim: Victim, folder: Path, last: int, teller: int, *, is_told: bool = False) -> int:
    """Start the command in a process of its own; before event number `last` it kills itself."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.chdir(folder)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1) if is_told else (0, 1, 2):
            os.dup2(null, stream)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        watch = Watch(str(folder.parent), last, teller)
        sys.addaudithook(watch)
        try:
            victim.run()
        except SystemExit as end:
            code = int(end.code or 0)
        else:
            code = 0
        if is_told:
            seconds = time.monotonic() - watch.begun
            words = [seconds, watch.first, watch.latest, *watch.sites]
            os.write(teller, " ".join(map(str, words)).encode() if watch.first else b"")
    finally:
        os._exit(code)


def restore(victim: Victim, folder: Path) -> None:
    """Let a folder be as it was before the command; drafts stay."""
    for each in list(folder.iterdir()):
        if not is_draft(each):
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    victim.prepare(folder)


def is_draft(path: Path) -> bool:
    """Return whether a file or folder is what a command writes before it renames it."""
    return path.name.startswith(DRAFT[0]) and path.name.endswith(DRAFT[1])


def _there(folder: Path) -> set[str]:
    """Return what lies in the project and in the temporary folder around it."""
    return {str(each.relative_to(folder.parent)) for place in (folder, folder.parent) for each in place.iterdir()}


def _look(
    victim: Victim, folder: Path, old: dict[str, State], new: dict[str, State], outcome: Outcome, number: int
) -> None:
    for name in victim.writes:
        half = compared(victim, folder, name, old[name], new[name], outcome)
        if half is not None:
            outcome.wrong.append(f"kill {number}: {half}")
    outcome.drafts = max(outcome.drafts, sum(is_draft(Path(name)) for name in _there(folder)))


def compared(victim: Victim, folder: Path, name: str, old: State, new: State, outcome: Outcome) -> str | None:
    """Count the state of what a command writes, the old or the new one; return a sentence where it is neither."""
    found = state(folder / name)
    is_new = found == new
    if victim.is_whole is not None and found is not None:
        is_new = victim.is_whole(folder / name)
    outcome.new += is_new
    outcome.old += found == old
    if is_new or found == old or (found is None and victim.may_be_gone):
        return None
    return f"{name} is half-written"


def _sweep(victim: Victim, folder: Path, before: set[str], outcome: Outcome) -> None:
    """Run the command to its end: what the killed ones have left is gone then, and it has written."""
    restore(victim, folder)
    past = time.time() - OLD
    for each in (*folder.iterdir(), *folder.parent.iterdir()):
        if is_draft(each):
            os.utime(each, (past, past))
    _whole(victim, folder)
    written = {str((folder / name).resolve().relative_to(folder.parent)) for name in victim.writes}
    left = _there(folder) - before - written - {"cache", "matplotlib"}
    keeps = tuple(f"{folder.name}/{name}" for name in victim.keeps)
    outcome.wrong += [f"left for ever: {name}" for name in sorted(left) if not name.startswith(keeps or "\0")]


@contextmanager
def _in_two_pieces(path: Path, what: str, *, mode: int | None = None) -> Iterator[io.BytesIO]:
    """Write a file as anybody does."""
    stream = io.BytesIO()
    yield stream
    data = stream.getvalue()
    with path.open("wb") as file:
        file.write(data[: len(data) // 2])
        file.flush()
        (path.parent / f"{DRAFT[0]}x").touch()
        file.write(data[len(data) // 2 :])
    (path.parent / f"{DRAFT[0]}x").unlink()


PLANTS: dict[str, tuple[object, str, object]] = {
    "in two pieces": (writer, "replace_file", _in_two_pieces),
    "no sweep": (drafts, "sweep", lambda folder: None),
    "keeps nothing": (document, "_keep_others", lambda lock, file, read: lock),
}
"""Defences that are taken away, by what is left."""


def attacked(module: str, name: str, times: int, seed: int, *plant: str) -> Outcome:
    """Return the outcome of one attack, `python -m tests.chaos.MODULE`, and print it."""
    words = [sys.executable, "-m", f"tests.chaos.{module}", name, str(times), str(seed), *plant]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, timeout=3000, check=True)
    outcome = Outcome.of(done.stdout)
    print(f"{name}: {outcome}")
    return outcome


def main(words: Sequence[str], attack: Callable[[Victim, Path, int, int], Outcome]) -> None:
    """Attack one command (COMMAND TIMES SEED PLANT...), and print the outcome as JSON."""
    forking.warm()
    gc.collect()
    gc.freeze()
    for plant in words[3:]:
        setattr(*PLANTS[plant])
    with tempfile.TemporaryDirectory(prefix="envlock-chaos-") as name:
        folder = Path(name) / "project"
        folder.mkdir()
        os.environ.update(HOME=name, XDG_CACHE_HOME=f"{name}/cache", TMPDIR=name, PIP_CONFIG_FILE=os.devnull)
        os.environ["MPLCONFIGDIR"] = f"{name}/matplotlib"
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # that of the user's program is no draft of ours
        tempfile.tempdir = None
        tempfile.gettempdir()  # which tries it out, with a file that a killed process would leave
        outcome = attack(VICTIMS[words[0]], folder, int(words[1]), int(words[2]))
        os.chdir(ROOT)
    print(json.dumps(vars(outcome)))


if __name__ == "__main__":
    main(sys.argv[1:], attack)
