"""Compare two canaries: the differences, their size, and the likely causes, as findings. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from envlock.data.canary_tables import Cause, Precision, load_canary_table
from envlock.evidence.canary.canary_summary import describe_coverage
from envlock.evidence.canary.distance import Distance, measure_distance
from envlock.lock.numerics import Group, Numerics, Operation, Program
from envlock.runtime.extent import Extent
from envlock.runtime.facts import Unavailable
from envlock.runtime.policies import Policy
from envlock.runtime.report import BITS, ERROR, INFO, UNKNOWN, Evidence, Finding, Severity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.evidence.canary.canary_run import Canary

PROGRAM = "program"
"""The group of a program's own operations in a path."""
INCOMPARABLE = "Only results from equal conditions can be compared."
CALLED = {"tensorflow": "TensorFlow", "numpy": "NumPy"}
FINE_TYPE = "<f8"
"""The type float64, by NumPy's name."""

_CALLED = {
    "intra_op_threads": "threads",
    "inter_op_threads": "threads",
    "determinism": "op determinism",
    "onednn": "oneDNN",
    "xla": "XLA",
}
_PINNED = frozenset({"intra_op_threads", "inter_op_threads", "determinism"})
"""Settings of the canary itself: if these differ, one of the two canaries was not computed by the
command.
"""
_AGAIN = "Compute the canary again on the locked machine: `envlock capture --canary`."


@dataclass(frozen=True)
class Difference:
    """One operation that computes different bits, or one group that crashed on one side.

    Attributes:
        group, operation: the place; the operation is None if the whole group crashed.
        locked, live: the digests, or the words instead of them.
        what: the difference, as a sentence without a full stop.
        distance: the size of the difference, if both sides have values of the same shape.
    """

    group: str
    operation: str | None
    locked: str
    live: str
    what: str
    distance: Distance | None = None

    @property
    def path(self) -> str:
        """The dotted path in a lockfile."""
        path = f"numerics.{self.group}"
        if self.operation is not None:
            path += f".{self.operation}"
        return path


@dataclass(frozen=True)
class Incomparable:
    """A result that could not be compared: its path, the reason, a word for programs, and a remedy."""

    path: str
    reason: str
    code: str
    fix: str


@dataclass
class Comparison:
    """The differences between two canaries, and their causes.

    Attributes:
        equal: paths of the operations with equal bits.
        differences: operations with different bits.
        incomparable: results that could not be compared.
        unstable: paths of operations that vary on both sides, or in the lockfile; never compared.
        versions: `tensorflow` and `numpy`, if they differ: the lockfile's and the live one.
        suspects: the likeliest causes of the differences, likeliest first.
        unexplained: operations that the first of these causes was never seen to change.
        covers: how much of each program the lockfile's canary covers.
    """

    equal: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    incomparable: list[Incomparable] = field(default_factory=list)
    unstable: list[str] = field(default_factory=list)
    versions: dict[str, tuple[str, str]] = field(default_factory=dict)
    suspects: list[Suspect] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    covers: list[str] = field(default_factory=list)

    @property
    def match(self) -> bool:
        """Whether something was compared, and nothing differs or could not be compared."""
        return bool(self.equal) and not self.differences and not self.incomparable


@dataclass(frozen=True)
class CanaryEvidence(Evidence):
    """What a canary attaches to a report.

    Attributes:
        canary: the computed canary; None in a report on another subject.
        causes: the causes of a difference, the likeliest first; None if nothing was compared.
    """

    canary: Canary | None = None
    causes: tuple[Suspect, ...] | None = None

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        document: dict[str, object] = {}
        if self.canary is not None:
            document["numerics"] = self.canary.numerics.model_dump(mode="json", exclude_unset=True)
            document["seconds"] = self.canary.seconds
            document["cpu_seconds"] = self.canary.cpu_seconds
        if self.causes is not None:
            document["causes"] = list(map(Suspect.to_json, self.causes))
        return document


def count_operations(found: Comparison) -> Extent:
    """Return how many operations were compared."""
    return Extent(operations=len(found.equal) + len(found.differences))


def compare(locked: Numerics, live: Numerics) -> Comparison:
    """Return the differences between two canaries, and the likeliest causes."""
    found = Comparison()
    if locked.tensorflow != live.tensorflow:
        found.versions["tensorflow"] = (locked.tensorflow, live.tensorflow)
    if locked.numpy != live.numpy:
        found.versions["numpy"] = (locked.numpy, live.numpy)
    # What operations of a later battery compute is not known here; those of earlier ones are.
    if locked.battery > live.battery:
        versions = f"locked {locked.battery}, live {live.battery}"
        reason = f"not comparable: battery of operations {versions}"
        found.incomparable.append(Incomparable("numerics", reason, "another-battery", _AGAIN))
        return found
    if locked.battery < live.battery:
        locked, live = _leave_out_newer(found, locked, live)
    for name, group in locked.groups.items():
        _compare_group(found, name, group, live.groups.get(name))
    for name in live.groups:
        if name not in locked.groups:
            found.incomparable.append(_report_addition(f"numerics.{name}"))
    if locked.program is not None:
        _compare_program(found, locked.program, live.program)
    if not (found.equal or found.differences or found.incomparable):
        reason = "the lockfile's canary has no result that can be compared, so nothing was compared"
        found.incomparable.append(Incomparable("numerics", reason, "nothing-compared", _AGAIN))
    _find_causes(found, locked)
    return found


