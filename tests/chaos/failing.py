"""Let the disk fail under every command that writes, and look at what it says and leaves.

As a program (`python -m tests.chaos.failing COMMAND FAULTS SEED [PLANT]`) it forks for each victim, as `killer` does.
In one the Nth file operation in the project fails, as on a disk that is full, read-only or broken; in another no file
may become larger than so many bytes, which is a disk that fills up within a write.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
import traceback
from pathlib import Path
from random import Random

from envlock import cli
from envlock.runtime.errors import EnvlockError, WriteError
from tests.chaos.killer import Outcome, State, compared, is_draft, main, restore, state
from tests.chaos.victims import Victim

OPERATIONS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.listdir", "os.scandir")
FAULTS = (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES, errno.EDQUOT)
DECLARED = (0, 1, 2, 3, 4, 5, 6)
"""Exit codes that mean something; 70 is a bug."""


def attack(victim: Victim, folder: Path, faults: int, seed: int) -> Outcome:
    """Let a command fail so often."""
    outcome, draw = Outcome(), Random(seed)
    victim.prepare(folder)
    with victim.around(folder):
        restore(victim, folder)
        old = {name: state(folder / name) for name in victim.writes}
        code, said = _run(victim, folder, 0, 0, None)
        if code:
            raise AssertionError(f"the command itself fails: {said}")
        events = int(said.rpartition("events ")[2])
        new = {name: state(folder / name) for name in victim.writes}
        for number in range(faults):
            restore(victim, folder)
            fault = draw.choice(FAULTS)
            at, size = (draw.randint(1, max(events, 1)), None) if number % 3 else (0, draw.choice((0, 1, 100, 4096)))
            code, said = _run(victim, folder, at, fault, size)
            outcome.killed += code != 0
            outcome.ended += code == 0
            what = f"fault {number} ({errno.errorcode[fault]} at {at}, size {size})"
            if code not in DECLARED or "Traceback" in said:
                outcome.wrong.append(f"{what}: exit code {code}: {said[-600:]}")
            _look(victim, folder, (old, new), outcome, what)
    return outcome


def _look(
    victim: Victim, folder: Path, states: tuple[dict[str, State], dict[str, State]], outcome: Outcome, what: str
) -> None:
    for name in victim.writes:
        if (half := compared(victim, folder, name, states[0][name], states[1][name], outcome)) is not None:
            outcome.wrong.append(f"{what}: {half}")
    left = [each for each in folder.iterdir() if is_draft(each)]
    if left and "at" not in what.split("size")[0]:
        outcome.wrong.append(f"{what}: a draft is left")


def _run(victim: Victim, folder: Path, at: int, fault: int, size: int | None) -> tuple[int, str]:
    """Return exit code and words of a command in a process of its own, whose operation number `at` fails."""
    reader, teller = os.pipe()  # the words are fewer than it holds, and no limit on a file's size counts for it
    pid = os.fork()
    if pid == 0:
        _child(victim, folder, at, fault, size, teller)
    os.close(teller)
    with os.fdopen(reader, "rb") as words:
        said = words.read().decode("utf-8", "replace")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def _child(victim: Victim, folder: Path, at: int, fault: int, size: int | None, words: int) -> None:
    code = 70
    try:
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        for stream in (1, 2):
            os.dup2(words, stream)
        seen = _failing(str(folder.parent), at, fault)
        if size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        try:
            victim.run()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except EnvlockError as error:  # a function raises what its command would print
            code = error.exit_code
        except OSError as error:  # for the program that it is called in
            code = WriteError.exit_code if error.errno in cli.DISK else code
            traceback.print_exc(limit=0)
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        if size is None:
            os.write(2, f"events {seen[0]}".encode())
    finally:
        os._exit(code)


def _failing(place: str, at: int, fault: int) -> list[int]:
    seen = [0]

    def hook(event: str, about: tuple[object, ...]) -> None:
        path = about[0] if about else None
        if event in OPERATIONS and isinstance(path, str | bytes | os.PathLike):
            name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 (it follows no link, and opens nothing)
            if name.startswith(place):
                seen[0] += 1
                if seen[0] == at:
                    raise OSError(fault, os.strerror(fault), name)

    sys.addaudithook(hook)
    return seen


if __name__ == "__main__":
    main(sys.argv[1:], attack)
