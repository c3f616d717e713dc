"""Record the input files of a project in its lockfile, and compare them for the commands."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from envlock.lock.models import DataEntry, Lockfile
from envlock.lock.writer import write_atomically
from envlock.runtime.data_contents import (
    find_known,
    find_note,
    is_settled,
    read_contents,
    render_note,
)
from envlock.runtime.data_files import Survey, survey
from envlock.runtime.errors import EnvlockError, FactError, UsageError
from envlock.runtime.facts import Unavailable
from envlock.runtime.input_data import compare_data, describe_depth, look_at
from envlock.runtime.lockfile import find_project
from envlock.runtime.policies import Policy
from envlock.runtime.report import Finding
from envlock.workflows.cache_folders import make_own_folder
from envlock.workflows.progress import SILENT, Progress


def add_data_section(
    lock: Lockfile, paths: Sequence[str] | None, progress: Progress = SILENT
) -> Lockfile:
    """Return the lockfile with the section `data`; without paths, it has none.

    Contents are read, unless they were read before and have not changed since, or DVC or git-annex
    has a digest of them.

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
        known = find_known(full, found, os.environ)
        if known:
            content = known[0]
        else:
            content = _read(path, full, found, progress)
        section[path] = DataEntry.model_validate(found.to_json(content))
    return lock.model_copy(update={"data": section})


def _read(path: str, full: str, found: Survey, progress: Progress) -> str:
    """Return the digest of the contents after reading them, and note it for the next time."""
    # Taken before the reading: a file that is written meanwhile, or just before, can keep its time
    # of change, as in Git's index (https://git-scm.com/docs/racy-git). It is not noted then.
    began = time.time_ns()
    with progress.bar(f"reading {path}", found.size, in_bytes=True) as advance:
        content = read_contents(full, found, advance=advance)
    if is_settled(found, began):
        write_note(full, found, content)
    return content


def write_note(full: str, found: Survey, content: str) -> None:
    """Note the digest in the user's cache; without a cache, the files are read again next time."""
    file = find_note(os.environ, full)
    if file is None:
        return
    try:
        make_own_folder(Path(file).parent)
        write_atomically(Path(file), render_note(found.state, content))
    except EnvlockError:
        return


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
