"""`assert_locked()`: line 1 of a script. Stops the script if the live environment is not the locked
one.
"""

from __future__ import annotations

import os
import sys

from envlock.runtime.errors import EnvironmentMismatch, EnvlockError, LockfileError, UsageError
from envlock.runtime.judgement import verify
from envlock.runtime.lockfile import NAME, find, find_outside, find_project, read_file
from envlock.runtime.report import DATA, WARNING, clean, clean_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Dict, Optional, Tuple, Union

    from envlock.runtime.facts import Document
    from envlock.runtime.report import Report

    Key = Tuple[object, ...]
    """What a verdict depends on."""

ENFORCING = ("enforce", "deep")
OFF = "off"
MODES = (*ENFORCING, "warn", OFF)

SITE = ("site-packages", "dist-packages")

_verified: Dict[Key, Report] = {}
"""The verdicts of this process; a forked child inherits them, and so does not verify again."""


def has_matched() -> bool:
    """Return whether an `assert_locked()` of this process, or of its parent, found a match."""
    return bool(_verified)


def assert_locked(
    path: Optional[Union[str, os.PathLike[str]]] = None, policy: Optional[str] = None
) -> Optional[Report]:
    """Return the report if the live environment is the locked one, else raise.

    Call it before `import tensorflow`: afterwards, the value of a variable that has changed since
    the process started is unknown. A second call in the same process, or in a forked child, costs
    microseconds, unless the lockfile, a variable or a folder of installed packages has changed
    since. A spawned child verifies again: it is a new process, and may differ.

    Args:
        path: the lockfile; else `$ENVLOCK_LOCK`, else the nearest `envlock.lock` from the current
            folder up to the project's, else from the script's folder up to its project's.
        policy: `strict`, `bits`, `same-arch` or `functional`; else `$ENVLOCK_POLICY`, else the
            lockfile's own.

    Returns:
        The report; None if `ENVLOCK_MODE=off` switched the check off.

    With `ENVLOCK_MODE=deep`, every installed file is also compared with its RECORD, and each RECORD
    with the lockfile: this reads the whole environment, which takes seconds. The contents of input
    files are then read as well, if the lockfile has a section `data`; else their names and sizes
    are compared. Data that differs is a warning on stderr unless a rule names `data`.

    Raises:
        EnvironmentMismatch: it is not the locked one, or a fact that the policy needs could not be
            collected. With `ENVLOCK_MODE=warn` this is printed to stderr instead.
        LockfileError: there is no lockfile, or it is invalid.
        UsageError: the policy or `ENVLOCK_MODE` does not exist.
    """
    mode = mode_of_process()
    if mode == OFF:
        say("warning: ENVLOCK_MODE=off, the environment is not verified")
        return None
    lockfile = locate(path)
    chosen = policy or os.environ.get("ENVLOCK_POLICY") or None
    key = _make_key(lockfile, chosen)
    report = _verified.get(key)
    if report is None:
        document = read_file(lockfile)
        deep = mode == "deep"
        report = verify(document, chosen, deep=deep)
        report = check_data(report, document, lockfile, chosen, deep=deep)
        # A refusal is not remembered: after its cause was removed, the check can be repeated.
        if report.match:
            _verified[key] = report
    if not report.match:
        refuse(mismatch(lockfile, report, sys._getframe(1)), mode)
    return report


def check_data(
    report: Report, document: Document, lockfile: str, policy: Optional[str], *, deep: bool
) -> Report:
    """Return the report with the data that differs, which is also printed to stderr where it decides
    nothing; the report itself for a lockfile without data.
    """
    if "data" not in document:
        return report
    # Not at the top: most lockfiles have no data, and need none of this when a script starts.
    from envlock.runtime.input_data import add_data

    report = add_data(report, document, lockfile, policy, deep=deep)
    for finding in report.findings:
        if finding.rule == DATA and finding.severity == WARNING:
            say(f"warning: {finding.message}")
    return report


