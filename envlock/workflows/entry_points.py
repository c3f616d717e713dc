"""Which packages the project's entry points import: recorded in a lock, and looked up again when packages differ."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envlock.runtime import lockfile
from envlock.runtime.assertion import locate
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import UsageError
from envlock.runtime.report import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile
    from envlock.numerics.target import Target
    from envlock.workflows.locks import Source


def section(
    name: str | None, entry: Sequence[str] | None, earlier: Lockfile | None, python: Path | None
) -> dict[str, Any]:
    """Return the section `project` of a lock: the entry points given, else those of the lock that is renewed.

    Raises:
        UsageError: an entry point does not exist or is not Python, or there is no such interpreter.
        FactError: the interpreter did not answer.
    """
    own = {} if name is None else {"name": name}
    kept = [] if earlier is None or earlier.project is None else earlier.project.entry
    wanted = list(dict.fromkeys(kept if entry is None else entry))
    if not wanted:
        return own
    found = _closure(wanted, Path.cwd(), python)
    return {**own, "entry": wanted, "held": [each for each in found if each != name]}


def in_project(entry: str, here: Path) -> str:
    """Return an entry point as a lock names it: a file by its path from the project's folder, a module by its name."""
    if not (here / entry).is_file():
        return entry
    return os.path.relpath(here / entry, lockfile.project(str(here)))


def split(
    given: Sequence[str] | None, entry: Sequence[str] | None, here: Path, *, canary: bool
) -> tuple[Sequence[str] | None, dict[str, Target]]:
    """Return what was given as programs: entry points (else `entry`), and those with a function, which the canary runs.

    Raises:
        UsageError: a function is named and no canary is wanted, or there is no such file.
    """
    from envlock.numerics.target import target

    entries: list[str] = []
    functions: dict[str, Target] = {}
    for each in given or []:
        wanted = target(each) if ":" in each and not (here / each).is_file() else None
        if wanted is None:
            entries.append(in_project(each, here))
            continue
        if not canary:
            raise UsageError(f"`--for {each}` names a function, which only a canary runs", hint="add `--canary`")
        entry = in_project(wanted.module or str(wanted.script), here)
        entries.append(entry)
        functions[f"{entry}:{wanted.function}"] = wanted
    return (entry if given is None else entries), functions


def held(lock: Lockfile) -> list[str]:
    """Return how many of a lock's packages its entry points can import, as a line to show; nothing without any."""
    if lock.project is None or not lock.project.entry:
        return []
    every = set(lock.facts.packages or {})
    counted = len(every & {*lock.project.held})
    return [f"held: {counted} of {count(len(every), 'package')} (imported from {', '.join(lock.project.entry)})"]


def with_newly_held(
    document: dict[str, Any], lock: Source | None, live: Snapshot, python: Path | None
) -> tuple[dict[str, Any], list[str]]:
    """Return a lock that also holds what its entry points import here, and notes; only where other packages differ.

    Raises:
        FactError: the interpreter did not answer.
    """
    project = document.get("project", {})
    if "held" not in project or not _others_differ(document, live):
        return document, []
    named = Path(locate(lock)) if lock is None or isinstance(lock, str | os.PathLike) else None
    try:
        now = _closure(project["entry"], Path.cwd() if named is None else named.absolute().parent, python)
    except UsageError as error:
        return document, [f"{error.message}: only packages count that it imported at the time of the capture"]
    return {**document, "project": {**project, "held": sorted({*project["held"], *now})}}, []


def _closure(entry: Sequence[str], folder: Path, python: Path | None) -> list[str]:
    from envlock.packages.closure import closure
    from envlock.packages.installation import installation

    return closure(entry, Path(lockfile.project(str(folder))), installation(python))


def _others_differ(document: dict[str, Any], live: Snapshot) -> bool:
    """Return whether a package differs that no entry point imported when the lock was captured."""
    locked, here = document["facts"].get("packages"), live.facts.get("packages")
    if not isinstance(locked, dict) or not isinstance(here, dict):
        return False
    others = {*locked, *here} - {*document["project"]["held"]}
    return any(locked.get(name) != here.get(name) for name in others)
