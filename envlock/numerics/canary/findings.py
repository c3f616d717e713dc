"""A comparison of two canaries as findings of a report, and in a sentence what is equal. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from envlock.numerics.canary.causes import sentence
from envlock.numerics.canary.compare import Comparison, Difference, on_cpu
from envlock.runtime.facts import Unavailable
from envlock.runtime.policy import Policy
from envlock.runtime.report import BITS, ERROR, INFO, UNKNOWN, Finding

INCOMPARABLE = "Only results that were computed under equal conditions can be compared."
CALLED = {"tensorflow": "TensorFlow", "numpy": "NumPy"}


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
            why, fix, source = sentence(found.suspects, found.unexplained), cause.fix, ", ".join(cause.sources)
        yield Finding(
            each.path,
            rule=BITS,
            expected={"result": each.locked},
            actual=_actual(each),
            severity=INFO if row["rule"] == "ignore" else ERROR,
            why=why,
            fix=fix,
            source=source,
            weight=row["weight"],
        )


def _actual(each: Difference) -> dict[str, object]:
    apart = {} if each.distance is None else each.distance.to_json()
    return {"result": each.live, "what": each.what, **apart}


def _untold(found: Comparison, policy: Policy) -> Iterator[Finding]:
    for each in found.untold:
        row = policy.row(each.path)
        yield Finding(
            each.path,
            rule=BITS,
            expected=None,
            actual=Unavailable(each.reason, each.code),
            severity=INFO if row["rule"] == "ignore" else UNKNOWN,
            why=INCOMPARABLE,
            fix=each.fix,
            source=row["source"],
            weight=row["weight"],
        )


def notes(found: Comparison) -> list[str]:
    """Return what is equal, and what was left out; the versions that differ although the bits do not."""
    lines = []
    if found.match:
        lines.append(f"numerics: all {len(found.equal)} results have the bits of the lock{_though(found)}")
    elif found.equal:
        lines.append(f"numerics: {len(found.equal)} results have the bits of the lock")
    if found.unstable:
        lines.append(f"numerics: unstable, so not compared: {', '.join(found.unstable)}")
    return lines


def _though(found: Comparison) -> str:
    pairs = [f"{CALLED[name]} is {live}, not {locked}" for name, (locked, live) in found.versions.items()]
    return f", although {' and '.join(pairs)}" if pairs else ""
