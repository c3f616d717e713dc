"""`assert_locked()`: line 1 of a script. Stops the script if the live environment is not the locked
one.
"""

from __future__ import annotations

import os
import sys

from envlock.runtime.errors import EnvironmentMismatch, EnvlockError, LockfileError, UsageError
from envlock.runtime.host import Host, get_mark, remember
from envlock.runtime.judgement import verify
from envlock.runtime.lockfile import NAME, find, find_outside, find_project, read_file
from envlock.runtime.report import DATA, NOT_HELD, UNREAD, WARNING, clean, clean_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Dict, List, Optional, Set, Tuple, Union

    from envlock.runtime.facts import Document
    from envlock.runtime.host import Mark
    from envlock.runtime.report import Report

    Key = Tuple[object, ...]
    """What a verdict depends on."""

DEEP = "deep"
ENFORCING = ("enforce", DEEP)
OFF = "off"
MODES = (*ENFORCING, "warn", OFF)

SITE = ("site-packages", "dist-packages")


class _Verdict:
    """A match on the environment, and what it rests on.

    Attributes:
        report: without the data, which is looked at in each call.
        document: the lockfile.
        looked: the state of each folder and file when it was looked at, by path.
    """

    __slots__ = ("document", "looked", "report")

    def __init__(self, report: Report, document: Document, looked: Dict[str, Mark]) -> None:
        self.report = report
        self.document = document
        self.looked = looked

    def is_current(self) -> bool:
        """Return whether all that was looked at is as it was."""
        return all(get_mark(path) == mark for path, mark in self.looked.items())


_verified: Dict[Key, _Verdict] = {}
"""The verdicts of this process; a forked child inherits them, and so does not verify again."""
_said: Set[str] = set()
"""The warnings on data that this process has printed."""


def has_matched() -> bool:
    """Return whether an `assert_locked()` of this process, or of its parent, found a match."""
    return bool(_verified)


def assert_locked(
    path: Optional[Union[str, os.PathLike[str]]] = None, policy: Optional[str] = None
) -> Optional[Report]:
    """Return the report if the live environment is the locked one, else raise.

    Call it before `import tensorflow`: afterwards, the value of a variable that has changed since
    the process started is unknown. A second call in the same process, or in a forked child, costs
    microseconds, unless something that the verdict was read from has changed since; input data is
    looked at again. A spawned child verifies again: it is a new process, and may differ.

    Args:
        path: the lockfile; else `$ENVLOCK_LOCK`, else the nearest `envlock.lock` from the script's
            folder up to its project's, else from the current folder up to its project's. Without a
            script (`-c`, `-m`, pytest, notebooks) the current folder comes first.
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
    known = _verified.get(key)
    deep = mode == DEEP
    if known is not None and known.is_current():
        report = check_data(known.report, known.document, lockfile, chosen, deep=deep)
    else:
        document = read_file(lockfile)
        looked: Dict[str, Mark] = {}
        remember(looked)
        try:
            report = verify(document, chosen, deep=deep)
        finally:
            remember(None)
        report.subject = lockfile
        if path is None and os.path.dirname(lockfile) not in ("", _get_current_folder()):
            report.notes.append(f"lockfile: {lockfile}")
        for finding in report.findings:
            if finding.rule == NOT_HELD:
                say(f"warning: {finding.message}: run `envlock capture` again")
        # A refusal is not remembered: after its cause was removed, the check can be repeated.
        if report.match:
            _verified[key] = _Verdict(report, document, looked)
        report = check_data(report, document, lockfile, chosen, deep=deep)
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
        text = f"warning: {finding.message}"
        is_of_data = finding.rule in (DATA, UNREAD) and finding.severity == WARNING
        if is_of_data and text not in _said:
            _said.add(text)  # once in a process, though the data is looked at in each call
            say(text)
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
    named = os.fspath(path) if path is not None else os.environ.get("ENVLOCK_LOCK")
    if named:
        return named
    here = _get_current_folder()
    for start in _list_starts(here):
        lockfile = find(start)
        if lockfile is not None:
            return lockfile
    raise _make_not_found(here)


def _get_current_folder() -> str:
    """Return the current folder; empty if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _list_starts(here: str) -> List[str]:
    """Return the folders from which a lockfile is looked for: that of the script, the current one.

    The code of a script is that of its own project, in whatever folder it is started. What is
    started by name (`-m`, `pytest`, a kernel, a worker of Ray) works for the current folder, and its
    own folder is only the last resort.
    """
    # While a process that multiprocessing has spawned imports the script, `__main__` is not it.
    main = sys.modules.get("__mp_main__") or sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    current = [here] if here else []
    if not isinstance(file, str):
        return current
    path = os.path.abspath(file)
    folder = os.path.dirname(path)
    if _is_command(main, path):
        return [*current, folder]
    # As `sys.path[0]`: what a link leads to imports what lies beside it.
    return [os.path.dirname(os.path.realpath(path)), *current, folder]


def _is_command(main: object, path: str) -> bool:
    """Return whether the main module is part of something installed, not a script of a project."""
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name != "__main__":  # `-m`; a folder or a zip file has `__main__`
        return True
    folder, name = os.path.split(path)
    is_entry = os.path.basename(folder) == "bin" and not name.endswith(".py")
    is_installed = any(f"{os.sep}{site}{os.sep}" in path for site in SITE)
    return is_entry or is_installed or folder == os.path.dirname(sys.executable)


def _make_not_found(here: str) -> LockfileError:
    hint = "create one with `envlock capture`, or name one in ENVLOCK_LOCK"
    if not here:
        return LockfileError(f"no {NAME}: the current folder does not exist any more", hint=hint)
    border, outside = find_project(here), find_outside(here)
    above = f", or above it in the project {border}" if border != here else ""
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
    process = (cpus, tuple(sys.path), _get_current_folder(), "tensorflow" in sys.modules)
    return (
        lockfile,
        identity,
        policy,
        process,
        _read_settings(),
        hash(frozenset(os.environ.items())),
    )


def _read_settings() -> Key:
    """Return the settings of imported libraries, which a program can change at any time."""
    names = [name for name in ("jax", "torch") if name in sys.modules]
    if not names:
        return ()
    # Not at the top: few programs have imported either on line 1.
    from envlock.runtime.collectors.framework_settings import collect_settings

    settings: Key = ()
    for name in names:
        for key, value in collect_settings(Host(), name).items():
            settings += (key, getattr(value, "reason", value))
    return settings


def say(text: str) -> None:
    """Write lines to stderr, if there is one, with control characters escaped, so that no name in
    them can control a terminal.
    """
    if sys.stderr is not None:
        sys.stderr.write(clean_lines(f"envlock: {text}\n"))
