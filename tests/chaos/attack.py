"""Feed a reader damaged inputs, and note everything that must not happen.

As a program (`python -m tests.chaos.attack READER INPUTS SEED`) it attacks in a process of its own, whose memory can be
measured, and prints what happened as JSON.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from envlock.runtime.errors import EnvlockError
from tests.chaos.damage import Damage

CPU_SECONDS = 2.0
"""What reading one input may cost. CPU time: a loaded machine is no defect of a reader."""
MEGABYTES = 300
"""What the whole process may ever hold."""
ADDRESS_SPACE = 4 << 30
"""Bytes: where a reader fills the memory of the machine, this ends it."""


class AcceptedError(AssertionError):
    """A reader took, showed or let pass what it must not."""


class Hang(BaseException):
    """A reader used up its time; nothing that it catches."""


@dataclass(frozen=True)
class Reader:
    """What is attacked.

    Attributes:
        seeds: sound inputs.
        damages: ways to damage them.
        read: reads an input, with a folder to write in; raises `AcceptedError` where it took what it must not.
        refusals: the only errors that it may raise.
        inputs: how many inputs the long attack has.
    """

    seeds: Callable[[], Sequence[bytes]]
    damages: tuple[Damage, ...]
    read: Callable[[bytes, Path], None]
    refusals: tuple[type[Exception], ...] = (EnvlockError,)
    inputs: int = 4000


@dataclass
class Outcome:
    """What an attack came to; `wrong` counts by kind, `first` has the number of the first input of each kind."""

    inputs: int = 0
    refused: int = 0
    slowest: float = 0.0
    megabytes: float = 0.0
    wrong: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)

    def note(self, what: str, number: int) -> None:
        """Count something that must not happen."""
        self.wrong[what] += 1
        self.first.setdefault(what, number)


def damaged(reader: Reader, name: str, seed: int, number: int) -> bytes:
    """Return an input of an attack; its number and the attack's seed always give the same one."""
    draw = Random(f"{name} {seed} {number}")
    seeds = reader.seeds()
    if number < len(seeds):
        return seeds[number]
    return draw.choice(reader.damages)(draw.choice(seeds), draw)


def attack(
    reader: Reader, name: str, folder: Path, *, inputs: int, seed: int = 0, until_wrong: bool = False
) -> Outcome:
    """Read so many damaged inputs; the first ones are sound, and must be read."""
    outcome = Outcome()
    sound = len(reader.seeds())
    for number in range(inputs):
        data = damaged(reader, name, seed, number)
        begin = time.process_time()
        try:
            with _limited():
                reader.read(data, folder)
        except reader.refusals as error:
            outcome.refused += 1
            wrong = _wrong_words(error) if number >= sound else f"a sound input was refused: {error}"
            if wrong is not None:
                outcome.note(wrong, number)
        except Hang:
            outcome.note("Hang", number)
        except Exception as error:
            outcome.note(_kind(error), number)
        seconds = time.process_time() - begin
        if seconds > CPU_SECONDS:
            outcome.note("more than 2 s of CPU time", number)
        outcome.slowest = max(outcome.slowest, seconds)
        outcome.inputs += 1
        if until_wrong and outcome.wrong:
            break
    return outcome


@contextmanager
def _limited() -> Iterator[None]:
    """Raise `Hang` after twice the time: what takes longer than it may is counted by its time as well."""

    def late(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, 2 * CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _wrong_words(error: Exception) -> str | None:
    """Return what is wrong with the words of an error of ours: they go to a terminal."""
    if isinstance(error, EnvlockError):
        for text in (error.message, error.hint or ""):
            if not text.isprintable() or len(text) > 2000:
                return f"{type(error).__name__} whose text is not printable, or too long"
    return None


def _kind(error: Exception) -> str:
    """Return the type of an error and where it was raised in envlock."""
    if isinstance(error, AcceptedError):
        return f"accepted: {error}"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "/envlock/" in each.filename]
    where = f"{frames[-1].filename.rpartition('/envlock/')[2]}:{frames[-1].name}" if frames else "outside envlock"
    return f"{type(error).__name__} in {where}"


def main(words: Sequence[str]) -> None:
    """Attack one reader in this process, and print the outcome."""
    from tests.chaos.readers import READERS

    name, inputs, seed = words[0], int(words[1]), int(words[2])
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    with tempfile.TemporaryDirectory(prefix="envlock-chaos-") as folder:
        outcome = attack(READERS[name], name, Path(folder), inputs=inputs, seed=seed)
    outcome.megabytes = _peak() / 1024
    print(json.dumps(vars(outcome)))


def _peak() -> int:
    """Return the most memory that this program ever held, in KiB; getrusage would count its parent's as well."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def loaded(text: str) -> Outcome:
    """Return the outcome that the program printed."""
    fields: dict[str, Any] = json.loads(text)
    return Outcome(**{**fields, "wrong": Counter(fields["wrong"])})


if __name__ == "__main__":
    main(sys.argv[1:])
