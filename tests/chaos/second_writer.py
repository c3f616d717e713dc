"""Another command writes the lockfile while one is at work: it writes its own change just before this one does.

`python -m tests.chaos.second_writer COMMAND 1 SEED [PLANT]`, as the killer; `each` is every command that changes a lockfile.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envlock.lock import document
from envlock.lock.folder_lock import hold_folder
from envlock.lock.models import Lockfile
from envlock.lock.writer import write_atomically
from tests.chaos.killer import Outcome, main, restore
from tests.chaos.victims import LOCK, VICTIMS, Victim, command, holding

LOCKFILE = "envlock.lock"
THEIRS = {"packages.of-another": "ignore"}
"""What the other command adds to the overrides, as `envlock ignore` does."""
WRITERS = {name: victim for name, victim in VICTIMS.items() if LOCKFILE in victim.writes and victim.sites} | {
    "capture --only": Victim(
        holding(envlock__lock=LOCK), command("capture", "-q", "--without-tensorflow", "--only", "cpu"), (LOCKFILE,)
    ),
}
"""The commands that change a lockfile; `envlock.save` alone replaces it, as its caller asks."""


EACH = Victim(lambda folder: None, lambda: None, ())
"""Stands for all of them: one process, because it takes seconds to start."""


def attack(victim: Victim, folder: Path, times: int, seed: int) -> Outcome:
    """Run each command once, in a process of its own, and look for both changes."""
    outcome = Outcome()
    chosen = WRITERS if victim is EACH else {"it": victim}
    for name, each in chosen.items():
        restore(each, folder)
        with each.around(folder):
            restore(each, folder)
            outcome.wrong += [f"{name}: {what}" for what in _attack_one(each, folder)]
        outcome.ended += 1
    return outcome


def _attack_one(victim: Victim, folder: Path) -> Iterator[str]:
    before = _add_theirs(document.load(folder / LOCKFILE))
    pid = os.fork()
    if not pid:
        _run(victim, folder)
    if os.waitpid(pid, 0)[1]:
        yield "it fails"
    after = document.load(folder / LOCKFILE)
    if not THEIRS.items() <= after.policy.overrides.items():
        yield "the other command's change is lost"
    if after == before:
        yield "its own change is lost"


def _run(victim: Victim, folder: Path) -> None:
    code = 1
    try:
        os.chdir(folder)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(null, stream)
        vars(document)["hold_folder"] = _meet_another
        try:
            victim.run()
        except SystemExit as end:
            code = int(end.code or 0)
        else:
            code = 0
    finally:
        os._exit(code)


@contextmanager
def _meet_another(folder: Path) -> Iterator[None]:
    file = Path(folder) / LOCKFILE
    write_atomically(file, document.dump(_add_theirs(document.load(file))))
    with hold_folder(folder):
        yield


def _add_theirs(lock: Lockfile) -> Lockfile:
    policy = lock.policy.model_copy(update={"overrides": {**lock.policy.overrides, **THEIRS}})
    return lock.model_copy(update={"policy": policy})


if __name__ == "__main__":
    VICTIMS.update(WRITERS, each=EACH)
    main(sys.argv[1:], attack)
