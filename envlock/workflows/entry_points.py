"""Which packages the project's entry points import: recorded in a lock, and looked up again when packages differ."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envlock.runtime import lockfile
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import UsageError
from envlock.workflows.locks import file_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile
    from envlock.numerics.target import Target
    from envlock.packages.installation import Installation
    from envlock.workflows.locks import Source


def section(
    project: Mapping[str, Any],
    entry: Sequence[str] | None,
    earlier: Lockfile | None,
    python: Path | None,
) -> dict[str, Any]:
    """Return the section `project` of a lock: with the entry points given, else those of the lock that is renewed.

    What runs of all its entry points have used stays, where it is still installed.

    Raises:
        UsageError: an entry point does not exist or is not Python, or there is no such interpreter.
        FactError: the interpreter did not answer.
    """
    old = None if earlier is None else earlier.project
    wanted = list(dict.fromkeys((old.entry if old else []) if entry is None else entry))
    if not wanted:
        return dict(project)
    place = _place(python)
    found = _closure(wanted, Path.cwd(), place)
    found.pop(project.get("name", ""), None)
    seen = old.observed if old and set(old.entry) <= set(wanted) else {}
    return {**project, "entry": wanted, "held": found, **_seen(seen, place)}


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
    if given is None:
        return entry, {}
    from envlock.numerics.target import target

    entries: list[str] = []
    functions: dict[str, Target] = {}
    for each in given:
        wanted = target(each) if ":" in each and not (here / each).is_file() else None
        if wanted is None:
            entries.append(in_project(each, here))
            continue
        if not canary:
            raise UsageError(
                f"`--for {each}` names a function, which only a canary runs", hint="add `--canary`"
            )
        program = in_project(wanted.module or str(wanted.script), here)
        entries.append(program)
        functions[f"{program}:{wanted.function}"] = wanted
    return entries, functions


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
    try:
        now = _closure(project["entry"], file_of(lock).parent, _place(python))
    except UsageError as error:
        return document, [
            f"{error.message}: only packages count that it imported at the time of the capture"
        ]
    return {**document, "project": {**project, "held": {**now, **project["held"]}}}, []


def add_observed(path: Path, lines: list[str], python: Path | None) -> tuple[list[str], list[str]]:
    """Write into a lock what a run has used; return those packages, and those of them that were not held before.

    Raises:
        LockfileError: the lock is gone, invalid, without entry points, or cannot be written.
    """
    from envlock.lock.document import load, save, validate
    from envlock.packages.observation import IMPORTED, MAPPED, used

    read = load(path)
    document = read.to_document()
    project = document["project"]
    found = used(lines, _place(python))
    found.pop(project.get("name", ""), None)
    before = project.get("observed", {})
    new = sorted({*found} - {*project["held"], *before})
    if found:
        sides = {name: (found.get(name), before.get(name)) for name in sorted({*found, *before})}
        project["observed"] = {
            name: IMPORTED if IMPORTED in each else MAPPED for name, each in sides.items()
        }
        save(validate(document, str(path)), path, read)
    return list(found), new


def _closure(entry: Sequence[str], folder: Path, place: Installation) -> dict[str, str]:
    from envlock.packages.closure import closure

    return closure(entry, Path(lockfile.project(str(folder))), place)


def _place(python: Path | None) -> Installation:
    from envlock.packages.installation import installation

    return installation(python)


def _seen(observed: Mapping[str, str], place: Installation) -> dict[str, Any]:
    if not observed:
        return {}
    from envlock.packages.installation import by_name

    installed = by_name(place)
    return {"observed": {name: how for name, how in observed.items() if name in installed}}


def _others_differ(document: dict[str, Any], live: Snapshot) -> bool:
    """Return whether a package differs that no entry point imported when the lock was captured."""
    locked, here = document["facts"].get("packages"), live.facts.get("packages")
    if not isinstance(locked, dict) or not isinstance(here, dict):
        return False
    project = document["project"]
    others = {*locked, *here} - {*project["held"], *project.get("observed", {})}
    return any(locked.get(name) != here.get(name) for name in others)
