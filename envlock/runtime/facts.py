"""What a fact is: a JSON scalar or a list of scalars, or `Unavailable` with a reason.

`None` means "looked, there is none"; a section that is absent means "not asked"; `Unavailable`
means "asked, and could not be told". The three are never equal to one another.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

    Tree = Dict[str, Any]
    """Nested dicts whose leaves are scalars, lists of scalars, or `Unavailable`."""

    Document = Dict[str, Any]
    """What a lockfile holds, checked: `facts`, `unavailable`, `policy` and more (lockfile.py)."""

TEXT_LIMIT = 1000
"""Characters: the longest text a lock holds."""


class Unavailable:
    """Asked, and could not be told.

    `reason` is one sentence for people and names no user, host or path of theirs; `code` is a
    stable word for programs, such as `permission-denied` or `nvml-9`.
    """

    __slots__ = ("code", "reason")

    def __init__(self, reason: str, code: str) -> None:
        self.reason = reason
        self.code = code

    def __repr__(self) -> str:
        return f"Unavailable({self.reason!r}, {self.code!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Unavailable):
            return False
        return self.reason == other.reason and self.code == other.code

    def __hash__(self) -> int:
        return hash((self.reason, self.code))


def split(tree: Tree) -> Tuple[Tree, Dict[str, Dict[str, str]]]:
    """Return the facts without their `Unavailable` leaves, and those by path as `{reason, code}`.

    What a lock cannot hold is unavailable, too: text that is too long or would move a terminal.
    """
    unavailable: Dict[str, Dict[str, str]] = {}
    return _keep_facts(tree, "", unavailable), unavailable


def _keep_facts(node: Tree, prefix: str, unavailable: Dict[str, Dict[str, str]]) -> Tree:
    """Return a node without its `Unavailable` leaves, which are added to `unavailable`."""
    facts: Tree = {}
    for key, value in node.items():
        if isinstance(value, dict):
            facts[key] = _keep_facts(value, f"{prefix}{key}.", unavailable)
            continue
        if value is not None and not isinstance(value, Unavailable):
            problem = _find_problem(value)
            if problem is not None:
                value = Unavailable(problem, "malformed")
        if isinstance(value, Unavailable):
            unavailable[prefix + key] = {"reason": value.reason, "code": value.code}
        else:
            facts[key] = value
    return facts


def _find_problem(value: object) -> Optional[str]:
    """Return why a lock cannot hold this value, or None when it can."""
    texts: List[object] = [value]
    if isinstance(value, list):
        texts = value
    for text in texts:
        if not isinstance(text, str):
            continue
        if len(text) > TEXT_LIMIT:
            return f"it is longer than {TEXT_LIMIT} characters"
        if not text.isprintable():
            return "it has unprintable characters"
    return None


def is_same(left: object, right: object) -> bool:
    """Return whether two fact trees are equal in value *and* in type (1, 1.0 and true are three values)."""
    if type(left) is not type(right) or left != right:
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        # The quick way: 1, 1.0 and true differ in their `repr`, and so do keys in another order.
        if repr(left) == repr(right):
            return True
        return all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return all(map(is_same, left, right))
    return True


def iter_leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[Tuple[str, Any]]:
    """Yield every leaf with its dotted path; an empty object is a leaf too."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from iter_leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
