"""The differences between two lockfiles."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from envlock.evidence.canary import canary_comparison as canaries
from envlock.lock.machine_profiles import compare_machines
from envlock.lock.models import Lockfile
from envlock.lock.pastes import Paste
from envlock.runtime.clear_values import show_in_clear
from envlock.runtime.collectors import Snapshot
from envlock.runtime.compare import FactCount, are_both_unavailable, compare
from envlock.runtime.extent import Extent
from envlock.runtime.judgement import build_policy, choose_machine
from envlock.runtime.policies import Policy
from envlock.runtime.report import Finding, Report, sort_findings
from envlock.workflows.data_capture import compare_locked_data
from envlock.workflows.pastes import diff_pastes, load_side, name_side

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source


def diff(
    expected: Source | Paste,
    actual: Source | Paste,
    policy: str = "strict",
    *,
    overrides: Mapping[str, str] | None = None,
    names: tuple[str, str] | None = None,
    one_machine: bool = False,
) -> Report:
    """Return every difference between two lockfiles: in their facts, and in the bits of their
    canaries if both have one. Of a pasted text, such as a freeze, what it states is compared.

    Args:
        expected, actual: the two lockfiles, or pasted texts.
        policy: how strictly to compare.
        overrides: rules by path pattern that go before those of the policy.
        names: the names of the two in the report; their paths when not given.
        one_machine: one side has only one machine, as the live environment does: it is compared
            with the machine of the other side that fits it best.

    Raises:
        LockfileError: one is missing, unreadable, invalid, or newer than this envlock.
        UsageError: the policy does not exist.
    """
    called = names or (name_side(expected), name_side(actual))
    one, other = load_side(expected), load_side(actual)
    rules = build_policy({"policy": {"name": policy, "overrides": dict(overrides or {})}}, policy)
    if isinstance(one, Paste) or isinstance(other, Paste):
        return diff_pastes(one, other, rules, called)
    left, right = one.to_document(), other.to_document()
    if one_machine:
        # Both are chosen before either is replaced; a side with one machine keeps that.
        here, there = _make_snapshot(left), _make_snapshot(right)
        left, right = choose_machine(left, there), choose_machine(right, here)
    sides = (left["facts"], left["unavailable"]), (right["facts"], right["unavailable"])
    # A fact that is unknown in both files is not a difference between them.
    findings = [
        finding for finding in compare(*sides, rules, called) if not are_both_unavailable(finding)
    ]
    # Either side can be the live environment, whose variables are those of this process.
    show_in_clear(findings, os.environ)
    if not one_machine:
        findings += compare_machines(left, right, rules, called)
    bits, notes, extent = _compare_canaries(one, other, rules)
    data, data_notes = compare_locked_data(one, other, rules, called)
    return Report(
        sort_findings(findings + bits + data),
        command="diff",
        policy=policy,
        overrides=len(rules.overrides),
        subject=called[0],
        notes=notes + data_notes,
        extent=Extent(facts=FactCount(*sides, rules)()).add(extent),
    )


def _make_snapshot(document: Mapping[str, Any]) -> Snapshot:
    return Snapshot(document["facts"], document["unavailable"])


def _compare_canaries(
    expected: Lockfile, actual: Lockfile, rules: Policy
) -> tuple[list[Finding], list[str], Extent]:
    if expected.numerics is None and actual.numerics is None:
        return [], [], Extent()
    if expected.numerics is None or actual.numerics is None:
        return [], ["numerics: not compared; one side has no canary"], Extent()
    compared = canaries.compare(expected.numerics, actual.numerics)
    findings = canaries.list_findings(compared, rules)
    return findings, canaries.list_notes(compared), canaries.count_operations(compared)
