"""The rules: how closely a live value must follow the locked one. Each takes (locked, live) and says yes or no.

Either side may be `ABSENT`: only `ignore`, `superset` and `exact_where_locked` accept what the lock does not have, only
`ignore` accepts that something is gone.
"""

from __future__ import annotations

from envlock.runtime.facts import same
from envlock.runtime.report import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional, Tuple


def exact(locked: Any, live: Any) -> bool:
    """Equal in value and type."""
    return same(locked, live)


def exact_where_locked(locked: Any, live: Any) -> bool:
    """Equal in value and type where the lock has a value; anything where it has none."""
    if locked is None:
        return live is not ABSENT
    return locked is ABSENT or same(locked, live)


def same_minor(locked: Any, live: Any) -> bool:
    """Versions that share epoch and first two numbers; anything that is no version must be equal."""
    left, right = release(locked), release(live)
    if left is None or right is None:
        return same(locked, live)
    return left[:3] == right[:3]


def at_least(locked: Any, live: Any) -> bool:
    """A version or a number that is not below the locked one, or any where none was locked; else equal."""
    if locked is None:
        return live is not ABSENT
    if _is_number(locked) and _is_number(live):
        return bool(live >= locked)
    left, right = release(locked), release(live)
    if left is None or right is None:
        return same(locked, live)
    return right + (0,) * len(left) >= left  # 1.2 is 1.2.0


def superset(locked: Any, live: Any) -> bool:
    """A list that has all locked items and maybe more; something new is accepted, something gone is not."""
    if locked is ABSENT:
        return True
    if isinstance(locked, list) and isinstance(live, list):
        return all(any(same(item, other) for other in live) for item in locked)
    return same(locked, live)


def within_3_percent(locked: Any, live: Any) -> bool:
    """Numbers at most 3 % apart, as drivers count a GPU's memory; anything else must be equal."""
    if _is_number(locked) and _is_number(live):
        return bool(abs(live - locked) <= abs(locked) * 0.03)
    return same(locked, live)


def proven(locked: Any, live: Any) -> bool:
    """Equal; `compare` also accepts another value where the canary has given the locked bits on this machine."""
    return same(locked, live)


def ignore(locked: Any, live: Any) -> bool:
    """Whatever it is: the difference is shown, and lets through."""
    return True


RULES: Dict[str, Callable[[Any, Any], bool]] = {
    "exact": exact,
    "exact_where_locked": exact_where_locked,
    "same_minor": same_minor,
    "at_least": at_least,
    "superset": superset,
    "within_3_percent": within_3_percent,
    "proven": proven,
    "ignore": ignore,
}


def release(value: Any) -> Optional[Tuple[int, ...]]:
    """Return epoch and numbers that a version begins with, or None when it is no version.

    2.17.0+nv25.2 gives 0, 2, 17, 0. Source: https://packaging.python.org/en/latest/specifications/version-specifiers/
    """
    if not isinstance(value, str) or len(value) > 100:
        return None
    epoch, mark, public = value.rpartition("!")
    if mark and not (epoch.isascii() and epoch.isdigit()):
        return None
    numbers = []
    for part in public.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return (int(epoch or 0), *numbers) if numbers else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
