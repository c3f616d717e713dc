"""The input files of a project: what the lockfile's section `data` records of them, and how they
differ.

Data is not part of the environment: no fact, no line and no policy covers it unless a rule names
`data`.
"""

from __future__ import annotations

import os
import time

from envlock.runtime.compare import NAMES
from envlock.runtime.data_contents import read_contents, read_note
from envlock.runtime.data_files import Survey, survey
from envlock.runtime.errors import FactError
from envlock.runtime.exemptions import OVERRIDE
from envlock.runtime.facts import Unavailable
from envlock.runtime.judgement import build_policy, has_overrides_enabled
from envlock.runtime.lockfile import find_project
from envlock.runtime.report import (
    DATA,
    ERROR,
    INFO,
    UNKNOWN,
    UNREAD,
    WARNING,
    Finding,
    clean,
    count,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Mapping, Optional, Tuple

    from envlock.runtime.facts import Document
    from envlock.runtime.policies import Policy
    from envlock.runtime.report import Report, Severity

    OnRead = Callable[[str, Survey, str, int], None]

PATH = "data"
"""The path that a rule of the project names, and that findings are about."""


UNREAD_WHY = "The rule demands equal data, and other contents can have these names and sizes."
UNREAD_FIX = (
    "Run `envlock verify --deep` here: it reads them, and notes their digest until a file changes."
)


def ignore_reading(path: str, found: Survey, content: str, began: int) -> None:
    """Do nothing with contents that were read."""


def find_base(lockfile: str, paths: Mapping[str, object]) -> str:
    """Return the folder in which data paths begin: that of the lockfile's project, or the current
    one if only that has any of them, as in an image, where the lockfile is elsewhere.
    """
    project = find_project(os.path.dirname(os.path.abspath(lockfile)))
    try:
        here = find_project(os.getcwd())
    except OSError:  # the folder was removed
        return project
    for folder in (project, here):
        if any(os.path.lexists(os.path.join(folder, path)) for path in paths):
            return folder
    return project


def look_at(
    folder: str,
    locked: Mapping[str, Document],
    environ: Mapping[str, str],
    *,
    deep: bool = False,
    on_read: OnRead = ignore_reading,
) -> Document:
    """Return what is at each data path of a lockfile, in its form; None for a missing path,
    `Unavailable` where it cannot be read.

    Files are opened only with `deep`; else contents are known only where this user's envlock has
    read them before.

    Args:
        folder: where the paths begin.
        locked: the section `data` of the lockfile.
        environ: the variables of the process, which say where its user's cache is.
        deep: read every file that has to be compared.
        on_read: called with a path, its files, the digest of their contents, and the time in
            nanoseconds before they were read.
    """
    live: Document = {}
    for path, entry in locked.items():
        full = os.path.join(folder, path)
        try:
            live[path] = _look_at_path(full, entry, environ, deep=deep, on_read=on_read)
        except FactError as error:
            live[path] = Unavailable(error.message, "unreadable")
    return live


def _look_at_path(
    full: str, entry: Document, environ: Mapping[str, str], *, deep: bool, on_read: OnRead
) -> Optional[Document]:
    found = survey(full)
    if found is None:
        return None
    if found.listing != entry["listing"] or entry["content"] is None:
        return found.to_json(None)
    algorithm = entry["content"].partition(":")[0]
    if deep:
        began = time.time_ns()
        content = read_contents(full, found, algorithm)
        on_read(full, found, content, began)
        return found.to_json(content)
    known = read_note(environ, full, found)
    if known is not None and known.partition(":")[0] == algorithm:
        return found.to_json(known)
    return found.to_json(None)


def compare_data(
    locked: Mapping[str, Document],
    live: Document,
    rules: Policy,
    names: Tuple[str, str] = NAMES,
    *,
    overrides: bool = True,
) -> List[Finding]:
    """Return a finding for each data path that differs, or whose contents a rule demands and were
    not compared.

    Args:
        locked: the section `data` of a lockfile.
        live: what is at the same paths, as `look_at` returns it.
        rules: the policy with all rules of the lockfile.
        names: what messages call the sides.
        overrides: whether rules may let differences pass.
    """
    findings = []
    row = rules.row(PATH)
    severity = choose_severity(rules, overrides=overrides)
    for path in sorted({*locked, *live}):
        one, other = locked.get(path), live.get(path)
        level: Severity = severity
        if isinstance(other, Unavailable):
            said = other.reason
            if severity == ERROR:
                level = UNKNOWN
        elif _is_different(one, other):
            said = f"data at {clean(path)}: {_describe_difference(one, other, names)}"
        elif one is None or other is None or _has_contents(one, other) or severity != ERROR:
            continue
        else:
            said = (
                f"data at {clean(path)}: as locked by names and sizes; contents were not compared"
            )
            findings.append(
                Finding(
                    UNREAD,
                    WARNING,
                    PATH,
                    message=said,
                    why=UNREAD_WHY,
                    fix=UNREAD_FIX,
                    source="docs/guides/data.md",
                )
            )
            continue
        finding = Finding(
            DATA,
            level,
            PATH,
            message=said,
            why=row["why"],
            fix=row["fix"],
            source=row["source"],
            expected=one,
            actual=other,
        )
        findings.append(finding)
    return findings


def choose_severity(rules: Policy, *, overrides: bool = True) -> Severity:
    """Return how serious it is that data differs: a warning, unless a rule of the project or the
    lockfile names `data`.

    Args:
        rules: the policy with all rules of the lockfile.
        overrides: whether rules may let differences pass. One that demands more always applies.
    """
    if rules.row(PATH)["rule"] != "ignore":
        return ERROR
    if overrides and rules.find_owner(PATH) == OVERRIDE:
        return INFO
    return WARNING


def _is_different(one: Optional[Document], other: Optional[Document]) -> bool:
    """Return whether two entries are of other data, as far as both are known."""
    if one is None or other is None:
        return one is not other
    if any(one[key] != other[key] for key in ("files", "bytes", "listing")):
        return True
    return _has_contents(one, other) and one["content"] != other["content"]


def _has_contents(one: Document, other: Document) -> bool:
    """Return whether both entries have a digest of the contents, by the same algorithm."""
    left, right = one["content"], other["content"]
    if left is None or right is None:
        return False
    return bool(left.partition(":")[0] == right.partition(":")[0])


def _describe_difference(
    one: Optional[Document], other: Optional[Document], names: Tuple[str, str]
) -> str:
    if one is not None and other is not None and _describe(one) == _describe(other):
        what = "contents" if one["listing"] == other["listing"] else "names or sizes"
        return f"{_describe(one)} on both sides, with other {what}"
    return f"{clean(names[0])} {_describe(one)}, {clean(names[1])} {_describe(other)}"


def _describe(entry: Optional[Document]) -> str:
    """Return how much data an entry has: `3 files (1,234 bytes)`."""
    if entry is None:
        return "absent"
    return f"{count(entry['files'], 'file')} ({count(entry['bytes'], 'byte')})"


def describe_depth(locked: Mapping[str, Document], live: Document) -> List[str]:
    """Return a note on the data paths that are equal as far as they were compared; empty if none
    is.
    """
    whole, outside = [], []
    for path, entry in sorted(locked.items()):
        other = live.get(path)
        if isinstance(other, Unavailable) or other is None or _is_different(entry, other):
            continue
        if _has_contents(entry, other):
            whole.append(path)
        else:
            outside.append(path)
    notes = []
    if whole:
        notes.append(f"data: {', '.join(whole)} as locked")
    if outside:
        notes.append(
            f"data: {', '.join(outside)} as locked by names and sizes; "
            "`envlock verify --deep` also compares contents"
        )
    return notes


def add_data(
    report: Report,
    lock: Document,
    lockfile: str,
    policy: Optional[str] = None,
    *,
    overrides: Optional[bool] = None,
    deep: bool = False,
    on_read: OnRead = ignore_reading,
) -> Report:
    """Return the report with the data that differs from the lockfile's section `data`.

    Args:
        report: on the environment.
        lock: the lockfile.
        lockfile: its path, from which the data paths begin.
        policy: the name of a policy; the lockfile's own when not given.
        overrides: whether rules of the lockfile may let differences pass; as ENVLOCK_NO_OVERRIDES says when not
            given.
        deep: also compare contents that are not known.
        on_read: as for `look_at`.
    """
    if overrides is None:
        overrides = has_overrides_enabled()
    locked = lock["data"]
    live = look_at(find_base(lockfile, locked), locked, os.environ, deep=deep, on_read=on_read)
    findings = compare_data(locked, live, build_policy(lock, policy), overrides=overrides)
    return report.add_findings(findings, describe_depth(locked, live))
