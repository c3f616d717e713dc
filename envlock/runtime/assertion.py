"""`assert_locked()`: line 1 of a script. Stops the script if the live environment is not the locked
one.
"""

from __future__ import annotations

import os
import sys

from envlock.runtime.errors import (
    EnvironmentMismatch,
    EnvlockError,
    FactError,
    LockfileError,
    UsageError,
)
from envlock.runtime.host import Host, get_mark, remember
from envlock.runtime.judgement import collect_here, verify
from envlock.runtime.lockfile import (
    NAME,
    find,
    find_outside,
    find_project,
    is_nearest,
    read_file,
)
from envlock.runtime.report import DATA, NOT_HELD, UNREAD, WARNING, Report, clean, clean_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Dict, List, Optional, Set, Tuple, Union

    from envlock.runtime.collectors import Snapshot
    from envlock.runtime.facts import Document
    from envlock.runtime.host import Mark
    from envlock.runtime.loaded.import_hook import ImportHook

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
        live: the facts.
        looked: the state of each folder and file when it was looked at, by path.
    """

    __slots__ = ("document", "live", "looked", "report")

    def __init__(
        self, report: Report, document: Document, live: Snapshot, looked: Dict[str, Mark]
    ) -> None:
        self.report = report
        self.document = document
        self.live = live
        self.looked = looked

    def is_current(self) -> bool:
        """Return whether all that was looked at is as it was."""
        return all(get_mark(path) == mark for path, mark in self.looked.items())


_verified: Dict[Key, _Verdict] = {}
"""The verdicts of this process; a forked child inherits them, and so does not verify again."""
_looks: Dict[Tuple[str, Optional[str]], SecondLook] = {}
"""What waits for the import of TensorFlow, or has looked after it, by lockfile and policy."""
_said: Set[str] = set()
"""The warnings on data that this process has printed."""


def has_matched() -> bool:
    """Return whether an `assert_locked()` of this process, or of its parent, found a match."""
    return bool(_verified)


def assert_locked(
    path: Optional[Union[str, os.PathLike[str]]] = None,
    policy: Optional[str] = None,
    *,
    static: bool = False,
) -> Optional[Report]:
    """Return the report if the live environment is the locked one, else raise.

    Call it before `import tensorflow`: afterwards, the value of a variable that has changed since
    the process started is unknown. A second call in the same process, or in a forked child, costs
    microseconds, unless something that the verdict was read from has changed since; input data is
    looked at again. A spawned child verifies again: it is a new process, and may differ.

    If the lockfile has a section `loaded`, the process also compares what it has loaded, at the end of
    `import tensorflow` (or of NumPy, Keras, JAX or PyTorch), which then raises; at once if that is imported already.

    Args:
        path: the lockfile; else `$ENVLOCK_LOCK`, else the nearest `envlock.lock` from the script's
            folder up to its project's, else from the current folder up to its project's. Without a
            script (`-c`, `-m`, pytest, notebooks) the current folder comes first.
        policy: `strict`, `bits`, `same-arch` or `functional`; else `$ENVLOCK_POLICY`, else the
            lockfile's own.
        static: only what files say; nothing is compared after the import.

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
            live = collect_here(document)
            report = verify(document, chosen, live=live, deep=deep)
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
            known = _verified[key] = _Verdict(report, document, live, looked)
        report = check_data(report, document, lockfile, chosen, deep=deep)
    if not report.match:
        refuse(mismatch(lockfile, report, sys._getframe(1)), mode)
    elif known is not None and not static:
        watch(lockfile, known.document, known.live, chosen)
    return report


