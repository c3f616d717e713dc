"""Compare two sets of facts under a policy. Pure: values in, findings out; all differences are
found, not only the first.
"""

from __future__ import annotations

from envlock.runtime.comparison_rules import RULES
from envlock.runtime.facts import Unavailable, is_same
from envlock.runtime.policies import is_protected
from envlock.runtime.policies import names as tiers
from envlock.runtime.report import ABSENT, COMPARED, ERROR, INFO, UNKNOWN, Finding, clean, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

    from envlock.runtime.policies import Policy

    Side = Tuple[Mapping[str, object], Mapping[str, Mapping[str, str]]]
    """The facts, and what was unavailable by path."""

    Difference = Tuple[str, object, object]
    """A path, and the value of each side there: a fact, `Unavailable` or `ABSENT`."""

ASK_AGAIN = "Remove the cause and capture again, or let the policy ignore the path."
UNINSTALL = "Uninstall it."
NOTHING = "Nothing to do."
PROVEN = "proven"
PROVE = (
    "Run `envlock verify -p bits` here once: "
    "it computes the lockfile's canary and remembers equal bits."
)
RECOMPUTE = "Compute the lockfile's canary again on the locked machine: `envlock canary --update`."
NAMES = ("locked", "live")

STEADY = (
    *("blocked-by-system", "nvml-13", "wsl2-unsupported"),
    *("no-version", "replaced", "several-owners", "unknown-soname"),
)
"""Codes of reasons that lie in a platform or a build and never change (ECC under WSL2 or gVisor, a
question that the driver is too old for, the version of a library without headers, the wheel of a
file that no wheel or several claim, TensorRT of NVIDIA's own builds). Collecting the fact again, or
on another machine, does not help, and the identity of the file is compared in any case.
"""


def compare(
    locked: Side,
    live: Side,
    policy: Policy,
    names: Tuple[str, str] = NAMES,
    *,
    proof: Optional[Collection[str]] = None,
) -> List[Finding]:
    """Return a finding for every path on which the sides differ, sorted by path.

    A path that is unavailable on a side is never "different", nor is it equal: it is `unknown` if
    the policy needs it, and information if the rule is `ignore`. There is no finding only if both
    sides lack it for the same reason in `STEADY`.

    Args:
        locked, live: the two sides.
        policy: which rule each path has.
        names: what messages call the sides.
        proof: the operations of the lockfile's canary that have given the locked bits here: what the
            rule `proven` holds may differ where all of its witnesses are among them. None where
            there is no proof.
    """
    findings = []
    for difference in sorted(_iter_differences(locked, live), key=_get_path):
        finding = _make_finding(difference, policy, names, proof)
        # A fact that may differ and is unknown, or was never locked, would only add noise.
        is_noise = are_both_unavailable(finding) or finding.rule == "exact_where_locked"
        if finding.severity != INFO or not is_noise:
            findings.append(finding)
    return findings


NEEDED = (
    "A verdict needs evidence: Python, TensorFlow where there is one, "
    "and at least one package, compared."
)
LIBRARIES = {"jax": "jax", "numpy": "jax", "openvino": None, "torch": "torch"}
"""What computes for Keras in TensorFlow's place, and the library whose settings are facts; None:
this envlock locks none. Keras' back end numpy takes its neural network operations from JAX
(keras/src/backend/numpy/nn.py)."""
BACKEND = (
    "Another library computes everything, and of its own settings, "
    "which change bits, the lockfile has no facts."
)
OTHERWISE = "Use Keras' TensorFlow back end, or the policy functional, under which bits may differ."
RECAPTURE = (
    "Capture again where Keras computes with it: this envlock locks its version and its settings."
)
COMPARE = "Remove the rule of the lockfile or the project that ignores it, or capture again."


def find_uncompared(locked: Side, live: Side, policy: Policy) -> List[Finding]:
    """Return a finding for each of Python, TensorFlow and the packages if none of its versions was
    compared.

    A value that is absent on both sides proves nothing, unless both sides were searched: a lockfile
    of an environment without TensorFlow, or with no package that the policy itself judges (only
    pip), records that.
    """
    missing = []
    if not _is_compared("python.version", locked, live, policy):
        missing.append("python.version")
    is_tensorflow_anywhere = any(side[0].get("tensorflow") is not None for side in (locked, live))
    if is_tensorflow_anywhere and not _is_compared("tensorflow.version", locked, live, policy):
        missing.append("tensorflow.version")
    if not _are_packages_compared(locked, live, policy):
        missing.append("packages")
    return [_make_evidence_finding(path) for path in missing]


