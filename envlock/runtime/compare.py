"""Compare two sets of facts under a policy. Pure: values in, findings out, never stopping at the first."""

from __future__ import annotations

from envlock.runtime.facts import Unavailable, same
from envlock.runtime.report import ABSENT, ERROR, INFO, UNKNOWN, Finding
from envlock.runtime.rules import RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping, Tuple

    from envlock.runtime.policy import Policy

    Side = Tuple[Dict[str, Any], Mapping[str, Mapping[str, str]]]
    """The facts, and what was unavailable by path."""

ASK_AGAIN = "Make that fact readable, or ignore the path in the policy."


def compare(locked: Side, live: Side, policy: Policy) -> List[Finding]:
    """Return a finding for every path on which the sides differ, in no particular order.

    A path that is unavailable on a side is never "different": live, it is `unknown` (the policy needs it) or, where
    the rule is `ignore`, information; in the lock, it is information, as nothing was locked there.
    """
    if same(locked[0], live[0]) and dict(locked[1]) == dict(live[1]):
        return []
    return [_finding(path, old, new, policy) for path, old, new in _differences(locked, live)]


def _differences(locked: Side, live: Side) -> Iterator[Tuple[str, Any, Any]]:
    stack: List[Tuple[str, Dict[str, Any], Dict[str, Any]]] = [("", locked[0], live[0])]
    while stack:
        prefix, old_node, new_node = stack.pop()
        names = {**old_node, **new_node, **_below(prefix, locked[1]), **_below(prefix, live[1])}
        for name in names:
            path = prefix + name
            old, new = _side(old_node, name, path, locked[1]), _side(new_node, name, path, live[1])
            if isinstance(old, dict) and isinstance(new, dict):
                stack.append((path + ".", old, new))
            elif isinstance(old, Unavailable) and isinstance(new, Unavailable) and old.code == new.code:
                continue
            elif not same(old, new):
                yield path, old, new


def _below(prefix: str, unavailable: Mapping[str, Mapping[str, str]]) -> Dict[str, None]:
    """Return the names right below `prefix` that are themselves unavailable."""
    rest = (path[len(prefix) :] for path in unavailable if path.startswith(prefix))
    return {name: None for name in rest if name and "." not in name}


def _side(node: Dict[str, Any], name: str, path: str, unavailable: Mapping[str, Mapping[str, str]]) -> Any:
    if path in unavailable:
        return Unavailable(unavailable[path]["reason"], unavailable[path]["code"])
    return node.get(name, ABSENT)


def _finding(path: str, old: Any, new: Any, policy: Policy) -> Finding:
    row = policy.row(path)
    severity, fix = ERROR, row["fix"]
    if isinstance(old, Unavailable) or RULES[row["rule"]](old, new):
        severity = INFO
    elif isinstance(new, Unavailable):
        severity, fix = UNKNOWN, ASK_AGAIN
    return Finding(
        path,
        rule=row["rule"],
        expected=old,
        actual=new,
        severity=severity,
        why=row["why"],
        fix=fix,
        source=row["source"],
        weight=row["weight"],
    )
