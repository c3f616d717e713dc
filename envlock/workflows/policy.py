"""What a policy makes of each fact: explained and listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envlock.diagnosis.codes import check_name
from envlock.lock.acceptance import flatten
from envlock.lock.explanation import Allowed, Explained, explain_facts, list_allowed
from envlock.lock.live_facts import collect_live
from envlock.lock.locks import load_document
from envlock.lock.settings import check_pattern
from envlock.runtime.causes import list_patterns
from envlock.runtime.errors import LockfileError
from envlock.runtime.facts import is_same
from envlock.runtime.judgement import LOADED, build_policy, choose_machine
from envlock.runtime.policies import DEFAULT
from envlock.runtime.report import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source

NOT_LOOKED_AT = {
    "reason": "only `envlock verify` looks at what is loaded",
    "code": "not-looked-at",
}


def explain(
    path: str, lock: Source | None = None, *, python: Path | None = None
) -> list[Explained]:
    """Return all that is known about the facts at a path or below it, or about those of a cause
    that differ, such as a package; if no lockfile is found, under policy strict.

    Raises:
        LockfileError: the lockfile is unreadable, invalid, or newer than this envlock.
        UsageError: no lockfile and no environment can have such a fact, or there is no such
            interpreter.
        FactError: the interpreter did not answer.
    """
    document = _load_document(lock)
    patterns = [] if "." in path else list_patterns(path, document["facts"].get("packages") or ())
    if not patterns and "." not in path:
        check_name(path)
    if not patterns:
        check_pattern(path)
    found = collect_live(python)
    locked = choose_machine(document, found)
    rules = build_policy(document, tooling=found.tooling, required=found.required)
    loaded = [fact for fact in flatten(locked) if fact.startswith(f"{LOADED}.")]
    unseen = {} if LOADED in found.facts else dict.fromkeys(loaded, NOT_LOOKED_AT)
    live_document = {"facts": found.facts, "unavailable": {**found.unavailable, **unseen}}
    if not patterns:
        return explain_facts(path, locked, live_document, rules)
    explained = {
        fact.path: fact
        for pattern in patterns
        for fact in explain_facts(pattern, locked, live_document, rules)
        if fact.locked is not ABSENT or fact.live is not ABSENT
    }
    moved = [
        fact
        for fact in explained.values()
        if fact.path not in unseen and not is_same(fact.locked, fact.live)
    ]
    return moved or list(explained.values()) or explain_facts(path, locked, live_document, rules)


def _load_document(lock: Source | None) -> dict[str, Any]:
    """Return the lockfile as plain values; if none is named and none is found, one without facts
    under policy strict.
    """
    try:
        return load_document(lock)[0]
    except LockfileError:
        if lock is not None:
            raise
        return {"facts": {}, "unavailable": {}, "policy": {"name": DEFAULT, "overrides": {}}}


def allowed(lock: Source | None = None, policy: str | None = None) -> list[Allowed]:
    """Return the facts of a lockfile that may differ under its policy (or the named one), grouped
    by reason.

    Raises:
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        UsageError: there is no such policy.
    """
    document = load_document(lock)[0]
    return list_allowed(document, build_policy(document, policy))