class FactCount:
    """Counts the facts that were compared, when it is called: a script that matches does not ask."""

    __slots__ = ("_policy", "_sides")

    def __init__(self, locked: Side, live: Side, policy: Policy) -> None:
        self._sides = (locked, live)
        self._policy = policy

    def __call__(self) -> int:
        """Return how many facts both sides have, known, that the policy does not ignore."""
        locked, live = self._sides
        number = 0
        stack: List[Tuple[str, object, object]] = [("", locked[0], live[0])]
        while stack:
            path, old, new = stack.pop()
            if path in locked[1] or path in live[1]:
                continue
            if isinstance(old, dict) and isinstance(new, dict):
                prefix = f"{path}." if path else ""
                both = old.keys() & new.keys()
                stack.extend([(prefix + name, old[name], new[name]) for name in both])
            elif self._policy.row(path)["rule"] != "ignore":
                number += 1
        return number


def _make_evidence_finding(path: str) -> Finding:
    message = f"{path}: no version was compared"
    return Finding(COMPARED, UNKNOWN, path, message, NEEDED, COMPARE, "design", weight=100)


def _are_packages_compared(locked: Side, live: Side, policy: Policy) -> bool:
    """Return whether a package was compared, or neither side has a package that the policy judges."""
    both = [locked[0].get("packages"), live[0].get("packages")]
    paths: List[str] = []
    for packages in both:
        if isinstance(packages, dict):
            paths += [f"packages.{name}.version" for name in packages]
    # Facts that every policy judges come first: the table of rows is not needed for them.
    for path in sorted(set(paths), key=is_protected, reverse=True):
        if _is_compared(path, locked, live, policy):
            return True
    are_listed = all(isinstance(packages, dict) for packages in both)
    return are_listed and all(policy.tier_rule(path) == "ignore" for path in paths)


def find_other_backend(locked: Side, live: Side) -> Optional[str]:
    """Return the library that computes for Keras instead of TensorFlow, if both sides have the same
    one.
    """
    backend = _get("keras.config.backend", locked)
    if not isinstance(backend, str) or backend != _get("keras.config.backend", live):
        return None
    if backend not in LIBRARIES:
        return None
    return backend


def find_unlocked_backend(locked: Side, live: Side, policy: Policy) -> List[Finding]:
    """Return a finding if a library other than TensorFlow computes, and one side has no facts about
    it.

    A lockfile then has the packages of that library, but not its settings: JAX's own variables
    changed the loss of a small model from 0.612 to 0.688. The loosest policy allows different bits,
    and requires no more.
    """
    backend = find_other_backend(locked, live)
    if backend is None or policy.name == tiers()[-1]:
        return []
    library = LIBRARIES[backend]
    settings = f"keras.{library}.settings"
    if library is not None and all(
        isinstance(_get(settings, side), dict) for side in (locked, live)
    ):
        return []
    path = "keras.config.backend"
    message = f"{path}: nothing below Keras' {backend} back end is locked"
    fix = OTHERWISE
    if library is not None:
        fix = RECAPTURE
    return [Finding(COMPARED, UNKNOWN, path, message, BACKEND, fix, "design", weight=100)]


def _is_compared(path: str, locked: Side, live: Side, policy: Policy) -> bool:
    """Return whether the policy judges a fact that one side has; if the other side lacks it, that
    is a finding of its own.
    """
    if not (_has(path, locked) or _has(path, live)):
        return False
    # Every policy judges these (a test checks it); the lookup would read the table of rows, the
    # most expensive part of a match.
    if not policy.overrides and (path == "python.version" or is_protected(path)):
        return True
    rule: str = policy.row(path)["rule"]
    return rule != "ignore"


def _has(path: str, side: Side) -> bool:
    """Return whether a side has a fact, or a reason why it or a node above it is unavailable."""
    head = ""
    for step in path.split("."):
        head += step
        if head in side[1]:
            return True
        head += "."
    return _get(path, side) is not None


def _get(path: str, side: Side) -> object:
    """Return the fact at a path; None if it does not exist."""
    node: object = side[0]
    for step in path.split("."):
        if not isinstance(node, dict):
            return None
        node = node.get(step)
    return node


def _get_path(difference: Difference) -> str:
    return difference[0]


def are_both_unavailable(finding: Finding) -> bool:
    """Return whether the fact was unavailable on both sides."""
    return isinstance(finding.expected, Unavailable) and isinstance(finding.actual, Unavailable)


