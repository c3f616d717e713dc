"""Compare two sets of facts under a policy. Pure: values in, findings out, never stopping at the first."""

from __future__ import annotations

from envlock.runtime.facts import Unavailable, same
from envlock.runtime.report import ABSENT, ERROR, INFO, UNKNOWN, Finding, clean, show
from envlock.runtime.rules import RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, Mapping, Tuple

    from envlock.runtime.policy import Policy

    Side = Tuple[Dict[str, Any], Mapping[str, Mapping[str, str]]]
    """The facts, and what was unavailable by path."""

ASK_AGAIN = "Remove the cause and capture again, or let the policy ignore the path."
PROVEN = "proven"
PROVE = "Run `envlock verify -p bits` here once: it computes the lockfile's canary and remembers equal bits."
NAMES = ("locked", "live")

STEADY = (
    *("blocked-by-system", "nvml-13", "wsl2-unsupported"),
    *("no-version", "replaced", "several-owners", "unknown-soname"),
)
"""Codes of what a platform or a build never tells (ECC under WSL2 or gVisor, a question that the driver is too old for,
the version of a library without headers, the wheel of a file that no wheel or several claim, TensorRT of NVIDIA's own
builds). Asking again, or elsewhere, helps nobody, and the file's own identity is compared."""


def compare(
    locked: Side, live: Side, policy: Policy, names: Tuple[str, str] = NAMES, *, is_proven: bool = False
) -> List[Finding]:
    """Return a finding for every path on which the sides differ, sorted by path; `names` are what the sides are called.

    A path that is unavailable on a side is never "different", nor is it equal: it is `unknown` where the policy needs
    it, information where the rule is `ignore`. Only where both sides lack it for one steady reason is nothing said.
    With `is_proven`, what the rule `proven` holds may differ.
    """
    found = [
        _finding(path, old, new, policy, names, is_proven)
        for path, old, new in sorted(_differences(locked, live), key=_path)
    ]
    return [finding for finding in found if finding.severity != INFO or not both_untold(finding)]


def _path(difference: Tuple[str, Any, Any]) -> str:
    return difference[0]


def both_untold(finding: Finding) -> bool:
    """Return whether neither side could be told."""
    return isinstance(finding.expected, Unavailable) and isinstance(finding.actual, Unavailable)


def _differences(locked: Side, live: Side) -> Iterator[Tuple[str, Any, Any]]:
    untold = _by_parent({**locked[1], **live[1]})
    above = {path[: place + 1] for path in untold for place, char in enumerate(path) if char == "."}
    stack: List[Tuple[str, Dict[str, Any], Dict[str, Any]]] = [("", locked[0], live[0])]
    while stack:
        prefix, old_node, new_node = stack.pop()
        for name in dict.fromkeys([*old_node, *new_node, *untold.get(prefix, ())]):
            path = prefix + name
            old, new = _side(old_node, name, path, locked[1]), _side(new_node, name, path, live[1])
            if isinstance(old, dict) and isinstance(new, dict):
                if f"{path}." in above or not same(old, new):
                    stack.append((path + ".", old, new))
            elif isinstance(old, Unavailable) and isinstance(new, Unavailable):
                if not old.code == new.code in STEADY:
                    yield path, old, new
            elif not same(old, new):
                yield path, old, new


def _by_parent(paths: Iterable[str]) -> Dict[str, List[str]]:
    """Return the last names of paths by what stands before them, its dot included."""
    found: Dict[str, List[str]] = {}
    for path in paths:
        name = path.rpartition(".")[2]
        found.setdefault(path[: len(path) - len(name)], []).append(name)
    return found


def _side(node: Dict[str, Any], name: str, path: str, unavailable: Mapping[str, Mapping[str, str]]) -> Any:
    if path in unavailable:
        return Unavailable(unavailable[path]["reason"], unavailable[path]["code"])
    return node.get(name, ABSENT)


def _finding(path: str, old: Any, new: Any, policy: Policy, names: Tuple[str, str], is_proven: bool) -> Finding:
    row = policy.row(path)
    severity, fix = ERROR, row["fix"]
    if row["rule"] == "ignore" or (row["rule"] == PROVEN and is_proven):
        severity = INFO
    elif isinstance(old, Unavailable) or isinstance(new, Unavailable):
        severity, fix = UNKNOWN, ASK_AGAIN
    elif RULES[row["rule"]](old, new):
        severity = INFO
    elif row["rule"] == PROVEN:
        fix = PROVE
    sides = [f"{clean(name)} {_shown(path, value)}" for name, value in ((names[0], old), (names[1], new))]
    known = policy.known(path)
    return Finding(
        row["rule"],
        severity,
        path,
        f"{path}: {', '.join(sides)}{f' ({known})' if known and severity != INFO else ''}",
        row["why"],
        fix,
        row["source"],
        expected=old,
        actual=new,
        weight=row["weight"],
    )


def _shown(path: str, value: Any) -> str:
    return "unset" if value is None and path.startswith("environ.") else show(value)
