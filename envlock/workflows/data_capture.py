"""Record the input files of a project in its lockfile, and compare them for the commands."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from envlock.lock.models import DataEntry, Lockfile
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.data_contents import OWN, read_contents, read_note
from envlock.runtime.data_files import Survey, survey
from envlock.runtime.errors import FactError, UsageError
from envlock.runtime.facts import Unavailable
from envlock.runtime.input_data import compare_data, describe_depth, look_at
from envlock.runtime.lockfile import find_project
from envlock.runtime.policies import Policy
from envlock.runtime.report import Finding
from envlock.workflows.content_notes import write_note


def add_data_section(
    lock: Lockfile, paths: Sequence[str] | None, progress: Progress = SILENT
) -> Lockfile:
    """Return the lockfile with the section `data`; without paths, it has none.

    Contents are read, unless they were read before and have not changed since.

    Args:
        lock: a lockfile.
        paths: files and folders of the project here.
        progress: shows how much is read.

    Raises:
        UsageError: one does not exist.
        FactError: something cannot be read, changes meanwhile, or has too many files.
    """
    if not paths:
        return lock
    folder = find_project(os.fspath(Path.cwd()))
    section = {}
    for path in paths:
        full = os.fspath(Path(folder, path))
        found = survey(full)
        if found is None:
            raise UsageError(
                f"no data at {full}", hint="correct `data` in [tool.envlock] of pyproject.toml"
            )
        content = read_note(os.environ, full, found)
        if content is None or not content.startswith(f"{OWN}:"):
            content = _read(path, full, found, progress)
        section[path] = DataEntry.model_validate(found.to_json(content))
    return lock.model_copy(update={"data": section})


def _read(path: str, full: str, found: Survey, progress: Progress) -> str:
    """Return the digest of the contents after reading them, and note it for the next time."""
    began = time.time_ns()
    with progress.bar(f"reading {path}", found.size, in_bytes=True) as advance:
        content = read_contents(full, found, advance=advance)
    write_note(full, found, content, began)
    return content


def add_live_data(live: Lockfile, locked: Lockfile) -> Lockfile:
    """Return a lockfile of the live environment with what the project here has at the data paths of
    another lockfile; a missing path is left out.

    Contents are in it as far as they are known without reading.

    Raises:
        FactError: something there cannot be read, or has too many files.
    """
    if locked.data is None:
        return live
    folder = find_project(os.fspath(Path.cwd()))
    section = {}
    for path, found in look_at(folder, _to_json(locked.data), os.environ).items():
        if isinstance(found, Unavailable):
            raise FactError(found.reason)
        if found is not None:
            section[path] = DataEntry.model_validate(found)
    return live.model_copy(update={"data": section})


def compare_locked_data(
    one: Lockfile, other: Lockfile, rules: Policy, names: tuple[str, str]
) -> tuple[list[Finding], list[str]]:
    """Return the differences between the data of two lockfiles, and notes on what was compared."""
    if one.data is None and other.data is None:
        return [], []
    if one.data is None or other.data is None:
        return [], ["data: not compared; one side has none"]
    left, right = _to_json(one.data), _to_json(other.data)
    findings = compare_data(left, right, rules, names)
    return findings, describe_depth(left, right)


def _to_json(data: Mapping[str, DataEntry]) -> dict[str, dict[str, object]]:
    section = {}
    for path, entry in data.items():
        section[path] = entry.model_dump(mode="json")
    return section
