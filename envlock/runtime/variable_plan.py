"""Which variables to set and unset: those of the lockfile first, then those that a recipe and
thread counts add. Pure.
"""

from __future__ import annotations

import sys

from envlock.runtime.collectors.environment_variables import make_recordable
from envlock.runtime.own_variables import ADDED, THREADS, format_additions, get_additions
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Dict, List, Mapping, Optional, Tuple

    from envlock.runtime.host import Host

    Change = Tuple[str, Optional[str], str]
    """A name, the new value or None for unset, and why."""

    Conflict = Tuple[str, str, Optional[str]]
    """A name, the lockfile's value, and the value of the recipe, or None for unset."""

AS_LOCKED = "as locked"
COUNTED = "the locked thread count"
NEEDED = "this TensorFlow needs it"
DEFEATS = "it defeats determinism"


class Variables:
    """The variables after the changes.

    Attributes:
        environ: all of them, with ENVLOCK_ADDED.
        changes: each that has changed, sorted by name.
        kept: each for which the lockfile's value is used instead of the recipe's, sorted by name.
    """

    __slots__ = ("changes", "environ", "kept")

    def __init__(
        self,
        environ: Dict[str, str],
        changes: List[Change],
        kept: List[Conflict],
    ) -> None:
        self.environ = environ
        self.changes = changes
        self.kept = kept


def plan_variables(
    environ: Mapping[str, str],
    facts: Mapping[str, object],
    needed: Mapping[str, str],
    unset: Collection[str],
    leave: Collection[str] = (),
) -> Variables:
    """Return the variables that the facts of a lockfile and a recipe require. If they differ, the
    lockfile's value is used.

    Args:
        environ: all present variables.
        facts: those of the lockfile; empty without one.
        needed, unset: the variables that the recipe sets and unsets.
        leave: the readers whose variables are not changed, because it is too late or not our
            decision.
    """
    own = facts.get("environ")
    locked: Mapping[str, object] = own if isinstance(own, dict) else {}
    after = locked_environ(environ, locked, leave)
    why = dict.fromkeys(locked, AS_LOCKED)
    conflicts: List[Conflict] = []
    additions = _get_kept_additions(environ, locked)
    for name, value in {**needed, **_list_thread_counts(facts)}.items():
        value_of_lock = locked.get(name)
        if not isinstance(value_of_lock, str):
            additions[name] = value
            why[name] = NEEDED if name in needed else COUNTED
        elif value_of_lock != value and name in needed:
            conflicts.append((name, value_of_lock, value))
    for name in unset:
        value_of_lock = locked.get(name)
        if isinstance(value_of_lock, str):
            conflicts.append((name, value_of_lock, None))
        elif after.pop(name, None) is not None or name in environ:
            why[name] = DEFEATS
    after.update(additions)
    after.pop(ADDED, None)
    if additions:
        after[ADDED] = format_additions(additions)
    changes = _list_changes(environ, after, why)
    return Variables(after, changes, sorted(conflicts, key=_get_name))


def _get_kept_additions(environ: Mapping[str, str], locked: Mapping[str, object]) -> Dict[str, str]:
    """Return the additions of an envlock around this process for which the lockfile has no value of
    its own.
    """
    additions = get_additions(environ)
    for name in list(additions):
        if isinstance(locked.get(name), str):
            del additions[name]
    return additions


def _list_changes(
    before: Mapping[str, str], after: Mapping[str, str], why: Mapping[str, str]
) -> List[Change]:
    """Return the differences, sorted by name, without the variable that lists envlock's additions."""
    names = [name for name in {*before, *after} if before.get(name) != after.get(name)]
    return [(name, after.get(name), why[name]) for name in sorted(names) if name != ADDED]


def _get_name(conflict: Conflict) -> str:
    return conflict[0]


def _list_thread_counts(facts: Mapping[str, object]) -> Dict[str, str]:
    """Return the thread counts that the environment of a lockfile used, by variable."""
    cpu = facts.get("cpu")
    counts: Dict[str, str] = {}
    if not isinstance(cpu, dict):
        return counts
    for name, fact in THREADS.items():
        count = cpu.get(fact)
        if type(count) is int and count > 0:
            counts[name] = str(count)
    return counts


def locked_environ(
    environ: Mapping[str, str], locked: Mapping[str, object], leave: Collection[str] = ()
) -> Dict[str, str]:
    """Return `environ` with the determinism variables as they are in the lockfile, except those of
    the readers in `leave`.

    A value known only by its hash is not changed. Nor is one that no capture can have recorded: a
    lockfile must not be able to set LD_PRELOAD to a path, or PATH at all.
    """
    after = dict(environ)
    for row in table("environ"):
        name = row["name"]
        if row["read_by"] in leave or name not in locked:
            continue
        value = locked[name]
        if value is None:
            if not row.get("held_where_locked"):
                after.pop(name, None)
        elif (
            isinstance(value, str)
            and "sha256:" not in value
            and make_recordable(value, row) == value
        ):
            after[name] = value
    return after


NAME = "PYTHONHASHSEED"


def is_fixed(host: Host) -> bool:
    """Return whether this process was started with a fixed hash seed."""
    # A value that was set later does not count: Python has already read the variable.
    if not sys.flags.hash_randomization:
        return True
    return not sys.flags.ignore_environment and is_number(host.start_environ().get(NAME, ""))


def is_number(value: str) -> bool:
    """Return whether a value fixes the hash seed: `random` and an empty value do not."""
    return value.isascii() and value.isdigit()
