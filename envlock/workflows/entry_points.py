"""The entry points of a project: their names in a lockfile, and the packages that they import."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from envlock.guest.target import Target, parse_target
from envlock.lock.locks import get_file
from envlock.packages.live_environment import LiveEnvironment
from envlock.runtime import lockfile
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source
    from envlock.lock.models import Lockfile


def make_section(
    project: Mapping[str, object],
    entry: Sequence[str] | None,
    earlier: Lockfile | None,
    environment: LiveEnvironment,
) -> dict[str, object]:
    """Return the section `project` of a lockfile, with the given entry points, or else those of the
    lockfile that is renewed.

    Packages that runs of all its entry points have used are kept as long as they are installed.

    Raises:
        UsageError: an entry point does not exist or is not Python, or there is no such interpreter.
        FactError: the interpreter did not answer.
    """
    before = earlier.project if earlier is not None else None
    if entry is None:
        entry = before.entry if before is not None else ()
    wanted = list(dict.fromkeys(entry))
    if not wanted:
        return dict(project)
    held = _find_held(wanted, Path.cwd(), environment)
    held.pop(str(project.get("name", "")), None)
    section: dict[str, object] = {**project, "entry": wanted, "held": held}
    # The packages that runs have used are not recorded by entry point: once one of these is removed,
    # they say nothing about the others.
    if before is not None and before.observed and set(before.entry) <= set(wanted):
        section["observed"] = _keep_installed(before.observed, environment.snapshot)
    return section


def _find_held(
    entry: Sequence[str],
    folder: Path,
    environment: LiveEnvironment,
    locked: Collection[str] | None = None,
) -> dict[str, str]:
    """Return the packages that entry points of the project of a folder import; see `find_imported_distributions`."""
    # Start-up time: 20 ms for the models and `packaging`. Most projects name no entry points, and
    # `verify` asks only where packages differ.
    from envlock.packages.closure import find_imported_distributions

    project = Path(lockfile.find_project(str(folder)))
    return find_imported_distributions(entry, project, environment.installation, locked)


def _keep_installed(observed: Mapping[str, str], live: Snapshot) -> dict[str, str]:
    """Return which of the packages that runs have used are still installed."""
    installed = live.facts.get("packages") or {}
    return {name: how for name, how in observed.items() if name in installed}


def normalise_entry(entry: str, folder: Path) -> str:
    """Return the name of an entry point in a lockfile: the path of a file relative to the project's
    folder, or the name of a module.
    """
    if not (folder / entry).is_file():
        return entry
    return os.path.relpath(folder / entry, lockfile.find_project(str(folder)))


def split_programs(
    programs: Sequence[str] | None, entry: Sequence[str] | None, folder: Path, *, canary: bool
) -> tuple[Sequence[str] | None, dict[str, Target]]:
    """Separate the entry points of the project from the functions that the canary runs; return
    both, the functions by name.

    Args:
        programs: files and modules, each with or without a function; None for those of the
            settings.
        entry: the entry points of the settings.
        folder: where the files are.
        canary: whether a canary is wanted.

    Raises:
        UsageError: a function is named and no canary is wanted, or there is no such file.
    """
    if programs is None:
        return entry, {}
    entries: list[str] = []
    functions: dict[str, Target] = {}
    for program in programs:
        # A colon can also be part of a file's name.
        if ":" not in program or (folder / program).is_file():
            entries.append(normalise_entry(program, folder))
            continue
        wanted = parse_target(program)
        if not canary:
            raise UsageError(
                f"`--for {program}` names a function, which only a canary runs",
                hint="add `--canary`",
            )
        name = normalise_entry(wanted.module or str(wanted.script), folder)
        entries.append(name)
        functions[f"{name}:{wanted.function}"] = wanted
    return entries, functions


def add_newly_held(
    document: dict[str, Any], lock: Source | None, environment: LiveEnvironment
) -> tuple[dict[str, Any], list[str]]:
    """Return the lockfile extended by the packages that its entry points import here, and notes on
    them; unchanged if no other package differs.

    Raises:
        FactError: the interpreter did not answer.
    """
    project = document.get("project", {})
    # As long as all other packages are as locked, imports cannot change the verdict, so they are
    # not followed.
    if "held" not in project or not _has_other_differences(document, environment.snapshot):
        return document, []
    try:
        locked = document["facts"]["packages"]
        held = _find_held(project["entry"], get_file(lock).parent, environment, locked)
    except UsageError as error:
        note = f"{error.message}: only packages count that it imported at the time of the capture"
        return document, [note]
    return {**document, "project": {**project, "held": {**held, **project["held"]}}}, []


def _has_other_differences(document: dict[str, Any], live: Snapshot) -> bool:
    """Return whether a package differs that no entry point imported at the time of the capture."""
    locked = document["facts"].get("packages")
    found = live.facts.get("packages")
    if not isinstance(locked, dict) or not isinstance(found, dict):
        return False
    project = document["project"]
    others = {*locked, *found} - {*project["held"], *project.get("observed", {})}
    return any(locked.get(name) != found.get(name) for name in others)
