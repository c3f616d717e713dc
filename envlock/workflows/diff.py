"""What differs between two lockfiles."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from envlock.lock.machines import differing
from envlock.lock.models import Lockfile
from envlock.runtime.clear import show_in_clear
from envlock.runtime.collectors import Snapshot
from envlock.runtime.compare import both_untold, compare
from envlock.runtime.policy import Policy
from envlock.runtime.report import Finding, Report, ranked
from envlock.runtime.verify import for_machine, policy_of
from envlock.workflows.locks import lock_of, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


def diff(
    expected: Source,
    actual: Source,
    policy: str = "strict",
    *,
    overrides: Mapping[str, str] | None = None,
    names: tuple[str, str] | None = None,
    one_machine: bool = False,
) -> Report:
    """Return every difference between two locks, of their facts and of the canaries' bits where both have one.

    Args:
        expected, actual: the two lockfiles.
        policy: how closely to compare.
        overrides: rules by path pattern that go before the policy's.
        names: what the report calls them; their paths when not given.
        one_machine: one side is of one machine only, as the live environment: of the other side's machines, the one
            that it fits best is compared.

    Raises:
        LockfileError: one is missing, unreadable, invalid, or newer than this envlock.
        UsageError: the policy does not exist.
    """
    called = names or (name_of(expected), name_of(actual))
    one, other = lock_of(expected), lock_of(actual)
    rules = policy_of({"policy": {"name": policy, "overrides": dict(overrides or {})}}, policy)
    left, right = one.to_document(), other.to_document()
    if one_machine:
        left, right = for_machine(left, _snapshot(right)), for_machine(right, _snapshot(left))
    found = compare(
        (left["facts"], left["unavailable"]), (right["facts"], right["unavailable"]), rules, called
    )
    findings = [
        finding for finding in found if not both_untold(finding)
    ]  # two files that say the same do not differ
    show_in_clear(findings, os.environ)  # whichever side is live
    bits, notes = _bits(one, other, rules)
    return Report(
        ranked(findings + ([] if one_machine else differing(left, right, rules, called)) + bits),
        command="diff",
        policy=policy,
        overrides=len(rules.overrides),
        subject=called[0],
        notes=notes,
    )


def _snapshot(document: Mapping[str, Any]) -> Snapshot:
    return Snapshot(document["facts"], document["unavailable"])


def _bits(expected: Lockfile, actual: Lockfile, rules: Policy) -> tuple[list[Finding], list[str]]:
    if expected.numerics is None or actual.numerics is None:
        one = expected.numerics is not None or actual.numerics is not None
        return [], ["numerics: not compared; one side has no canary"] if one else []
    from envlock.numerics.canary import compare as canaries

    found = canaries.compare(expected.numerics, actual.numerics)
    return canaries.findings(found, rules), canaries.notes(found)
