"""How a policy judges facts: an explanation of each, and a list of those that may differ. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, TypeAlias

from envlock.data import read
from envlock.data.runtime_tables import load_policy_table
from envlock.lock.acceptance import Flat, flatten, matches_fact
from envlock.runtime.compare import compare, name_locked_value
from envlock.runtime.facts import Unavailable, matches
from envlock.runtime.policies import Policy, names
from envlock.runtime.report import ABSENT, Finding

Document: TypeAlias = "Mapping[str, Any]"
"""`facts` and `unavailable` of a lockfile."""


@dataclass(frozen=True)
class Explained:
    """One fact: both values, the rule of each policy, and why.

    Attributes:
        path: the path of the fact.
        locked, live: its values; `ABSENT`, `Unavailable`, or None if it does not exist.
        rules: the rule of each policy, by its name.
        rule: the rule that applies: the lockfile's own, or that of its policy.
        policy: the policy that applies.
        why, fix: a sentence each.
        source: that of `why`, with how it was measured, if it was.
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
    """Facts that may differ for the same reason.

    `by_override` is whether an override in the lockfile allows it.
    """

    rule: str
    why: str
    paths: list[str]
    by_override: bool


def explain_facts(path: str, locked: Document, live: Document, policy: Policy) -> list[Explained]:
    """Return explanations of the facts that a path or pattern matches, as a comparison explains
    what differs: a package that one of the two lacks is one fact.
    """
    parts = flatten(locked), flatten(live)
    differing = _compare(locked, live, policy) if locked["facts"] else {}
    for old, new in (_fold_packages(*parts, locked, live), parts):
        paths = sorted(known for known in {**old, **new} if matches_fact(path, known))
        if paths:
            return [_explain_fact(each, old, new, policy, differing.get(each)) for each in paths]
    return [] if "*" in path else [_explain_fact(path, *parts, policy)]


def _compare(locked: Document, live: Document, policy: Policy) -> dict[str, Finding]:
    """Return what differs, by the path of the fact."""
    sides = (locked["facts"], locked["unavailable"]), (live["facts"], live["unavailable"])
    return {finding.where.fact: finding for finding in compare(*sides, policy)}


def _fold_packages(
    locked: Flat, live: Flat, *documents: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facts of both sides, with one fact for each package that only one of them has."""
    tables = [document["facts"].get("packages") for document in documents]
    if not all(isinstance(table, Mapping) for table in tables):
        return dict(locked), dict(live)
    old, new = tables
    return _fold(locked, old, old.keys() - new.keys()), _fold(live, new, new.keys() - old.keys())


def _fold(facts: Flat, packages: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return facts with one for each of the packages of these names."""
    others = {
        path: value
        for path, value in facts.items()
        if not (path.startswith("packages.") and path.split(".")[1] in names)
    }
    return others | {f"packages.{name}": packages[name] for name in names}


def list_allowed(locked: Document, policy: Policy) -> list[Allowed]:
    """Return the facts of a lockfile that may differ under a policy, grouped by reason."""
    groups: dict[tuple[str, str, bool], list[str]] = {}
    for path in sorted(flatten(locked)):
        row = policy.row(path)
        if row["rule"] == "exact":
            continue
        by_override = any(matches(pattern, path) for pattern in policy.overrides)
        groups.setdefault((row["rule"], row["why"], by_override), []).append(path)
    return [
        Allowed(rule, why, paths, by_override) for (rule, why, by_override), paths in groups.items()
    ]


def serialize(found: list[Explained] | list[Allowed]) -> list[dict[str, object]]:
    """Return JSON values; a side without a value has no key."""
    documents = []
    for item in found:
        document: dict[str, object] = {}
        for key, value in asdict(item).items():
            if isinstance(value, Unavailable):
                document[key] = {"unavailable": value.reason, "code": value.code}
            elif value is not ABSENT:
                document[key] = value
        documents.append(document)
    return documents


def _explain_fact(
    path: str, locked: Flat, live: Flat, policy: Policy, differs: Finding | None = None
) -> Explained:
    row = policy.row(path)
    source = row["source"]
    # A source may begin with a key of [evidence], followed by details in brackets.
    evidence = _read_evidence().get(source.partition(" (")[0])
    if evidence is not None:
        source = f"{source}: {evidence}"
    why = row["why"]
    held = policy.describe_need(path)
    if held is not None:
        why = f"{why} (It is held: {held}.)"
    value = locked.get(path, ABSENT)
    if differs is not None:
        fix = differs.fix
    elif value is ABSENT or isinstance(value, Unavailable):
        fix = row["fix"].replace("{locked}", "VALUE")
    else:
        fix = name_locked_value(path, value, row["fix"])
    return Explained(
        path=path,
        locked=value,
        live=live.get(path, ABSENT),
        rules={name: Policy(name).row(path)["rule"] for name in names()},
        rule=row["rule"],
        policy=policy.name,
        why=why,
        fix=fix,
        source=source,
    )


@cache
def _read_evidence() -> dict[str, str]:
    """Return the meanings of the keys of [evidence] in the tables."""
    return {**read("environ")["evidence"], **load_policy_table().evidence}
