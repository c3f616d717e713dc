"""Compare two canaries: what differs, by how much, and what can have caused it, as findings. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from envlock.data.canary import Cause, Precision, canary_table
from envlock.lock.numerics import Coverage, Group, Numerics, Operation, Program
from envlock.numerics.canary.distance import Distance, distance
from envlock.runtime.facts import Unavailable
from envlock.runtime.policy import Policy
from envlock.runtime.report import BITS, ERROR, INFO, UNKNOWN, Finding

PROGRAM = "program"
"""The group of a program's own operations in a path."""
INCOMPARABLE = "Only results from equal conditions can be compared."
CALLED = {"tensorflow": "TensorFlow", "numpy": "NumPy"}


@dataclass(frozen=True)
class Difference:
    """One operation that computes other bits, or one group that died on one side.

    Attributes:
        group, operation: where; the operation is None where the whole group died.
        locked, live: the digests, or what stands in their place.
        what: it, in a sentence without a full stop.
        distance: how far apart, where both sides have values of the same shape.
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
        return f"numerics.{self.group}" + (f".{self.operation}" if self.operation else "")


@dataclass(frozen=True)
class Untold:
    """What could not be compared: its path, the reason, a word for programs, and what to do."""

    path: str
    reason: str
    code: str
    fix: str


@dataclass
class Comparison:
    """Everything that two canaries tell about each other.

    Attributes:
        equal: paths of the operations with equal bits.
        differences: of bits.
        untold: what could not be compared.
        unstable: paths of operations that differ from themselves on both sides, or in the lock; never compared.
        versions: `tensorflow` and `numpy`, where they differ: the lock's and the live one.
        suspects: the likeliest causes of the differences, likeliest first.
        unexplained: operations that the first of them was never seen to change.
        covers: how much of each program the lock's canary covers.
    """

    equal: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    untold: list[Untold] = field(default_factory=list)
    unstable: list[str] = field(default_factory=list)
    versions: dict[str, tuple[str, str]] = field(default_factory=dict)
    suspects: list[Suspect] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    covers: list[str] = field(default_factory=list)

    @property
    def match(self) -> bool:
        """Whether something was compared, and nothing differs or could not be told."""
        return bool(self.equal) and not self.differences and not self.untold


def compare(locked: Numerics, live: Numerics) -> Comparison:
    """Return what differs between two canaries, and the likeliest causes."""
    found = Comparison()
    for name in ("tensorflow", "numpy"):
        versions = (getattr(locked, name), getattr(live, name))
        if versions[0] != versions[1]:
            found.versions[name] = versions
    if locked.battery != live.battery:
        reason = (
            f"not comparable: battery of operations locked {locked.battery}, live {live.battery}"
        )
        found.untold.append(Untold("numerics", reason, "another-battery", _AGAIN))
        return found
    for name, group in locked.groups.items():
        _compare_group(found, name, group, live.groups.get(name))
    found.untold += [
        _not_locked(f"numerics.{name}") for name in live.groups if name not in locked.groups
    ]
    if locked.program is not None:
        _compare_program(found, locked.program, live.program)
    if not (found.equal or found.differences or found.untold):
        reason = "the lockfile's canary has no result that can be compared, so nothing was compared"
        found.untold.append(Untold("numerics", reason, "nothing-compared", _AGAIN))
    if any(is_sign(each.group) for each in found.differences):
        signs = _signs(found)
        found.suspects = suspects(signs, signs | _looked_at(found, locked), canary_table().cause)
        found.unexplained = unexplained(found.suspects, signs)
    return found


def _compare_group(found: Comparison, name: str, locked: Group, live: Group | None) -> None:
    path, device = f"numerics.{name}", locked.conditions.device
    if live is None:
        fix = f"Compare on a machine with {device}, or compute the canary again here: `envlock canary --update`."
        found.untold.append(
            Untold(path, f"not comparable: no {device} on this machine", "no-device", fix)
        )
    elif locked.conditions != live.conditions:
        found.untold.append(_other_conditions(path, locked, live))
    elif locked.ended != live.ended:
        found.differences.append(_other_end(name, locked.ended, live.ended))
    else:
        for operation, old in locked.operations.items():
            _compare_operation(found, name, operation, old, live.operations.get(operation))
        added = [name for name in live.operations if name not in locked.operations]
        found.untold += [_not_locked(f"{path}.{name}") for name in added]


def _not_locked(path: str) -> Untold:
    """Return that the lockfile lacks a part of the battery: what is left of it would prove too little."""
    return Untold(
        path, "computed here; the lockfile's canary has no result for it", "not-locked", _AGAIN
    )


def _compare_program(found: Comparison, locked: Program, live: Program | None) -> None:
    found.covers = coverage(locked.targets)
    path = f"numerics.{PROGRAM}"
    if live is None:
        reason = "the operations of a program were computed on one side only"
        found.untold.append(Untold(path, reason, "not-computed", _AGAIN))
        return
    if locked.conditions != live.conditions:
        found.untold.append(_other_conditions(path, locked, live))
        return
    for name, old in locked.operations.items():
        new = live.operations.get(name)
        same = new is not None and str(new) == str(old) and new.attributes == old.attributes
        _compare_operation(
            found,
            PROGRAM,
            name,
            old.result,
            new.result if new is not None and same else None,
            f"{old}: ",
        )


def coverage(targets: Mapping[str, Coverage]) -> list[str]:
    """Return how much of each program a canary covers, a phrase each."""
    return [
        f"covers {each.covered} of {each.distinct} distinct operations of {name}"
        for name, each in targets.items()
    ]


def _other_end(group: str, locked: str | None, live: str | None) -> Difference:
    if locked is None:
        what = f"TensorFlow crashes ({live}); locked with a result"
    elif live is None:
        what = f"it computes; locked as a crash of TensorFlow ({locked})"
    else:
        what = f"TensorFlow crashes ({live}); locked as {locked}"
    return Difference(group, None, locked or "computed", live or "computed", what)


def _other_conditions(path: str, locked: Group | Program, live: Group | Program) -> Untold:
    old, new = locked.conditions.model_dump(), live.conditions.model_dump()
    names = [key for key in old if old[key] != new[key]]
    pairs = ", ".join(
        dict.fromkeys(f"{old[key]} vs {new[key]} {_CALLED.get(key, key)}" for key in names)
    )
    fix = f"Compare on {locked.conditions.device}." if _PINNED.isdisjoint(names) else _AGAIN
    return Untold(path, f"not comparable: {pairs}", "other-conditions", fix)


_CALLED = {
    **dict.fromkeys(("intra_op_threads", "inter_op_threads"), "threads"),
    "determinism": "op determinism",
    "onednn": "oneDNN",
    "xla": "XLA",
}
_PINNED = frozenset({"intra_op_threads", "inter_op_threads", "determinism"})
"""What the canary sets for itself: where it differs, one of the two was not computed by the command."""
_AGAIN = "Compute the canary again on the locked machine: `envlock canary --update`."


def _compare_operation(
    found: Comparison,
    group: str,
    name: str,
    old: Operation,
    new: Operation | None,
    called: str = "",
) -> None:
    path = f"numerics.{group}.{name}"
    if old.unstable:
        found.unstable.append(path)
    elif new is None:
        found.untold.append(Untold(path, "it could not be computed here", "not-computed", _AGAIN))
    elif new.unstable:
        reason = "its bits differ from call to call; locked with one result"
        found.untold.append(
            Untold(path, reason, "unstable", "Turn op determinism on, and check the device.")
        )
    elif new.failed is not None or old.failed is not None:
        if (old.failed is None) != (new.failed is None):
            reason = new.failed or "it computes; locked as failed"
            found.untold.append(Untold(path, reason, "failed", _AGAIN))
    elif old.sha256 == new.sha256:
        found.equal.append(path)
    else:
        found.differences.append(_difference(group, name, old, new, called))


def _difference(group: str, name: str, old: Operation, new: Operation, called: str) -> Difference:
    digests = (old.sha256 or "", new.sha256 or "")
    if (old.shape, old.dtype) != (new.shape, new.dtype):
        return Difference(
            group, name, *digests, f"{called}another result: locked {_form(old)}, live {_form(new)}"
        )
    precisions = {} if group == PROGRAM else _precisions()
    apart = distance(old, new, precisions.get(name, "float64" if old.dtype == "<f8" else "float32"))
    return Difference(group, name, *digests, called + apart.sentence(), apart)


def _form(operation: Operation) -> str:
    return f"{operation.dtype}[{'x'.join(map(str, operation.shape or []))}]"


def _precisions() -> dict[str, Precision]:
    return {row.name: row.precision for row in canary_table().operation}


def _signs(found: Comparison) -> set[str]:
    return {sign for each in found.differences for sign in _of(each)} | {
        f"version:{name}" for name in found.versions
    }


def _of(each: Difference) -> Iterator[str]:
    if is_sign(each.group):
        yield each.operation or f"ended:{each.group}"
        if each.distance is not None and each.distance.kind == "precision":
            yield f"coarse:{each.group}"


def on_cpu(group: str) -> bool:
    """Return whether the table's causes speak of a group: they were all measured on processors."""
    return not group.startswith("gpu-")


