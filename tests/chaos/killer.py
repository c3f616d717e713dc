"""Kill every command that writes, at random moments, and look at what it leaves.

As a program (`python -m tests.chaos.killer COMMAND KILLS SEED [PLANT]`) it has imported envlock once and forks for each
victim. Half of the moments are drawn from the time that the command takes, the others from its events (files opened,
renamed, removed ...) since its first draft, as Python's audit hooks see them: a few milliseconds in which it writes.
"""

from __future__ import annotations

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
from contextlib import AbstractContextManager as Context
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

from envlock.__main__ import main as envlock
from envlock.containers.payload import write_context
from envlock.containers.plan import BuildPlan
from envlock.lock import drafts, writer
from envlock.numerics import results
from tests.containers.plans import planned, wheelhouse
from tests.locks import document, encode
from tests.packages.file_server import files
from tests.packages.identified import lock_document, proof, wheel

ROOT = Path(__file__).resolve().parents[2]

EVENTS = ("open", "os.", "shutil.", "tempfile.", "fcntl.", "socket.", "subprocess.")
DRAFT = (".envlock.", ".tmp")
OLD = 120
"""Seconds after which what a killed process left may be removed; see envlock/lock/drafts.py."""
State = bytes | None
"""What a file or folder holds; None where there is none."""


@dataclass(frozen=True)
class Victim:
    """A command that writes.

    Attributes:
        prepare: fills a folder with what it needs, and with an older state of what it writes.
        run: is called in that folder.
        writes: what it replaces, each whole or not at all.
        may_be_gone: a moment without any state is allowed, which a folder's renaming needs.
        keeps: what else it may leave, by the beginning of the name: parts that the next run goes on with.
        is_whole: tells whether what it has written is whole, where no two runs write the same.
    """

    prepare: Callable[[Path], object]
    run: Callable[[], object]
    writes: tuple[str, ...]
    around: Callable[[Path], Context[object]] = lambda folder: nullcontext()
    may_be_gone: bool = False
    keeps: tuple[str, ...] = ()
    is_whole: Callable[[Path], bool] | None = None


@dataclass
class Outcome:
    """How many victims were killed, how many had ended before, and what was found wrong."""

    killed: int = 0
    ended: int = 0
    old: int = 0
    new: int = 0
    drafts: int = 0
    wrong: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, text: bytes) -> Outcome:
        """Return the outcome that the program printed last."""
        return cls(**json.loads(text.splitlines()[-1]))


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
        old = {name: state(folder / name) for name in victim.writes}
        before = {each.name for each in folder.iterdir()}
        seconds, first, events = _whole(victim, folder)
        new = {name: state(folder / name) for name in victim.writes}
        if new == old:
            outcome.wrong.append("it writes nothing")
        for number in range(kills):
            restore(victim, folder)
            late = draw.uniform(0, seconds) if number % 2 else None
            ended = _victim(victim, folder, late, 0 if late is not None else draw.randint(first, events))
            outcome.killed, outcome.ended = outcome.killed + (not ended), outcome.ended + ended
            _look(victim, folder, old, new, outcome, number)
        _sweep(victim, folder, before, outcome)
    return outcome


def _whole(victim: Victim, folder: Path) -> tuple[float, int, int]:
    """Let the command run to its end; return the seconds that it takes, and which of its events has the first draft."""
    reader, teller = os.pipe()
    begin = time.monotonic()
    pid = _fork(victim, folder, 0, teller)
    os.close(teller)
    with os.fdopen(reader) as said:
        seen = [int(each) for each in said.read().split()]
    status = os.waitpid(pid, 0)[1]
    if status or len(seen) != 2:
        raise AssertionError(f"the command itself fails: {status}")
    return time.monotonic() - begin, max(seen[1], 1), seen[0]


