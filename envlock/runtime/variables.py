"""Which variables to set and unset: as the lock has them, then what a recipe, threads and the hash seed add. Pure."""

from __future__ import annotations

import sys

from envlock.runtime.collectors.environ import record
from envlock.runtime.own_variables import ADDED, THREADS, added, listed
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Dict, List, Mapping, Optional, Tuple

    from envlock.runtime.host import Host

AS_LOCKED = "as locked"
COUNTED = "the locked thread count"
NEEDED = "this TensorFlow needs it"
DEFEATS = "it defeats determinism"


class Variables:
    """The variables as they are to be.

    Attributes:
        environ: all of them, with ENVLOCK_ADDED.
        changes: (name, the new value or None for unset, why) of each that is not as it was, sorted by name.
        kept: (name, the lock's value, what the recipe wants or None for unset) of each on which the lock wins.
    """

    __slots__ = ("changes", "environ", "kept")

    def __init__(
        self,
        environ: Dict[str, str],
        changes: List[Tuple[str, Optional[str], str]],
        kept: List[Tuple[str, str, Optional[str]]],
    ) -> None:
        self.environ = environ
        self.changes = changes
        self.kept = kept


def plan(
    environ: Mapping[str, str],
    facts: Mapping[str, Any],
    needed: Mapping[str, str],
    unset: Collection[str],
    leave: Collection[str] = (),
) -> Variables:
    """Return the variables that a lock's facts and a recipe ask for. The lock wins over the recipe.

    Args:
        environ: all variables as they are.
        facts: those of the lock; empty without one.
        needed, unset: what the recipe sets and unsets.
        leave: who reads the variables that are not put back: too late for them, or not for us to do.
    """
    locked = facts.get("environ")
    locked = locked if isinstance(locked, dict) else {}
    after = locked_environ(environ, locked, leave)
    why = dict.fromkeys(locked, AS_LOCKED)
    additions = {
        name: value
        for name, value in added(environ).items()
        if not isinstance(locked.get(name), str)
    }
    kept: List[Tuple[str, str, Optional[str]]] = []
    for name, value in {**needed, **_counts(facts)}.items():
        if isinstance(locked.get(name), str):
            if locked[name] != value and name in needed:
                kept.append((name, locked[name], value))
        else:
            additions[name] = value
            why[name] = NEEDED if name in needed else COUNTED
    for name in unset:
        if isinstance(locked.get(name), str):
            kept.append((name, locked[name], None))
        elif after.pop(name, None) is not None or name in environ:
            why[name] = DEFEATS
    after.update(additions)
    after.pop(ADDED, None)
    if additions:
        after[ADDED] = listed(additions)
    names = sorted(
        {name for name in {**environ, **after} if environ.get(name) != after.get(name)} - {ADDED}
    )
    return Variables(
        after, [(name, after.get(name), why[name]) for name in names], sorted(kept, key=_name)
    )


def _name(entry: Tuple[str, str, Optional[str]]) -> str:
    return entry[0]


def _counts(facts: Mapping[str, Any]) -> Dict[str, str]:
    """Return the thread counts that a lock's environment had in effect, by variable."""
    cpu = facts.get("cpu")
    counts = (
        {name: cpu.get(fact) for name, fact in THREADS.items()} if isinstance(cpu, dict) else {}
    )
    return {name: str(count) for name, count in counts.items() if type(count) is int and count > 0}


def locked_environ(
    environ: Mapping[str, str], locked: Any, leave: Collection[str] = ()
) -> Dict[str, str]:
    """Return `environ` with the determinism variables as the lock has them, but those of the readers to `leave`.

    A value known only by its hash is left. So is one that no capture can have recorded as it stands: a lockfile must
    not be able to set LD_PRELOAD to a path, or PATH at all.
    """
    after = dict(environ)
    for row in table("environ") if isinstance(locked, dict) else ():
        name, value = row["name"], locked.get(row["name"], "")
        if row["read_by"] in leave:
            continue
        if value is None:
            if not row.get("held_where_locked"):
                after.pop(name, None)
        elif (
            name in locked
            and isinstance(value, str)
            and "sha256:" not in value
            and record(value, row) == value
        ):
            after[name] = value
    return after


NAME = "PYTHONHASHSEED"


def is_fixed(host: Host) -> bool:
    """Return whether this process was started with a fixed hash seed; what was set in it since does not count."""
    if not sys.flags.hash_randomization:
        return True
    return not sys.flags.ignore_environment and is_number(host.start_environ().get(NAME, ""))


def is_number(value: str) -> bool:
    """Return whether a value fixes the hash seed: `random` and nothing do not."""
    return value.isascii() and value.isdigit()
