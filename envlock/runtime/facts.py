"""What a fact is: a JSON scalar or a list of scalars, or `Unavailable` with a reason.

`None` means "looked for and does not exist"; a section that is absent means "not looked for";
`Unavailable` means "looked for, but could not be collected". The three are never equal to one
another.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

    Tree = Dict[str, Any]
    """Nested dicts whose leaves are scalars, lists of scalars, or `Unavailable`."""

    Document = Dict[str, Any]
    """The content of a lockfile after validation: `facts`, `unavailable`, `policy` and more
    (lockfile.py).
    """

TEXT_LIMIT = 1000
"""Characters: the longest text that a lockfile can have."""


class Unavailable:
    """A fact that was looked for and could not be collected.

    `reason` is one sentence, without names of users, hosts or their paths; `code` is a stable word
    for programs, such as `permission-denied` or `nvml-9`.
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
    """Return the facts without their `Unavailable` leaves, and these by path as `{reason, code}`.

    A value that a lockfile cannot have is unavailable, too: a text that is too long or has control
    characters.
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
    """Return why a lockfile cannot have this value, or None if it can."""
    texts: List[object] = value if isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str):
            continue
        if len(text) > TEXT_LIMIT:
            return f"it is longer than {TEXT_LIMIT} characters"
        if not text.isprintable():
            return "it has unprintable characters"
    return None


def is_same(left: Any, right: Any) -> bool:
    """Return whether two fact trees are equal in value *and* in type (1, 1.0 and true are three values)."""
    if type(left) is not type(right) or left != right:
        return False
    if isinstance(left, dict):
        # The fast way: 1, 1.0 and true differ in their `repr`; trees whose keys have another order
        # take the slow way.
        if repr(left) == repr(right):
            return True
        return all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return all(map(is_same, left, right))
    return True


def iter_leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[Tuple[str, Any]]:
    """Yield every leaf with its dotted path; an empty object is a leaf too."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from iter_leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern matches a path: `*` is any one name, a final `**` is a node and
    everything below it.
    """
    wanted, given = pattern.split("."), path.split(".")
    if wanted[-1] == "**":
        wanted = wanted[:-1]
        given = given[: len(wanted)]
    if len(wanted) != len(given):
        return False
    pairs = zip(wanted, given)  # noqa: B905 (Python 3.8 has no `strict`)
    return all(want in ("*", name) for want, name in pairs)
