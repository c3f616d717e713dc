"""Compare two sets of facts under a policy. Pure: values in, findings out; all differences are
found, not only the first.
"""

from __future__ import annotations

from envlock.runtime.comparison_rules import RULES
from envlock.runtime.exemptions import OVERRIDE
from envlock.runtime.facts import Unavailable, is_same
from envlock.runtime.policies import find_cause, find_effect, is_protected, read_value
from envlock.runtime.policies import names as tiers
from envlock.runtime.report import (
    ABSENT,
    COMPARED,
    ERROR,
    INFO,
    NOT_HELD,
    UNKNOWN,
    WARNING,
    Finding,
    Severity,
    clean,
    show,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

    from envlock.runtime.policies import Policy

    Side = Tuple[Mapping[str, object], Mapping[str, Mapping[str, str]]]
    """The facts, and what was unavailable by path."""

    Difference = Tuple[str, object, object]
    """A path, and the value of each side there: a fact, `Unavailable` or `ABSENT`."""

ASK_AGAIN = "Remove the cause, or let the policy ignore the path."
IMPORT_FAILED = "import-failed"
ASK_BY_CODE = {
    IMPORT_FAILED: (
        "Import it in Python to see the whole error, and repair that; "
        "`envlock verify --static` compares only what files say."
    ),
    "shadowed": "Rename or remove the file or folder that is imported instead.",
}
"""By the code of what is unavailable, where more is known than that."""
LOCK_AGAIN = "Capture again where it can be collected, or let the policy ignore the path."
UNINSTALL = "Uninstall it."
TAKE_AWAY = (
    "Uninstall it with apt if that has installed it; else remove its folder, or the entry of PYTHONPATH "
    "that leads to it."
)
"""For what has no INSTALLER file, such as Debian's packages and what was copied."""
NOTHING = "Nothing to do."
PROVEN = "proven"
PROVE = (
    "Run `envlock verify -p bits` here once: "
    "it computes the lockfile's canary and remembers equal bits."
)
RECOMPUTE = "Compute the lockfile's canary again on the locked machine: `envlock capture --canary`."
NAMES = ("locked", "live")
SHOWN = 4
"""How many of the facts that a lockfile does not have a message names."""
IDLE = (
    "Neither side has libcuda, NVIDIA's driver: TensorFlow computes on the CPU, and uses nothing of "
    "a CUDA toolkit that is outside of the environment."
)
"""Why a toolkit may differ where nothing uses it. Without libcuda, `import tensorflow` maps libcudart at most,
which answers every call with an error; the rest is opened only for a GPU (`BaseGPUDeviceFactory`
in gpu_device.cc). Measured with TensorFlow 2.15.1, 2.19.1 and 2.21.0: the same bits with and
without a toolkit.
"""

STEADY = (
    "blocked-by-system",
    "nvml-13",
    "wsl2-unsupported",
    "no-version",
    "replaced",
    "several-owners",
    "unknown-soname",
)
"""Codes of reasons that lie in a platform or a build and never change (ECC under WSL2 or gVisor, a
question that the driver is too old for, the version of a library without headers, the wheel of a
file that no wheel or several claim, TensorRT of NVIDIA's own builds). Collecting the fact again, or
on another machine, does not help, and the identity of the file is compared in any case.
"""


SILENT = ("exact_where_locked", "exact_or_unset", "exact_where_asked")
"""The rules by which a side that lacks a value has nothing to say."""
ASKED = "exact_where_asked"
READ_ALIKE = "What reads it takes both for the same."
DECIDED = "What it leads to is compared in its place ({}), and is the same."
UNASKED = "It can change bits, and an older envlock did not look at it."
FACTS = "facts"


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
    unasked: List[str] = []
    for difference in sorted(_iter_differences(locked, live), key=_get_path):
        waived = _find_waiver(difference, locked, live)
        finding = _make_finding(difference, policy, names, proof, waived=waived)
        # What is unset here says nothing, such as a variable of a package that is new.
        if finding.rule == ASKED and finding.expected is ABSENT and finding.actual is not None:
            unasked.append(str(finding.where))
        # A fact that may differ and is unknown, or was never locked, would only add noise.
        is_noise = are_both_unavailable(finding) or finding.rule in SILENT
        if finding.severity != INFO or not is_noise:
            findings.append(finding)
    # One cause, one finding: a variable that differs is named itself.
    told = {str(finding.where) for finding in findings if finding.severity == ERROR}
    findings = [each for each in findings if find_cause(str(each.where)) not in told]
    if unasked:
        findings.append(_make_unasked_finding(unasked))
    return findings


def _make_unasked_finding(paths: List[str]) -> Finding:
    """Return a warning about facts that a lockfile of an older envlock does not have."""
    verb = "facts are" if len(paths) > 1 else "fact is"
    shown = ", ".join(paths[:SHOWN])
    if len(paths) > SHOWN:
        shown += ", ..."
    message = f"{len(paths)} {verb} not held by this lockfile: {shown}"
    return Finding(
        NOT_HELD,
        WARNING,
        FACTS,
        message=message,
        why=UNASKED,
        fix=CAPTURE_AGAIN,
        source="design",
        weight=30,
    )


def _find_waiver(difference: Difference, locked: Side, live: Side) -> Optional[str]:
    """Return why a difference decides nothing, or None: nothing uses it, or what it leads to is equal.

    A variable may be spelled in several ways. One that names a file is held by the file, where both sides have looked
    at it. One that sets a number of threads says nothing where one side leaves the number open, and both have the one
    that the other sets.
    """
    path, old, new = difference
    if is_idle(path, locked, live):
        return IDLE
    if not path.startswith("environ."):
        return None
    if not isinstance(old, (str, type(None))) or not isinstance(new, (str, type(None))):
        return None
    old, new = read_value(path, old), read_value(path, new)
    if old == new:
        return READ_ALIKE
    effect = find_effect(path)
    if effect is None:
        return None
    causes = [_get_known(effect, side) for side in (locked, live)]
    if ABSENT in causes or not is_same(*causes):
        return None
    is_same_count = isinstance(causes[0], int) and {old, new} == {None, str(causes[0])}
    if effect.startswith("named.") or is_same_count:
        return DECIDED.format(effect)
    return None


def _get_known(path: str, side: Side) -> object:
    """Return the fact at a path; `ABSENT` if the side has none, or could not tell."""
    node: object = side[0]
    for step in path.split("."):
        if not isinstance(node, dict) or step not in node:
            return ABSENT
        node = node[step]
    return node


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
OWN_SECTIONS = ("jax", "torch")
"""The libraries beside TensorFlow that have a section of facts."""
UNHELD = "Its variables and settings can change bits, and an older envlock did not lock them."
CAPTURE_AGAIN = "Capture again: `envlock capture`."
COMPARE = "Remove the rule of the lockfile or the project that ignores it, or capture again."


def find_uncompared(locked: Side, live: Side, policy: Policy) -> List[Finding]:
    """Return a finding for each of Python, TensorFlow and the packages if none of its versions was
    compared.

    A value that is absent on both sides proves nothing. Both sides may be without TensorFlow, but an
    environment with no package that the policy judges (only pip) computes nothing.
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
    return Finding(
        COMPARED,
        UNKNOWN,
        path,
        message=message,
        why=NEEDED,
        fix=COMPARE,
        source="design",
        weight=100,
    )


def _are_packages_compared(locked: Side, live: Side, policy: Policy) -> bool:
    """Return whether a package was compared."""
    paths: List[str] = []
    for side in (locked, live):
        packages = side[0].get("packages")
        if isinstance(packages, dict):
            paths += [f"packages.{name}.version" for name in packages]
    # Facts that every policy judges come first: the table of rows is not needed for them.
    return any(
        _is_compared(path, locked, live, policy)
        for path in sorted(set(paths), key=is_protected, reverse=True)
    )


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
    settings = f"{library}.settings"
    if library is not None and all(
        isinstance(_get(settings, side), dict) for side in (locked, live)
    ):
        return []
    path = "keras.config.backend"
    message = f"{path}: nothing below Keras' {backend} back end is locked"
    fix = RECAPTURE if library is not None else OTHERWISE
    return [
        Finding(
            COMPARED,
            UNKNOWN,
            path,
            message=message,
            why=BACKEND,
            fix=fix,
            source="design",
            weight=100,
        )
    ]


def find_unproven_library(locked: Side, live: Side, policy: Policy) -> Optional[str]:
    """Return a library beside TensorFlow with which the program can compute: the canary, which
    computes with TensorFlow and NumPy, proves nothing about that. None without such a library.
    """
    backend = find_other_backend(locked, live)
    if backend is not None:
        return backend
    for name in OWN_SECTIONS:
        path = f"{name}.version"
        if _has(path, locked) and _has(path, live) and policy.row(path)["rule"] != "ignore":
            return name
    return None


def find_unheld_libraries(locked: Side, live: Side, policy: Policy) -> List[Finding]:
    """Return a warning for each installed library of which a lockfile of an older envlock has only
    the package: it does not know the library's settings. The loosest policy needs none.
    """
    findings = []
    for name in OWN_SECTIONS:
        is_asked = name in locked[0] or name in locked[1]
        if is_asked or not isinstance(live[0].get(name), dict) or policy.name == tiers()[-1]:
            continue
        if LIBRARIES.get(find_other_backend(locked, live) or "") == name:
            continue  # `find_unlocked_backend` says more
        if policy.row(f"{name}.version")["rule"] != "ignore":
            message = f"{name} is installed and not held by this lockfile"
            findings.append(
                Finding(
                    NOT_HELD,
                    WARNING,
                    name,
                    message=message,
                    why=UNHELD,
                    fix=CAPTURE_AGAIN,
                    source="design",
                    weight=80,
                )
            )
    return findings


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


def is_idle(path: str, locked: Side, live: Side) -> bool:
    """Return whether a path is about a CUDA library that nothing uses on either side: there is no
    driver, and the library is neither in the process yet nor of the environment itself.

    The wheels of the environment are held on every machine: a lockfile that was captured on a login
    node is for machines with GPUs.
    """
    section, _, rest = path.partition(".")
    name = rest.partition(".")[0]
    if section != "cuda" or name in ("", "cuda_driver", "other_cuda"):
        return False
    sides = (locked, live)
    return not any(map(_can_have_driver, sides)) and all(_is_outside(name, side) for side in sides)


def _can_have_driver(side: Side) -> bool:
    """Return whether a side has libcuda, may have it, or has a TensorFlow that is linked with CUDA
    instead of opening it.
    """
    if any(f"{path}.".startswith("cuda.cuda_driver.") for path in side[1]) or "cuda" in side[1]:
        return True
    driver, cudart = _get("cuda.cuda_driver", side), _get("cuda.cudart", side)
    if not isinstance(driver, dict) or not isinstance(cudart, dict):
        return True
    return driver.get("resolved_by") != "not found" or cudart.get("linkage") != "dlopen"


def _is_outside(name: str, side: Side) -> bool:
    """Return whether a CUDA library, if a side has it, is a file outside of the environment that no
    process has loaded before TensorFlow.
    """
    if f"cuda.{name}" in side[1] or f"cuda.{name}.file" in side[1]:
        return False
    library = _get(f"cuda.{name}", side)
    if library is None:
        return True
    if not isinstance(library, dict) or library.get("linkage") == "static":
        return False
    file = library.get("file")
    if not isinstance(file, str):
        return file is None
    if file.startswith("{prefix}") or library.get("resolved_by") in ("loaded", "LD_PRELOAD"):
        return False
    # This one is mapped by `import tensorflow`, so that only a system's own may differ.
    return name != "cudart" or file.startswith("/")


def _make_finding(
    difference: Difference,
    policy: Policy,
    names: Tuple[str, str],
    proof: Optional[Collection[str]],
    *,
    waived: Optional[str],
) -> Finding:
    path, old, new = difference
    row = policy.row(path)
    cause = find_cause(path)
    if cause is not None and policy.find_owner(cause) == OVERRIDE != policy.find_owner(path):
        row = policy.row(cause)
    if waived is not None and policy.find_owner(path) != OVERRIDE:
        row = {**row, "rule": "ignore", "why": waived, "fix": NOTHING}
    lacking = (
        _find_lacking(policy.list_witnesses(path), proof)
        if row["rule"] == PROVEN and proof is not None
        else None
    )
    severity, fix = _judge(difference, row["rule"], row["fix"], lacking == [])
    fix = name_locked_value(path, old, fix)
    if lacking and severity != INFO:
        fix = f"{RECOMPUTE} It has no result of {', '.join(lacking)}."
    is_package = path.startswith("packages.") and path.count(".") == 1
    if old is ABSENT and is_package:
        # The remedy in the row is about the locked package, which does not exist here.
        is_installed = isinstance(new, dict) and new.get("installer") is not None
        remedy = UNINSTALL if is_installed else TAKE_AWAY
        fix = remedy if severity == ERROR else NOTHING
    message = f"{path}: {clean(names[0])} {show_fact(path, old)}, {clean(names[1])} {show_fact(path, new)}"
    known = policy.describe_need(path)
    if known and severity != INFO:
        message += f" ({known})"
    return Finding(
        row["rule"],
        severity,
        path,
        message=message,
        why=row["why"],
        fix=fix,
        source=row["source"],
        expected=old,
        actual=new,
        weight=row["weight"],
    )


def name_locked_value(path: str, old: object, fix: str) -> str:
    """Return a remedy that says the locked value, where it is known and short: the way leads there."""
    if "{locked}" in fix:
        return fix.replace("{locked}", show(old))
    name = path.rpartition(".")[2]
    general = f"Set or unset {name} as locked"
    fix = fix.replace("Set or unset it as locked", general)
    if not fix.startswith(general):
        return fix
    if old is None or old is ABSENT:
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


def _judge(difference: Difference, rule: str, fix: str, is_proven: bool) -> Tuple[Severity, str]:
    """Return the severity of a difference under a rule, and the remedy: that of the row, or one for
    this case.
    """
    _, old, new = difference
    # The order matters: a fact that is ignored or proven may also be unavailable; all others may
    # not.
    if rule == "ignore" or (rule == PROVEN and is_proven):
        return INFO, fix
    if isinstance(new, Unavailable):
        return UNKNOWN, ASK_BY_CODE.get(new.code, ASK_AGAIN)
    if isinstance(old, Unavailable):
        return UNKNOWN, LOCK_AGAIN
    if RULES[rule](old, new):
        return INFO, fix
    if rule == PROVEN:
        return ERROR, PROVE
    return ERROR, fix


def show_fact(path: str, value: object) -> str:
    """Return the value of a fact as people read it; a variable is set or unset."""
    if value is None and path.startswith("environ."):
        return "unset"
    return show(value)