def _victim(victim: Victim, folder: Path, late: float | None, event: int) -> bool:
    """Start a command and kill it; return whether it had ended by then."""
    pid = _fork(victim, folder, event, None)
    if late is not None:
        time.sleep(late)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def _fork(victim: Victim, folder: Path, last: int, teller: int | None) -> int:
    """Start the command in a process of its own; before event number `last` it kills itself."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.chdir(folder)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1) if teller else (0, 1, 2):
            os.dup2(null, stream)
        seen = _counting(last)
        try:
            victim.run()
        except SystemExit as end:
            code = int(end.code or 0)
        else:
            code = 0
        if teller is not None:
            os.write(teller, " ".join(map(str, seen)).encode())
    finally:
        os._exit(code)


def _counting(last: int) -> list[int]:
    """Count the events of this process; return how many there were, and which was the first of a draft."""
    seen = [0, 0]

    def hook(event: str, about: tuple[object, ...]) -> None:
        if event.startswith(EVENTS):
            seen[0] += 1
            if not seen[1] and DRAFT[0] in str(about[:1]):
                seen[1] = seen[0]
            if seen[0] == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return seen


def restore(victim: Victim, folder: Path) -> None:
    """Let a folder be as it was before the command; drafts stay."""
    for each in list(folder.iterdir()):
        if not is_draft(each):
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    victim.prepare(folder)


def is_draft(path: Path) -> bool:
    """Return whether a file or folder is what a command writes before it renames it."""
    return path.name.startswith(DRAFT[0]) and path.name.endswith(DRAFT[1])


def _look(
    victim: Victim, folder: Path, old: dict[str, State], new: dict[str, State], outcome: Outcome, number: int
) -> None:
    for name in victim.writes:
        half = compared(victim, folder, name, old[name], new[name], outcome)
        if half is not None:
            outcome.wrong.append(f"kill {number}: {half}")
    outcome.drafts = max(outcome.drafts, sum(map(is_draft, folder.iterdir())))


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
    for each in folder.iterdir():
        if is_draft(each):
            os.utime(each, (past, past))
    _whole(victim, folder)
    left = {each.name for each in folder.iterdir()} - before - set(victim.writes)
    outcome.wrong += [f"left for ever: {name}" for name in sorted(left) if not name.startswith(victim.keeps or "\0")]


def _command(*words: str) -> Callable[[], object]:
    def run() -> None:
        sys.argv = ["envlock", *words]
        envlock()

    return run


def _files(**contents: bytes) -> Callable[[Path], object]:
    def prepare(folder: Path) -> None:
        for name, content in contents.items():
            (folder / name.replace("__", ".")).write_bytes(content)

    return prepare


@contextmanager
def _captured(folder: Path) -> Iterator[object]:
    """Let the lock be that of this environment, as a capture wrote it."""
    os.waitpid(_fork(Victim(_files(), _command("capture", "-q"), ()), folder, 0, None), 0)
    KNOWN.append((folder / "envlock.lock").read_bytes())
    yield None


def _known(folder: Path) -> None:
    if KNOWN:
        (folder / "envlock.lock").write_bytes(KNOWN[-1])


def _are_whole_results(folder: Path) -> bool:
    return len(results.read(folder).finished) == 2


KNOWN: list[bytes] = []
LOCK = encode(document())
OTHER = encode(document(created_by="envlock 0.0.9"))
PYPROJECT = b'[project]\nname = "mine"\n\n[tool.envlock]\npolicy = "strict" # why\n'
NAMES = ("aa-1.0-py3-none-any.whl", "bb-1.0-py3-none-any.whl")
CONTENT = {f"/files/{name}": name.encode() * 20_000 for name in NAMES}
PROVEN = {name[:2]: proof("1.0", wheel(name, CONTENT[f"/files/{name}"])) for name in NAMES}
SCRIPT = b"import numpy as np\n\ndef step():\n    return {'x': np.arange(3.0)}\n"


def _wheels(folder: Path) -> None:
    """Write a lock of wheels that are served; the port is known by then."""
    port = os.environ.get("CHAOS_PORT", "1")
    known = {
        name[:2]: proof("1.0", wheel(name, CONTENT[f"/files/{name}"], url=f"http://127.0.0.1:{port}/files/{name}"))
        for name in NAMES
    }
    (folder / "envlock.lock").write_bytes(encode(lock_document(known)))


@contextmanager
def _served(folder: Path) -> Iterator[object]:
    with files(CONTENT) as server:
        os.environ["CHAOS_PORT"] = str(server.port)
        _wheels(folder)
        yield server


@cache
def plan() -> BuildPlan:
    """Return what is to be built; it is made before anything fails."""
    return planned("wheels")


def _context(folder: Path) -> None:
    plan()
    (folder / "context").mkdir()
    (folder / "context" / "Dockerfile").write_bytes(b"FROM an/older:one\n")
    wheelhouse(folder / "wheelhouse")


VICTIMS: dict[str, Victim] = {
    "capture": Victim(_files(envlock__lock=LOCK), _command("capture", "-q"), ("envlock.lock",)),
    "hash": Victim(_known, _command("hash", "--offline", "-q"), ("envlock.lock",), _captured),
    "ignore": Victim(
        _files(envlock__lock=LOCK, pyproject__toml=PYPROJECT),
        _command("ignore", "cpu.quota", "--reason", "it may differ"),
        ("envlock.lock", "pyproject.toml"),
    ),
    "init": Victim(_files(pyproject__toml=b'[project]\nname = "mine"\n'), _command("init"), ("pyproject.toml",)),
    "merge": Victim(
        _files(base=LOCK, ours=OTHER, theirs=encode(document(policy={"name": "functional", "overrides": {}}))),
        _command("merge", "base", "ours", "theirs"),
        ("ours",),
    ),
    "export": Victim(
        _files(envlock__lock=encode(lock_document(PROVEN)), pylock__toml=b"# old\n"),
        _command("export", "--to", "pylock", "-o", "pylock.toml", "-q"),
        ("pylock.toml",),
    ),
    "vendor": Victim(
        _wheels, _command("vendor", "-q"), tuple(f"wheelhouse/{name}" for name in NAMES), _served, keeps=("wheelhouse",)
    ),
    "build": Victim(
        _context,
        lambda: write_context(plan(), Path("wheelhouse"), Path("context")),
        ("context",),
        may_be_gone=True,
    ),
    "repeat": Victim(
        _files(train__py=SCRIPT),
        _command("repeat", "train.py:step", "--runs", "2", "--save", "saved", "-q"),
        ("saved",),
        is_whole=_are_whole_results,
    ),
}
"""By command."""


@contextmanager
def _in_two_pieces(path: Path, what: str) -> Iterator[io.BytesIO]:
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
    "in two pieces": (writer, "replacing", _in_two_pieces),
    "no sweep": (drafts, "sweep", lambda folder: None),
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
    for plant in words[3:]:
        setattr(*PLANTS[plant])
    with tempfile.TemporaryDirectory(prefix="envlock-chaos-") as name:
        folder = Path(name) / "project"
        folder.mkdir()
        os.environ.update(HOME=name, XDG_CACHE_HOME=f"{name}/cache", TMPDIR=name, PIP_CONFIG_FILE=os.devnull)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # that of the user's program is no draft of ours
        tempfile.tempdir = None
        outcome = attack(VICTIMS[words[0]], folder, int(words[1]), int(words[2]))
    print(json.dumps(vars(outcome)))


if __name__ == "__main__":
    main(sys.argv[1:], attack)