def _iter_differences(locked: Side, live: Side) -> Iterator[Difference]:
    """Yield the paths at which the sides differ, in no particular order."""
    unavailable = _group_by_parent({**locked[1], **live[1]})
    # Equal trees are skipped, unless something below them is unavailable, which the trees do not
    # show.
    nodes_above = _nodes_above(unavailable)
    stack: List[Tuple[str, Mapping[str, object], Mapping[str, object]]] = [("", locked[0], live[0])]
    while stack:
        prefix, old_node, new_node = stack.pop()
        for name in dict.fromkeys([*old_node, *new_node, *unavailable.get(prefix, ())]):
            path = prefix + name
            old = _get_leaf(old_node, name, path, locked[1])
            new = _get_leaf(new_node, name, path, live[1])
            if isinstance(old, dict) and isinstance(new, dict):
                if f"{path}." in nodes_above or not is_same(old, new):
                    stack.append((path + ".", old, new))
            elif isinstance(old, Unavailable) and isinstance(new, Unavailable):
                if old.code != new.code or old.code not in STEADY:
                    yield path, old, new
            elif not is_same(old, new):
                yield path, old, new


def _group_by_parent(paths: Iterable[str]) -> Dict[str, List[str]]:
    """Return the last components of paths, grouped by the part before them with its dot."""
    groups: Dict[str, List[str]] = {}
    for path in paths:
        name = path.rpartition(".")[2]
        groups.setdefault(path[: len(path) - len(name)], []).append(name)
    return groups


def _nodes_above(parents: Iterable[str]) -> Set[str]:
    """Return every prefix of some parents, and the parents themselves: `gpu.` and `gpu.driver.`."""
    nodes = set()
    for parent in parents:
        for place, char in enumerate(parent):
            if char == ".":
                nodes.add(parent[: place + 1])
    return nodes


def _get_leaf(
    node: Mapping[str, object],
    name: str,
    path: str,
    unavailable: Mapping[str, Mapping[str, str]],
) -> object:
    if path in unavailable:
        return Unavailable(unavailable[path]["reason"], unavailable[path]["code"])
    return node.get(name, ABSENT)


def _make_finding(
    difference: Difference,
    policy: Policy,
    names: Tuple[str, str],
    proof: Optional[Collection[str]],
) -> Finding:
    path, old, new = difference
    row = policy.row(path)
    lacking: Optional[List[str]] = None
    if row["rule"] == PROVEN and proof is not None:
        lacking = _find_lacking(policy.list_witnesses(path), proof)
    severity, fix = _judge(difference, row["rule"], row["fix"], lacking == [])
    fix = _name_locked_value(path, old, fix)
    if lacking and severity != INFO:
        fix = f"{RECOMPUTE} It has no result of {', '.join(lacking)}."
    is_package = path.startswith("packages.") and path.count(".") == 1
    if old is ABSENT and is_package:
        # The remedy in the row is about the locked package, which does not exist here.
        fix = NOTHING
        if severity == ERROR:
            fix = UNINSTALL
    message = f"{path}: {clean(names[0])} {_show(path, old)}, {clean(names[1])} {_show(path, new)}"
    known = policy.describe_need(path)
    if known and severity != INFO:
        message += f" ({known})"
    return Finding(
        row["rule"],
        severity,
        path,
        message,
        row["why"],
        fix,
        row["source"],
        expected=old,
        actual=new,
        weight=row["weight"],
    )


def _name_locked_value(path: str, old: object, fix: str) -> str:
    """Return a remedy that says the locked value, where it is known and short: the way leads there."""
    if "{locked}" in fix:
        return fix.replace("{locked}", show(old))
    name = path.rpartition(".")[2]
    general = f"Set or unset {name} as locked"
    if not fix.startswith(general):
        return fix
    if old is None:
        return fix.replace(general, f"Unset {name}").replace(", before", " before")
    # A digest can only be compared, and blanks would need a shell's quotes.
    if isinstance(old, str) and old and not old.startswith("sha256:") and len(old.split()) == 1:
        return fix.replace(general, f"Set {name}={clean(old)}").replace(", before", " before")
    return fix


def _find_lacking(witnesses: List[str], proof: Collection[str]) -> List[str]:
    """Return what a proof lacks for a fact; a fact without a witness is proven by nothing."""
    if not witnesses:
        return ["anything that shows this fact"]
    return [name for name in witnesses if name not in proof]


def _judge(difference: Difference, rule: str, fix: str, is_proven: bool) -> Tuple[str, str]:
    """Return the severity of a difference under a rule, and the remedy: that of the row, or one for
    this case.
    """
    _, old, new = difference
    # The order matters: a fact that is ignored or proven may also be unavailable; all others may
    # not.
    if rule == "ignore" or (rule == PROVEN and is_proven):
        return INFO, fix
    if isinstance(old, Unavailable) or isinstance(new, Unavailable):
        return UNKNOWN, ASK_AGAIN
    if RULES[rule](old, new):
        return INFO, fix
    if rule == PROVEN:
        return ERROR, PROVE
    return ERROR, fix


def _show(path: str, value: object) -> str:
    if value is None and path.startswith("environ."):
        return "unset"
    return show(value)