def _leave_out_newer(
    found: Comparison, locked: Numerics, live: Numerics
) -> tuple[Numerics, Numerics]:
    """Return both without the operations that the battery of an older lock had not got yet, or had otherwise.

    They are named: equal bits of the others prove that much less.
    """
    newer = {row.name for row in load_canary_table().operation if row.since > locked.battery}
    lacking: dict[str, None] = {}
    sides = []
    for side in (locked, live):
        groups = {}
        for name, group in side.groups.items():
            kept = {}
            for operation, result in group.operations.items():
                if operation in newer:
                    lacking[operation] = None
                else:
                    kept[operation] = result
            # A group of which nothing is left was not there; one that ended its process was.
            if kept or group.ended is not None:
                groups[name] = group.model_copy(update={"operations": kept})
        sides.append(side.model_copy(update={"groups": groups}))
    what = f"the lockfile's battery {locked.battery} has no {', '.join(lacking)}"
    found.incomparable.append(Incomparable("numerics", what, "older-battery", _AGAIN))
    before, here = sides
    return before, here


def _compare_group(found: Comparison, name: str, locked: Group, live: Group | None) -> None:
    path, device = f"numerics.{name}", locked.conditions.device
    if live is None:
        reason = f"not comparable: no {device} on this machine"
        again = "compute the canary again here: `envlock capture --canary`"
        fix = f"Compare on a machine with {device}, or {again}."
        found.incomparable.append(Incomparable(path, reason, "no-device", fix))
    elif locked.conditions != live.conditions:
        found.incomparable.append(_compare_conditions(path, locked, live))
    elif locked.ended != live.ended:
        found.differences.append(_compare_ends(name, locked.ended, live.ended))
    else:
        for operation, old in locked.operations.items():
            new = live.operations.get(operation)
            _compare_operation(found, name, operation, old, new)
        for operation in live.operations:
            if operation not in locked.operations:
                found.incomparable.append(_report_addition(f"{path}.{operation}"))


def _report_addition(path: str) -> Incomparable:
    """Return that the lockfile lacks a part of the battery, without which the rest would prove too
    little.
    """
    reason = "computed here; the lockfile's canary has no result for it"
    return Incomparable(path, reason, "not-locked", _AGAIN)


def _compare_program(found: Comparison, locked: Program, live: Program | None) -> None:
    found.covers = describe_coverage(locked.targets)
    path = f"numerics.{PROGRAM}"
    if live is None:
        reason = "the operations of a program were computed on one side only"
        found.incomparable.append(Incomparable(path, reason, "not-computed", _AGAIN))
        return
    if locked.conditions != live.conditions:
        found.incomparable.append(_compare_conditions(path, locked, live))
        return
    for name, old in locked.operations.items():
        new = live.operations.get(name)
        result = None
        # A name is a number among operations of its kind: the same name can be another operation in
        # another program.
        if new is not None and str(new) == str(old) and new.attributes == old.attributes:
            result = new.result
        _compare_operation(found, PROGRAM, name, old.result, result, f"{old}: ")


def _compare_ends(group: str, locked: str | None, live: str | None) -> Difference:
    """Return the difference if TensorFlow crashed on one side only, or in different ways."""
    if locked is None:
        what = f"TensorFlow crashes ({live}); locked with a result"
    elif live is None:
        what = f"it computes; locked as a crash of TensorFlow ({locked})"
    else:
        what = f"TensorFlow crashes ({live}); locked as {locked}"
    return Difference(group, None, locked or "computed", live or "computed", what)


def _compare_conditions(path: str, locked: Group | Program, live: Group | Program) -> Incomparable:
    """Return the conditions that differ, so that the results cannot be compared."""
    old, new = locked.conditions.model_dump(), live.conditions.model_dump()
    names = []
    # Both numbers of threads are called "threads", and often differ alike: such a phrase is listed
    # once.
    pairs: dict[str, None] = {}
    for name, value in old.items():
        if value != new[name]:
            names.append(name)
            pairs[f"{value} vs {new[name]} {_CALLED.get(name, name)}"] = None
    fix = f"Compare on {locked.conditions.device}." if _PINNED.isdisjoint(names) else _AGAIN
    return Incomparable(path, f"not comparable: {', '.join(pairs)}", "other-conditions", fix)


