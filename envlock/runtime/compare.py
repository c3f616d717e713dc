"""Compare two sets of facts under a policy. Pure: values in, findings out, never stopping at the first."""

from __future__ import annotations

from envlock.runtime.facts import Unavailable, same
from envlock.runtime.policy import is_protected
from envlock.runtime.policy import names as tiers
from envlock.runtime.report import ABSENT, COMPARED, ERROR, INFO, UNKNOWN, Finding, clean, show
from envlock.runtime.rules import RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

    from envlock.runtime.policy import Policy

    Side = Tuple[Dict[str, Any], Mapping[str, Mapping[str, str]]]
    """The facts, and what was unavailable by path."""

ASK_AGAIN = "Remove the cause and capture again, or let the policy ignore the path."
UNINSTALL = "Uninstall it."
NOTHING = "Nothing to do."
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
    locked: Side,
    live: Side,
    policy: Policy,
    names: Tuple[str, str] = NAMES,
    *,
    is_proven: bool = False,
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
    return [
        finding
        for finding in found
        if finding.severity != INFO or not (both_untold(finding) or _is_free(finding))
    ]


def _is_free(finding: Finding) -> bool:
    """Return whether a fact is held only where the lock has it, and it has not: then it is no difference either."""
    return finding.rule == "exact_where_locked"


NEEDED = "A verdict needs evidence: Python, TensorFlow where there is one, and at least one package, compared."
BACKENDS = {"jax": True, "openvino": False, "torch": True}
"""What computes for Keras in TensorFlow's place, and whether this envlock locks its version and settings."""
BACKEND = "Another library computes everything, and of its own settings, which change bits, the lockfile has no facts."
OTHERWISE = "Use Keras' TensorFlow back end, or the policy functional, under which bits may differ."
RECAPTURE = (
    "Capture again where Keras computes with it: this envlock locks its version and its settings."
)
COMPARE = "Remove the rule of the lockfile or the project that ignores it, or capture again."


def uncompared(locked: Side, live: Side, policy: Policy) -> List[Finding]:
    """Return a finding for each of Python, TensorFlow and the packages of which no version was compared.

    Absence on both sides is no evidence, unless both were looked through: a lockfile of an environment without
    TensorFlow, or without a package that the policy itself would judge (pip alone), says so.
    """
    missing = [
        path
        for path in ("python.version", "tensorflow.version")
        if not _is_compared(path, locked, live, policy)
    ]
    if locked[0].get("tensorflow") is None and live[0].get("tensorflow") is None:
        missing = [path for path in missing if path != "tensorflow.version"]
    both = [side[0].get("packages") for side in (locked, live)]
    packages = dict.fromkeys([name for each in both if isinstance(each, dict) for name in each])
    paths = sorted(
        [f"packages.{name}.version" for name in packages], key=is_protected, reverse=True
    )
    is_compared = any(_is_compared(path, locked, live, policy) for path in paths)
    if not is_compared and not _has_nothing_to_judge(both, paths, policy):
        missing.append("packages")
    return [
        Finding(
            COMPARED,
            UNKNOWN,
            path,
            f"{path}: no version was compared",
            NEEDED,
            COMPARE,
            "design",
            weight=100,
        )
        for path in missing
    ]


def _has_nothing_to_judge(both: Sequence[Any], paths: Sequence[str], policy: Policy) -> bool:
    """Return whether both sides were looked through, and have no package that the policy's own rows judge."""
    if not all(isinstance(each, dict) for each in both):
        return False
    return all(policy.tier_rule(path) == "ignore" for path in paths)


def other_backend(locked: Side, live: Side) -> Optional[str]:
    """Return the library that computes in TensorFlow's place what Keras builds, where both sides have the same."""
    backend = _at("keras.config.backend", locked)
    if not isinstance(backend, str) or backend != _at("keras.config.backend", live):
        return None
    return backend if backend in BACKENDS else None


def unlocked_backend(locked: Side, live: Side, policy: Policy) -> List[Finding]:
    """Return a finding where another library than TensorFlow computes, and a side has no facts of its own of it.

    A lockfile then holds that library's packages, and nothing below them: JAX's own variables changed the loss of a
    small model from 0.612 to 0.688. The loosest policy lets bits differ, and demands no more.
    """
    backend = other_backend(locked, live)
    if backend is None or policy.name == tiers()[-1]:
        return []
    if all(isinstance(_at(f"keras.{backend}.settings", side), dict) for side in (locked, live)):
        return []
    path = "keras.config.backend"
    message = f"{path}: nothing below Keras' {backend} back end is locked"
    fix = RECAPTURE if BACKENDS[backend] else OTHERWISE
    return [Finding(COMPARED, UNKNOWN, path, message, BACKEND, fix, "design", weight=100)]


def _is_compared(path: str, locked: Side, live: Side, policy: Policy) -> bool:
    """Return whether the policy judges a fact that a side has: where the other has it not, that is a finding itself."""
    if not (_has(path, locked) or _has(path, live)):
        return False
    # Every tier judges these (a test holds it); looking would read the table of rows, the dearest part of a match.
    if not policy.overrides and (path == "python.version" or is_protected(path)):
        return True
    rule: str = policy.row(path)["rule"]
    return rule != "ignore"


def _has(path: str, side: Side) -> bool:
    """Return whether a side has a fact, or says why it could not be told."""
    steps = path.split(".")
    heads = [".".join(steps[: at + 1]) for at in range(len(steps))]
    return any(head in side[1] for head in heads) or _at(path, side) is not None


def _at(path: str, side: Side) -> Any:
    """Return the fact at a path; None where there is none."""
    node: Any = side[0]
    for step in path.split("."):
        node = node.get(step) if isinstance(node, dict) else None
    return node


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


def _side(
    node: Dict[str, Any], name: str, path: str, unavailable: Mapping[str, Mapping[str, str]]
) -> Any:
    if path in unavailable:
        return Unavailable(unavailable[path]["reason"], unavailable[path]["code"])
    return node.get(name, ABSENT)


def _finding(
    path: str, old: Any, new: Any, policy: Policy, names: Tuple[str, str], is_proven: bool
) -> Finding:
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
    if (
        old is ABSENT and path.startswith("packages.") and path.count(".") == 1
    ):  # the row speaks of the locked one
        fix = UNINSTALL if severity == ERROR else NOTHING
    sides = [
        f"{clean(name)} {_shown(path, value)}" for name, value in ((names[0], old), (names[1], new))
    ]
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
