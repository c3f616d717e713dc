"""What a fact is: a JSON scalar or a list of scalars, or `Unavailable` with a reason.

`None` means "looked, there is none"; a section that is absent means "not asked"; `Unavailable` means "asked,
and could not be told". The three are never equal to one another.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

    Tree = Dict[str, Any]
    """Nested dicts whose leaves are scalars, lists of scalars, or `Unavailable`."""

TEXT_LIMIT = 1000
"""Characters: the longest text a lock holds."""


class Unavailable:
    """Asked, and could not be told.

    `reason` is one sentence for people and names no user, host or path of theirs; `code` is a stable word for
    programs, such as `permission-denied` or `nvml-9`.
    """

    __slots__ = ("code", "reason")

    def __init__(self, reason: str, code: str) -> None:
        self.reason = reason
        self.code = code

    def __repr__(self) -> str:
        return f"Unavailable({self.reason!r}, {self.code!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unavailable) and (self.reason, self.code) == (
            other.reason,
            other.code,
        )

    def __hash__(self) -> int:
        return hash((self.reason, self.code))


def split(tree: Mapping[str, Any]) -> Tuple[Tree, Dict[str, Dict[str, str]]]:
    """Return the facts without their `Unavailable` leaves, and those by dotted path as `{reason, code}`."""
    unavailable: Dict[str, Dict[str, str]] = {}

    def keep(node: Mapping[str, Any], prefix: str) -> Tree:
        kept: Tree = {}
        for key, value in node.items():
            if isinstance(value, dict):
                kept[key] = keep(value, f"{prefix}{key}.")
                continue
            problem = None if value is None or isinstance(value, Unavailable) else _problem(value)
            if problem is not None:
                value = Unavailable(problem, "malformed")
            if isinstance(value, Unavailable):
                unavailable[prefix + key] = {"reason": value.reason, "code": value.code}
            else:
                kept[key] = value
        return kept

    return keep(tree, ""), unavailable


def _problem(value: Any) -> Optional[str]:
    """Return why a lock cannot hold this value, or None when it can."""
    if isinstance(value, list):
        return next(filter(None, map(_problem, value)), None)
    if not isinstance(value, str):
        return None
    if len(value) > TEXT_LIMIT:
        return f"it is longer than {TEXT_LIMIT} characters"
    return None if value.isprintable() else "it has unprintable characters"


def same(left: Any, right: Any) -> bool:
    """Return whether two fact trees are equal in value *and* in type (1, 1.0 and true are three values)."""
    if type(left) is not type(right) or left != right:
        return False
    if isinstance(
        left, dict
    ):  # the quick way, by which 1, 1.0 and true differ, knows no keys in another order
        return repr(left) == repr(right) or all(
            same(value, right[key]) for key, value in left.items()
        )
    return not isinstance(left, list) or all(map(same, left, right))


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[Tuple[str, Any]]:
    """Yield every leaf with its dotted path; an empty object is a leaf too."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