def _compare_operation(
    found: Comparison,
    group: str,
    name: str,
    old: Operation,
    new: Operation | None,
    title: str = "",
) -> None:
    """Add the result of comparing one operation; `title` comes before the distance of two results."""
    path = f"numerics.{group}.{name}"
    if old.unstable:
        found.unstable.append(path)
    elif new is None:
        reason = "it could not be computed here"
        found.incomparable.append(Incomparable(path, reason, "not-computed", _AGAIN))
    elif new.unstable:
        reason = "its bits differ from call to call; locked with one result"
        fix = "Turn op determinism on, and check the device."
        found.incomparable.append(Incomparable(path, reason, "unstable", fix))
    elif new.failed is not None or old.failed is not None:
        # Failing on both sides is neither equality nor a difference: nothing was computed.
        if old.failed is None or new.failed is None:
            reason = new.failed or "it computes; locked as failed"
            found.incomparable.append(Incomparable(path, reason, "failed", _AGAIN))
    elif old.sha256 == new.sha256:
        found.equal.append(path)
    else:
        found.differences.append(_measure_difference(group, name, old, new, title))


def _measure_difference(
    group: str, name: str, old: Operation, new: Operation, title: str
) -> Difference:
    digests = (old.sha256 or "", new.sha256 or "")
    if (old.shape, old.dtype) != (new.shape, new.dtype):
        forms = f"locked {_describe_form(old)}, live {_describe_form(new)}"
        return Difference(group, name, *digests, f"{title}another result: {forms}")
    apart = measure_distance(old, new, _find_precision(group, name, old))
    return Difference(group, name, *digests, title + apart.describe(), apart)


def _find_precision(group: str, name: str, operation: Operation) -> Precision:
    """Return the precision of an operation: that of the table, which can be coarser than its type."""
    if group != PROGRAM:
        for row in load_canary_table().operation:
            if row.name == name:
                return row.precision
    if operation.dtype == FINE_TYPE:
        return "float64"
    return "float32"


def _describe_form(operation: Operation) -> str:
    return f"{operation.dtype}[{'x'.join(map(str, operation.shape or []))}]"


def is_on_cpu(group: str) -> bool:
    """Return whether the causes in the table apply to a group: all of them were measured on
    processors.
    """
    return not group.startswith("gpu-")


def is_sign(group: str) -> bool:
    """Return whether the table of causes has the operations of a group; it has none of programs."""
    return is_on_cpu(group) and group != PROGRAM


def _find_causes(found: Comparison, locked: Numerics) -> None:
    """Fill in the suspects if an operation differs that the table has."""
    signs = set()
    for difference in found.differences:
        if not is_sign(difference.group):
            continue
        signs.add(difference.operation or f"ended:{difference.group}")
        if difference.distance is not None and difference.distance.kind == "precision":
            signs.add(f"coarse:{difference.group}")
    if not signs:
        return
    signs.update(map("version:{}".format, found.versions))
    possible = signs | _collect_possible_signs(found, locked)
    found.suspects = rank_causes(signs, possible, load_canary_table().cause)
    found.unexplained = find_unexplained(found.suspects, signs)


def _collect_possible_signs(found: Comparison, locked: Numerics) -> set[str]:
    """Return the signs that could have been seen besides the differences."""
    signs = {"version:tensorflow", "version:numpy"}
    for group in locked.groups:
        if is_on_cpu(group):
            signs |= {f"ended:{group}", f"coarse:{group}"}
    for path in found.equal:
        parts = path.split(".")
        if is_sign(parts[1]):
            signs.add(parts[2])
    return signs


def list_findings(found: Comparison, policy: Policy) -> list[Finding]:
    """Return a finding for every result with different bits, and for every one that could not be
    compared.

    A path that the policy ignores gives only information, as in all reports.
    """
    return [*_list_differences(found, policy), *_list_incomparable(found, policy)]


def _list_differences(found: Comparison, policy: Policy) -> Iterator[Finding]:
    for difference in found.differences:
        row = policy.row(difference.path)
        why, fix, source = row["why"], row["fix"], row["source"]
        if is_on_cpu(difference.group) and found.suspects:
            cause = found.suspects[0].cause
            why, fix = describe_causes(found.suspects, found.unexplained), cause.fix
            source = ", ".join(cause.sources)
        severity: Severity = INFO if row["rule"] == "ignore" else ERROR
        actual: dict[str, object] = {"result": difference.live, "what": difference.what}
        if difference.distance is not None:
            actual.update(difference.distance.to_json())
        yield Finding(
            BITS,
            severity,
            difference.path,
            message=f"{difference.path}: {difference.what}",
            why=why,
            fix=fix,
            source=source,
            expected={"result": difference.locked},
            actual=actual,
            weight=row["weight"],
        )