def is_sign(group: str) -> bool:
    """Return whether the table's causes name operations of a group; those of a program are in no table."""
    return on_cpu(group) and group != PROGRAM


def _looked_at(found: Comparison, locked: Numerics) -> set[str]:
    groups = {
        f"{kind}:{group}"
        for kind in ("ended", "coarse")
        for group in locked.groups
        if on_cpu(group)
    }
    equal = {path.split(".")[2] for path in found.equal if is_sign(path.split(".")[1])}
    return equal | groups | {"version:tensorflow", "version:numpy"}


def findings(found: Comparison, policy: Policy) -> list[Finding]:
    """Return a finding for every result with other bits, and for all that could not be compared.

    A path that the policy ignores gives information only, as everywhere.
    """
    return [*_different(found, policy), *_untold(found, policy)]


def _different(found: Comparison, policy: Policy) -> Iterator[Finding]:
    for each in found.differences:
        row = policy.row(each.path)
        why, fix, source = row["why"], row["fix"], row["source"]
        if on_cpu(each.group) and found.suspects:
            cause = found.suspects[0].cause
            why, fix, source = (
                sentence(found.suspects, found.unexplained),
                cause.fix,
                ", ".join(cause.sources),
            )
        yield Finding(
            BITS,
            INFO if row["rule"] == "ignore" else ERROR,
            each.path,
            f"{each.path}: {each.what}",
            why,
            fix,
            source,
            expected={"result": each.locked},
            actual=_actual(each),
            weight=row["weight"],
        )


