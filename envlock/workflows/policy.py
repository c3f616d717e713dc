"""How a policy judges each fact: explain it, list what may differ, and add the project's own rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envlock.lock.document import validate
from envlock.lock.explanation import Allowed, Explained, explain_facts, list_allowed
from envlock.lock.live_facts import collect_live
from envlock.runtime.errors import LockfileError, UsageError
from envlock.runtime.judgement import build_policy, choose_machine
from envlock.runtime.policies import DEFAULT
from envlock.workflows.locks import load_document, load_lock
from envlock.workflows.settings import add_override, check_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile
    from envlock.workflows.locks import Source


def explain(
    path: str, lock: Source | None = None, *, python: Path | None = None
) -> list[Explained]:
    """Return all that is known about the facts at a path or below it; if no lockfile is found,
    under policy strict.

    Raises:
        LockfileError: the lockfile is unreadable, invalid, or newer than this envlock.
        UsageError: no lockfile and no environment can have such a fact, or there is no such
            interpreter.
        FactError: the interpreter did not answer.
    """
    check_pattern(path)
    document = _load_document(lock)
    found = collect_live(python)
    live_document = {"facts": found.facts, "unavailable": found.unavailable}
    return explain_facts(
        path, choose_machine(document, found), live_document, build_policy(document)
    )


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


def ignore(pattern: str, reason: str, lock: Source | None = None) -> tuple[Path, Lockfile | None]:
    """Add a rule to pyproject.toml that a fact may differ; return the path of that file, and the
    lockfile with this rule.

    The facts of the lockfile are not changed, and it is not written; None if there is no lockfile.

    Raises:
        LockfileError: the lockfile is unreadable, invalid, or newer than this envlock.
        UsageError: no fact can have this path, the reason is empty, or pyproject.toml cannot be
            changed.
    """
    check_pattern(pattern)
    if not reason.strip() or not reason.isprintable():
        raise UsageError(
            "the reason is empty or not printable", hint="say in one line why the fact may differ"
        )
    try:
        old = load_lock(lock)
    except LockfileError:
        if lock is not None:
            raise
        old = None
    file = add_override(Path.cwd(), pattern, "ignore", reason.strip())
    if old is None:
        return file, None
    document = old.to_document()
    document["policy"]["overrides"] = {**document["policy"]["overrides"], pattern: "ignore"}
    return file, validate(document, "to be written")