def mismatch(
    lockfile: str, report: Report, caller: Optional[FrameType] = None
) -> EnvironmentMismatch:
    """Return the error for a lockfile that does not match, with a short message; its `report` has
    all findings.

    Args:
        lockfile: its path.
        report: what differs.
        caller: the frame that asked; a note says if its module is imported for the second time.
    """
    # Not at the top: a script that matches starts without them.
    from envlock.runtime import import_order, short_report

    if caller is not None:
        advice = import_order.explain_repeated_import(caller)
        if advice is not None:
            report.notes.append(advice)
    text = short_report.in_short(short_report.with_acceptance(report))
    return EnvironmentMismatch(f"{clean(lockfile)}: {text}", report)


def refuse(error: EnvlockError, mode: str) -> None:
    """Raise an error, or print it if ENVLOCK_MODE lets the program continue."""
    if mode in ENFORCING:
        raise error
    say(f"warning: ENVLOCK_MODE={mode}, so this does not stop the program: {error}")


def locate(path: Optional[Union[str, os.PathLike[str]]] = None) -> str:
    """Return the path of the lockfile to use: the given one, else `$ENVLOCK_LOCK`, else the nearest
    one.

    Raises:
        LockfileError: none is named and none is near.
    """
    named = os.environ.get("ENVLOCK_LOCK")
    if path is not None:
        named = os.fspath(path)
    if named:
        return named
    starts = []
    try:
        here = os.getcwd()
        starts.append(here)
    except OSError:  # the folder was removed
        here = ""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if isinstance(script, str):
        starts.append(os.path.dirname(os.path.abspath(script)))
    for start in starts:
        lockfile = find(start)
        if lockfile is not None:
            return lockfile
    raise _make_not_found(here)


def _make_not_found(here: str) -> LockfileError:
    hint = "create one with `envlock capture`, or name one in ENVLOCK_LOCK"
    if not here:
        return LockfileError(f"no {NAME}: the current folder does not exist any more", hint=hint)
    border, outside = find_project(here), find_outside(here)
    above = ""
    if border != here:
        above = f", or above it in the project {border}"
    if outside is not None:
        hint = (
            "create one with `envlock capture`, "
            f"or set ENVLOCK_LOCK={outside} to use another project's"
        )
    return LockfileError(f"no {NAME} in {here}{above}", hint=hint)


def mode_of_process() -> str:
    """Return the mode that ENVLOCK_MODE sets, in any case of letters: `enforce`, `deep`, `warn` or
    `off`.

    Raises:
        UsageError: it is set to something else.
    """
    mode = os.environ.get("ENVLOCK_MODE") or "enforce"
    if mode.lower() not in MODES:
        raise UsageError(f"invalid ENVLOCK_MODE `{mode}`", hint=f"choose from: {', '.join(MODES)}")
    return mode.lower()


def _make_key(lockfile: str, policy: Optional[str]) -> Key:
    """Return what a verdict depends on: this lockfile, this policy and this process in their
    present state.
    """
    identity: Key = ()
    try:
        status = os.stat(lockfile)
        identity = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
    except OSError:
        pass
    cpus = None
    ask = getattr(os, "sched_getaffinity", None)  # Linux only
    if ask is not None:
        cpus = len(ask(0))
    packages = tuple([_get_change_time(entry) for entry in sys.path if entry.endswith(SITE)])
    process = (cpus, tuple(sys.path), packages, "tensorflow" in sys.modules)
    return (lockfile, identity, policy, process, hash(frozenset(os.environ.items())))


def _get_change_time(folder: str) -> int:
    """Return when an entry of a folder was last added, removed or renamed, in ns; 0 if the folder
    cannot be examined.

    Installing renames a folder of metadata, so that a notebook's `!pip install` shows here.
    """
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def say(text: str) -> None:
    """Write lines to stderr, if there is one, with control characters escaped, so that no name in
    them can control a terminal.
    """
    if sys.stderr is not None:
        sys.stderr.write(clean_lines(f"envlock: {text}\n"))
