"""The rules: how strictly a live value must match the locked one. Each takes (locked, live) and
returns whether it does.

Either side may be `ABSENT`: only `ignore`, `superset`, `exact_where_asked` and `exact_where_locked`
accept a value that the lockfile does not have, and only `ignore` accepts that a value is missing. For
`exact_or_unset` and `exact_where_asked` that is the same as none.
"""

from __future__ import annotations

from envlock.runtime.facts import is_same
from envlock.runtime.release import parse_release
from envlock.runtime.report import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Optional, Tuple, Union


def exact(locked: object, live: object) -> bool:
    """Equal in value and type."""
    return is_same(locked, live)


def exact_where_locked(locked: object, live: object) -> bool:
    """Equal in value and type if the lockfile has a value; anything if it does not."""
    if locked is None:
        return live is not ABSENT
    return locked is ABSENT or is_same(locked, live)


def exact_where_asked(locked: object, live: object) -> bool:
    """Equal in value and type if the lockfile has the fact, which an older envlock did not ask for:
    `compare` then says so. What belongs to a package that is not there is unset.
    """
    return locked is ABSENT or is_same(locked, None if live is ABSENT else live)


def exact_or_unset(locked: object, live: object) -> bool:
    """Equal in value and type; what a side does not list is unset there: each release of a library
    has settings of its own.
    """
    return is_same(*[None if value is ABSENT else value for value in (locked, live)])


def same_minor(locked: object, live: object) -> bool:
    """Versions with the same epoch and first two numbers; values that are not versions must be
    equal.
    """
    left, right = parse_version(locked), parse_version(live)
    if left is None or right is None:
        return is_same(locked, live)
    return left[:3] == right[:3]


def at_least(locked: object, live: object) -> bool:
    """A version or a number that is not lower than the locked one; any value if none was locked;
    values of other types must be equal.
    """
    if locked is None:
        return live is not ABSENT
    least, number = _get_number(locked), _get_number(live)
    if least is not None and number is not None:
        return number >= least
    left, right = parse_version(locked), parse_version(live)
    if left is None or right is None:
        return is_same(locked, live)
    # Padded with zeros, because 1.2 equals 1.2.0.
    return right + (0,) * len(left) >= left


def superset(locked: object, live: object) -> bool:
    """A list with all locked items, and possibly more; new items are accepted, missing ones are
    not.
    """
    if locked is ABSENT:
        return True
    if isinstance(locked, list) and isinstance(live, list):
        # With `same` instead of `in`: 1 and true are different values.
        return all(any(is_same(item, other) for other in live) for item in locked)
    return is_same(locked, live)


def within_3_percent(locked: object, live: object) -> bool:
    """Numbers at most 3 % apart, as drivers count a GPU's memory; anything else must be equal."""
    old, new = _get_number(locked), _get_number(live)
    if old is not None and new is not None:
        return abs(new - old) <= abs(old) * 0.03
    return is_same(locked, live)


def proven(locked: object, live: object) -> bool:
    """Equal; `compare` also accepts another value if the canary has given the locked bits on this
    machine.
    """
    return is_same(locked, live)


def ignore(locked: object, live: object) -> bool:
    """Any value: the difference is shown and accepted."""
    return True


RULES: Dict[str, Callable[[object, object], bool]] = {
    "exact": exact,
    "exact_where_asked": exact_where_asked,
    "exact_where_locked": exact_where_locked,
    "exact_or_unset": exact_or_unset,
    "same_minor": same_minor,
    "at_least": at_least,
    "superset": superset,
    "within_3_percent": within_3_percent,
    "proven": proven,
    "ignore": ignore,
}


def parse_version(value: object) -> Optional[Tuple[int, ...]]:
    """Return the epoch and the numbers at the start of a version, or None if it is not a version.

    2.17.0+nv25.2 gives 0, 2, 17, 0. Source:
    https://packaging.python.org/en/latest/specifications/version-specifiers/
    """
    if not isinstance(value, str) or len(value) > 100:
        return None
    epoch, mark, public = value.rpartition("!")
    if mark and not (epoch.isascii() and epoch.isdigit()):
        return None
    numbers = parse_release(public)
    if not numbers:
        return None
    return (int(epoch or 0), *numbers)


def _get_number(value: object) -> Union[int, float, None]:
    """Return a value that is a number; None for anything else, also for true and false, which are
    numbers in Python.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return None
