"""Let a fact differ in a project: an override in its pyproject.toml and in its lock."""

from __future__ import annotations

from pathlib import Path

from envlock.lock.document import validate
from envlock.runtime.errors import LockfileError, UsageError
from envlock.workflows.locks import load_lock
from envlock.workflows.settings import check_pattern
from envlock.workflows.settings_changes import add_override

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile
    from envlock.workflows.locks import Source


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
