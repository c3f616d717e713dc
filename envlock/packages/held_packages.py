"""The packages that runs of entry points have used, in a lockfile."""

from __future__ import annotations

from pathlib import Path

from envlock.lock.document import load, save, validate
from envlock.packages.installation import find_installation
from envlock.packages.observation import IMPORTED, MAPPED, find_used


def add_observed(path: Path, lines: list[str], python: Path | None) -> tuple[list[str], list[str]]:
    """Write the packages that a run has used into a lockfile; return all of them, and those that
    are new.

    Raises:
        LockfileError: the lockfile has disappeared, is invalid, has no entry points, or cannot be
            written.
    """
    lock = load(path)
    document = lock.to_document()
    project = document["project"]
    found = find_used(lines, find_installation(python))
    found.pop(project.get("name", ""), None)
    before = project.get("observed", {})
    new = sorted({*found} - {*project["held"], *before})
    if found:
        observed = {}
        for name in sorted({*found, *before}):
            # A package that one run has imported stays marked as imported, even if another run has
            # only mapped one of its files.
            is_imported = IMPORTED in (found.get(name), before.get(name))
            observed[name] = IMPORTED if is_imported else MAPPED
        project["observed"] = observed
        save(validate(document, str(path)), path, lock)
    return list(found), new