def assert_loaded(
    path: Optional[Union[str, os.PathLike[str]]] = None, policy: Optional[str] = None
) -> None:
    """Compare what this process has loaded by now; `assert_locked()` does so once, after the import.

    Call it where more was loaded since: libraries that CUDA opens at their first use, plug-ins, a
    program's own extensions. `assert_locked()` is asked first if that has not happened yet.

    Args:
        path, policy: the lockfile and how strictly to compare, as in `assert_locked()`.

    Raises:
        EnvironmentMismatch: a loaded file is not as locked, or nothing explains it. With
            `ENVLOCK_MODE=warn` this is printed to stderr instead.
        FactError: the kernel does not say what is loaded.
        LockfileError: there is no lockfile, it is invalid, or it has no section `loaded`.
        UsageError: the policy or `ENVLOCK_MODE` does not exist.
    """
    lockfile = locate(path)
    key = lockfile, policy or os.environ.get("ENVLOCK_POLICY") or None
    if key not in _looks:
        report = assert_locked(path, policy)
        if report is None or not report.match:  # ENVLOCK_MODE lets the program continue
            return
    if key not in _looks:
        raise LockfileError(
            f"lockfile {clean(lockfile)} has no section `loaded`",
            hint="capture again, without --static",
        )
    _looks[key].look()


def watch(lockfile: str, document: Document, live: Snapshot, policy: Optional[str]) -> None:
    """Compare what this process has loaded once what computes is imported; a refusal is repeated.

    Args:
        lockfile, document, live, policy: a question about files that was answered with a match.

    Raises:
        EnvironmentMismatch, FactError: as `assert_loaded`.
    """
    if "loaded" not in document["facts"]:
        return
    look = _looks.get((lockfile, policy))
    if look is not None and look.document == document:
        look.repeat()
        return
    if look is not None:
        look.hook.stop()
    _looks[lockfile, policy] = look = SecondLook(lockfile, document, live, policy)
    look.start()


class SecondLook:
    """The question what this process has loaded, once for each lockfile and policy.

    Attributes:
        document: the lockfile.
        hook: what waits for the import.
        refusal: the last answer, if it was no.
    """

    def __init__(
        self, lockfile: str, document: Document, live: Snapshot, policy: Optional[str]
    ) -> None:
        # Not at the top: not every lockfile has what a process loads.
        from envlock.runtime.loaded.import_hook import ImportHook

        self.document = document
        self.refusal: Optional[EnvlockError] = None
        self._names = document["facts"]["loaded"].get("imports", ())
        self._startup = document["facts"]["loaded"].get("startup", ())
        self.hook: ImportHook = ImportHook(self._names, self.repeat, self.look)
        self._lockfile = lockfile
        self._live = live
        self._policy = policy

    def start(self) -> None:
        """Look if a library that computes is imported, and after the import of each other one; at once, too, if
        code at the start of Python has opened another file than the locked one.
        """
        is_due = any(name in sys.modules for name in self._names)
        self.hook.start()
        if is_due or (self._startup and self._has_another_start()):
            self.look()

    def _has_another_start(self) -> bool:
        from envlock.runtime.loaded.startup_files import look_at_files

        return look_at_files(self._startup) != sorted(self._startup)

    def look(self, finished: Optional[str] = None) -> None:
        """Compare what this process has loaded, and refuse what differs.

        Args:
            finished: the module whose import ends just now.
        """
        # Not at the top: line 1 only waits.
        from envlock.runtime.loaded.process_check import check_process

        if mode_of_process() == OFF:
            return
        self.refusal = None
        try:
            report = check_process(self.document, self._live, self._policy, finished)
        except FactError as error:
            self.refusal = error
        else:
            if report is not None:
                report.subject = self._lockfile
                self.refusal = mismatch(self._lockfile, report)
        self.repeat()

    def repeat(self) -> None:
        """Refuse again if the last answer was no: what is loaded stays loaded."""
        if self.refusal is not None:
            refuse(self.refusal.with_traceback(None), mode_of_process())


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
    from envlock.runtime.startup import HOOKS

    if caller is not None:
        advice = import_order.explain_repeated_import(caller)
        if advice is not None:
            report.notes.append(advice)
    report.notes += short_report.suggest_way(report)
    for finding in report.findings:
        section, _, name = finding.where.fact.rpartition(".")
        place = getattr(sys.modules.get(name), "__file__", None) if name in HOOKS else None
        if place and section == "python.startup":
            finding.message += f" ({clean(place)})"
    if not is_nearest(lockfile):
        short_report.name_lock_in(report, lockfile)
    short_report.name_python_in(report, sys.executable, found=True)
    return EnvironmentMismatch(f"{clean(lockfile)}: {short_report.in_short(report)}", report)


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