def _actual(each: Difference) -> dict[str, object]:
    apart = {} if each.distance is None else each.distance.to_json()
    return {"result": each.live, "what": each.what, **apart}


def _untold(found: Comparison, policy: Policy) -> Iterator[Finding]:
    for each in found.untold:
        row = policy.row(each.path)
        yield Finding(
            BITS,
            INFO if row["rule"] == "ignore" else UNKNOWN,
            each.path,
            f"{each.path}: {each.reason}",
            INCOMPARABLE,
            each.fix,
            row["source"],
            expected=None,
            actual=Unavailable(each.reason, each.code),
            weight=row["weight"],
        )


EVIDENCE = "evidence over these operations and shapes, one by one, not a proof for the program"


def notes(found: Comparison) -> list[str]:
    """Return what is equal, and what was left out; the versions that differ although the bits do not."""
    lines = []
    if found.match:
        lines.append(
            f"numerics: all {len(found.equal)} results have the locked bits{_though(found)}"
        )
    elif found.equal:
        lines.append(f"numerics: {len(found.equal)} results have the locked bits")
    lines += [f"numerics: {each}; {EVIDENCE}" for each in found.covers]
    if found.unstable:
        lines.append(f"numerics: unstable, so not compared: {', '.join(found.unstable)}")
    return lines


def _though(found: Comparison) -> str:
    pairs = [
        f"{CALLED[name]} is {live}, locked {locked}"
        for name, (locked, live) in found.versions.items()
    ]
    return f", although {' and '.join(pairs)}" if pairs else ""


ALWAYS, OFTEN, NEVER = 0.97, 0.5, 0.015
"""How probable a sign is where the cause shows it always, often, or was never seen to show it."""

LEAST = 0.005  # a cause below this share is not reported


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


def suspects(
    signs: Collection[str], looked_at: Collection[str], causes: Sequence[Cause]
) -> list[Suspect]:
    """Return the causes that explain the signs, likeliest first; none where there is no sign.

    Args:
        signs: what was seen: names of operations that differ, `ended:GROUP`, `version:NAME`, `coarse:GROUP`.
        looked_at: all signs that could have been seen: an operation that was not compared says nothing.
        causes: the table's.
    """
    if not signs:
        return []
    weights = [_fit(cause, signs, looked_at) for cause in causes]
    best = max(weights)
    total = sum(math.exp(weight - best) for weight in weights)
    found = [
        Suspect(cause, math.exp(weight - best) / total)
        for cause, weight in zip(causes, weights, strict=True)
    ]
    ranked = sorted(found, key=lambda each: (-each.share, each.cause.id))
    return [each for each in ranked if each.share >= LEAST]


def _fit(cause: Cause, signs: Collection[str], looked_at: Collection[str]) -> float:
    return sum(_log(_probability(cause, sign), seen=sign in signs) for sign in looked_at)


def _probability(cause: Cause, sign: str) -> float:
    if sign in cause.always:
        return ALWAYS
    return OFTEN if sign in cause.often else NEVER


def _log(probability: float, *, seen: bool) -> float:
    return math.log(probability if seen else 1 - probability)


def unexplained(ranked: Sequence[Suspect], signs: Collection[str]) -> list[str]:
    """Return the operations that differ although the likeliest cause was never seen to change them, sorted."""
    known = {sign for each in ranked[:1] for sign in (*each.cause.always, *each.cause.often)}
    return sorted(sign for sign in signs if ":" not in sign and sign not in known) if ranked else []


def sentence(ranked: Sequence[Suspect], left: Sequence[str] = ()) -> str:
    """Return the likeliest cause with its share, the runner-up, and what is `left` unexplained."""
    if not ranked:
        return "No known cause explains it."
    first, *others = [f"{each.cause.title} ({_percent(each.share)})" for each in ranked]
    more = f" It does not explain {', '.join(left)}." if left else ""
    then = f"next: {others[0]}" if others else "no other cause is close"
    return f"Most likely cause: {first}; {then}.{more}"


def _percent(share: float) -> str:
    return (
        "more than 99 %"
        if share > 0.99
        else f"{share * 100:.0f} %"
        if share >= 0.01
        else "less than 1 %"
    )
