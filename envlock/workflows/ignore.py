"""Let a fact differ in a project: an override in its pyproject.toml and in its lock."""

from __future__ import annotations

import shlex
from pathlib import Path

from envlock.lock.document import validate
from envlock.lock.locks import load_lock
from envlock.lock.settings import check_pattern
from envlock.lock.settings_changes import add_override, find_settings
from envlock.runtime.causes import list_patterns
from envlock.runtime.errors import LockfileError, UsageError
from envlock.runtime.policies import is_protected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source
    from envlock.lock.models import Lockfile


def expand_name(name: str, lock: Source | None = None) -> list[str]:
    """Return the patterns of the facts that the cause of this name changes, such as a package of
    the lockfile; else the name itself, as a pattern.

    Raises:
        LockfileError: the lockfile is unreadable, invalid, or newer than this envlock.
        UsageError: no fact can have this path.
    """
    old = _load_if_found(lock)
    packages = old.facts.packages if old is not None else None
    patterns = list_patterns(name, packages or ())
    if not patterns:
        check_pattern(name)
    return patterns or [name]


def is_kept(pattern: str) -> bool:
    """Return whether a rule for this pattern would have no effect, as it is about what computes."""
    return is_protected(pattern.removesuffix(".**"))


def ignore(pattern: str, reason: str, lock: Source | None = None) -> tuple[Path, Lockfile | None]:
    """Add a rule to pyproject.toml that a fact may differ, or all facts of a cause; return the path
    of that file, and the lockfile with this rule.

    The facts of the lockfile are not changed, and it is not written; None if there is no lockfile.

    Raises:
        LockfileError: the lockfile is unreadable, invalid, or newer than this envlock.
        UsageError: no fact can have this path, it is about software that computes, the reason is
            empty, or pyproject.toml cannot be changed.
    """
    patterns = [each for each in expand_name(pattern, lock) if not is_kept(each)]
    if not patterns:
        raise UsageError(
            f"`{pattern}` is software that computes: no rule of a project lets it differ",
            hint=f"accept the installed one: `envlock capture --only {shlex.quote(pattern)}`",
        )
    if not reason.strip() or not reason.isprintable():
        raise UsageError(
            "the reason is empty or not printable", hint="say in one line why the fact may differ"
        )
    old = _load_if_found(lock)
    file = find_settings()
    for each in patterns:
        add_override(Path.cwd(), each, "ignore", reason.strip())
    if old is None:
        return file, None
    document = old.to_document()
    rules = dict.fromkeys(patterns, "ignore")
    document["policy"]["overrides"] = {**document["policy"]["overrides"], **rules}
    return file, validate(document, "to be written")


def _load_if_found(lock: Source | None) -> Lockfile | None:
    """Return the lockfile; None if none is named and none is found."""
    try:
        return load_lock(lock)
    except LockfileError:
        if lock is not None:
            raise
        return None
