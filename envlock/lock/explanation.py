"""What a policy makes of facts: explained one by one, and what may differ. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from envlock.data import policy_table, read
from envlock.lock.merge import fits, flat
from envlock.runtime.facts import Unavailable
from envlock.runtime.policy import Policy, matches, names
from envlock.runtime.report import ABSENT

Document = Mapping[str, Any]
"""`facts` and `unavailable`, as a lockfile has them."""


@dataclass(frozen=True)
class Explained:
    """One fact: both values, how closely each policy holds it, and why.

    Attributes:
        path: of the fact.
        locked, live: its values, `ABSENT` or `Unavailable`; None for "none".
        rules: the rule of each policy, by its name.
        rule: the rule in force: the lock's own, or that of its policy.
        policy: the policy in force.
        why, fix: a sentence each.
        source: where `why` is known from, and how it was measured where it was.
    """

    path: str
    locked: Any
    live: Any
    rules: dict[str, str]
    rule: str
    policy: str
    why: str
    fix: str
    source: str


@dataclass(frozen=True)
class Allowed:
    """Facts that may differ for one reason: their rule, their paths, and whether it is an override of the lock."""

    rule: str
    why: str
    paths: list[str]
    by_override: bool


def explained(path: str, locked: Document, live: Document, policy: Policy) -> list[Explained]:
    """Return what is known of the facts at a path or pattern, or below it."""
    sides = flat(locked), flat(live)
    paths = sorted({each for side in sides for each in side if fits(path, each)})
    return [_explained(each, sides, policy) for each in paths or [path] if "*" not in each]


def allowances(locked: Document, policy: Policy) -> list[Allowed]:
    """Return the facts of a lock that may differ under a policy, grouped by reason."""
    found: dict[tuple[str, str, bool], list[str]] = {}
    for path in sorted(flat(locked)):
        row = policy.row(path)
        if row["rule"] != "exact":
            own = any(matches(pattern, path) for pattern in policy.overrides)
            found.setdefault((row["rule"], row["why"], own), []).append(path)
    return [Allowed(rule, why, paths, own) for (rule, why, own), paths in found.items()]


def as_json(found: list[Explained] | list[Allowed]) -> list[dict[str, Any]]:
    """Return JSON values."""
    return [
        {key: _value(value) for key, value in asdict(each).items() if value is not ABSENT}
        for each in found
    ]


def _value(value: Any) -> Any:
    return (
        {"unavailable": value.reason, "code": value.code}
        if isinstance(value, Unavailable)
        else value
    )


def _explained(
    path: str, sides: tuple[dict[str, Any], dict[str, Any]], policy: Policy
) -> Explained:
    row = policy.row(path)
    evidence = _evidence().get(row["source"].partition(" (")[0])
    source = row["source"] if evidence is None else f"{row['source']}: {evidence}"
    rules = {name: Policy(name).row(path)["rule"] for name in names()}
    locked, here = (side.get(path, ABSENT) for side in sides)
    known = policy.known(path)
    why = row["why"] if known is None else f"{row['why']} (It is held: {known}.)"
    return Explained(path, locked, here, rules, row["rule"], policy.name, why, row["fix"], source)


@cache
def _evidence() -> dict[str, str]:
    """Return what the names of evidence in the tables stand for."""
    return {**read("environ")["evidence"], **policy_table().evidence}