def _list_incomparable(found: Comparison, policy: Policy) -> Iterator[Finding]:
    for part in found.incomparable:
        row = policy.row(part.path)
        severity: Severity = INFO if row["rule"] == "ignore" else UNKNOWN
        yield Finding(
            BITS,
            severity,
            part.path,
            message=f"{part.path}: {part.reason}",
            why=INCOMPARABLE,
            fix=part.fix,
            source=row["source"],
            expected=None,
            actual=Unavailable(part.reason, part.code),
            weight=row["weight"],
        )


LIMIT_OF_EVIDENCE = (
    "evidence over these operations and shapes, one by one, not a proof for the program"
)


def list_notes(found: Comparison) -> list[str]:
    """Return what is equal and what was left out, as sentences."""
    lines = []
    number = len(found.equal)
    if found.match:
        lines.append(f"numerics: all {number} results have the locked bits{_list_versions(found)}")
    elif number:
        lines.append(f"numerics: {number} results have the locked bits")
    lines += [f"numerics: {phrase}; {LIMIT_OF_EVIDENCE}" for phrase in found.covers]
    if found.unstable:
        lines.append(f"numerics: unstable, so not compared: {', '.join(found.unstable)}")
    return lines


def _list_versions(found: Comparison) -> str:
    pairs = []
    for name, (locked, live) in found.versions.items():
        pairs.append(f"{CALLED[name]} is {live}, locked {locked}")
    if not pairs:
        return ""
    return f", although {' and '.join(pairs)}"


# Neither 1 nor 0, with which a single unexpected sign would rule out a cause for good.
ALWAYS, OFTEN, NEVER = 0.97, 0.5, 0.015
"""The probability of a sign that a cause always shows, often shows, or was never seen to show."""

LEAST = 0.005
"""A cause with a smaller share is not reported."""


@dataclass(frozen=True)
class Suspect:
    """A cause, and its share among the known causes (0 to 1)."""

    cause: Cause
    share: float

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        row = self.cause
        return {
            "id": row.id,
            "title": row.title,
            "likelihood": round(self.share, 3),
            "why": row.why,
            "fix": row.fix,
            "sources": row.sources,
        }


def rank_causes(
    signs: Collection[str], possible: Collection[str], causes: Sequence[Cause]
) -> list[Suspect]:
    """Return the causes that explain the signs, likeliest first; empty without signs.

    Args:
        signs: the differences: names of operations, `ended:GROUP`, `version:NAME`, `coarse:GROUP`.
        possible: all signs that could have been seen: an operation that was not compared tells
            nothing.
        causes: those of the table.
    """
    if not signs:
        return []
    weights = [_weigh_cause(cause, signs, possible) for cause in causes]
    # Relative to the best one: the products of many probabilities are too small for a float.
    best = max(weights)
    total = sum(math.exp(weight - best) for weight in weights)
    found = []
    for cause, weight in zip(causes, weights, strict=True):
        share = math.exp(weight - best) / total
        if share >= LEAST:
            found.append(Suspect(cause, share))
    return sorted(found, key=lambda suspect: (-suspect.share, suspect.cause.id))


def _weigh_cause(cause: Cause, signs: Collection[str], possible: Collection[str]) -> float:
    """Return the logarithm of the probability of exactly these signs, given this cause."""
    logarithms = []
    for sign in possible:
        probability = NEVER
        if sign in cause.always:
            probability = ALWAYS
        elif sign in cause.often:
            probability = OFTEN
        if sign not in signs:
            probability = 1 - probability
        logarithms.append(math.log(probability))
    return sum(logarithms)


def find_unexplained(ranked: Sequence[Suspect], signs: Collection[str]) -> list[str]:
    """Return the operations that differ and that the likeliest cause was never seen to change,
    sorted.
    """
    if not ranked:
        return []
    known = {*ranked[0].cause.always, *ranked[0].cause.often}
    return sorted(sign for sign in signs if ":" not in sign and sign not in known)


def describe_causes(ranked: Sequence[Suspect], left: Sequence[str] = ()) -> str:
    """Return the likeliest cause with its share, the runner-up, and the operations that are `left`
    unexplained.
    """
    if not ranked:
        return "No known cause explains it."
    second = (
        f"next: {_describe_suspect(ranked[1])}" if len(ranked) > 1 else "no other cause is close"
    )
    text = f"Most likely cause: {_describe_suspect(ranked[0])}; {second}."
    if left:
        text += f" It does not explain {', '.join(left)}."
    return text


def _describe_suspect(suspect: Suspect) -> str:
    percent = f"{suspect.share * 100:.0f} %"
    if suspect.share > 0.99:
        percent = "more than 99 %"
    elif suspect.share < 0.01:
        percent = "less than 1 %"
    return f"{suspect.cause.title} ({percent})"
