"""The Python API beside `assert_locked()`: the workflows the command line has, as functions."""

from __future__ import annotations

import os
from typing import Any

from envlock.lock import capture as _capture
from envlock.lock import document
from envlock.lock.models import Lockfile
from envlock.runtime.assertion import locate
from envlock.runtime.compare import both_untold, compare
from envlock.runtime.policy import Policy
from envlock.runtime.report import Finding, Report
from envlock.runtime.verify import policy_of
from envlock.runtime.verify import verify as _verify

Source = Lockfile | str | os.PathLike[str]


def capture(policy: str = "strict", overrides: dict[str, str] | None = None) -> Lockfile:
    """Return a lock of the live environment; nothing is written.

    Raises:
        LockfileError: the policy or a rule does not exist.
    """
    return _capture.capture(policy, overrides)


def load(path: str | os.PathLike[str] | None = None) -> Lockfile:
    """Return the lockfile at `path`, or the one that `assert_locked()` would use.

    Raises:
        LockfileError: it is missing, unreadable, invalid, or newer than this envlock.
    """
    return document.load(locate(path))


def verify(lock: Source | None = None, policy: str | None = None) -> Report:
    """Return every difference between a lock and the live environment; nothing is raised for a mismatch.

    Raises:
        LockfileError: the lock is missing, unreadable, invalid, or newer than this envlock.
        UsageError: the policy does not exist.
    """
    return _verify(_document(locate() if lock is None else lock), policy)


def diff(expected: Source, actual: Source, policy: str = "strict") -> Report:
    """Return every difference between two locks, of their facts and of the canaries' bits where both have one.

    Raises:
        LockfileError: one is missing, unreadable, invalid, or newer than this envlock.
        UsageError: the policy does not exist.
    """
    locks = _lock(expected), _lock(actual)
    left, right = (lock.to_document() for lock in locks)
    rules = policy_of({"policy": {"name": policy, "overrides": {}}}, policy)
    found = compare((left["facts"], left["unavailable"]), (right["facts"], right["unavailable"]), rules)
    findings = [finding for finding in found if not both_untold(finding)]  # two files that say the same do not differ
    bits, notes = _bits(*locks, rules)
    return Report(findings + bits, policy, _name(expected), _name(actual), notes)


def _bits(expected: Lockfile, actual: Lockfile, rules: Policy) -> tuple[list[Finding], list[str]]:
    if expected.numerics is None or actual.numerics is None:
        one = expected.numerics is not None or actual.numerics is not None
        return [], ["numerics: not compared, as one side has no canary"] if one else []
    from envlock.numerics.canary import compare as canaries

    found = canaries.compare(expected.numerics, actual.numerics)
    return canaries.findings(found, rules), canaries.notes(found)


def _document(source: Source) -> dict[str, Any]:
    return _lock(source).to_document()


def _lock(source: Source) -> Lockfile:
    return source if isinstance(source, Lockfile) else document.load(os.fspath(source))


def _name(source: Source) -> str:
    return "the lock" if isinstance(source, Lockfile) else os.fspath(source)
