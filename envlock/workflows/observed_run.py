"""Run a prepared command, and write the packages that it has used into its lockfile."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

from envlock.guest.launch import read
from envlock.guest.observer import SEEN
from envlock.lock.temporary import open_draft_folder
from envlock.runtime.assertion import locate
from envlock.runtime.errors import UsageError
from envlock.workflows.locks import load_document
from envlock.workflows.run import Prepared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


class Observed(NamedTuple):
    """The exit code of a run, the packages that it has used, and which of them are new."""

    code: int
    used: list[str]
    new: list[str]


def find_lock_with_entry_points(lock: Source | None) -> Path:
    """Return the path of a lockfile to which observed packages can be added.

    Raises:
        LockfileError: it is missing, unreadable or invalid.
        UsageError: it is not a file, or has no entry points.
    """
    if not (lock is None or isinstance(lock, str | os.PathLike)):
        raise UsageError(
            "`--observe` writes into the lockfile, and `-` is stdin", hint="name the file"
        )
    path = Path(locate(lock))
    if "held" not in load_document(path)[0].get("project", {}):
        hint = "name the program first: envlock capture --for train.py"
        raise UsageError(f"{path} names no entry points, so every package is held", hint=hint)
    return path


def observe(prepared: Prepared, lock: Path, python: Path | None) -> Observed:
    """Run a command to its end and record the packages that it has used, whether it succeeds or
    not.

    Child processes are observed if they are Python and inherit PYTHONPATH.

    Raises:
        UsageError: the command cannot be run, or nothing could be observed.
        LockfileError: the lockfile cannot be written.
    """
    with open_draft_folder(None) as folder:
        (folder / "sitecustomize.py").write_text(read("observer"), encoding="utf-8")
        code = _run(prepared, str(folder))
        report = folder / SEEN
        if not report.is_file():
            hint = "run Python without `-I`, `-E` and `-S`, and leave PYTHONPATH as it is"
            raise UsageError(
                f"nothing was observed of `{prepared.command[0]}` (exit code {code})", hint=hint
            )
        lines = report.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    # Start-up time: the models, which a run that is not observed does not need.
    from envlock.workflows.held_packages import add_observed

    return Observed(code, *add_observed(lock, lines, python))


def _run(prepared: Prepared, folder: str) -> int:
    """Run the command, and return its exit code as a shell reports it.

    Raises:
        UsageError: the command cannot be run.
    """
    path = os.pathsep.join(filter(None, [folder, prepared.environ.get("PYTHONPATH")]))
    environ = {**prepared.environ, "PYTHONPATH": path}
    try:
        child = subprocess.Popen(list(prepared.command), executable=prepared.program, env=environ)
    except OSError as error:
        raise UsageError(f"cannot run `{prepared.command[0]}`: {error.strerror}") from None
    # Ctrl-C reaches the command as well, which decides what to do. SIGTERM reaches only this
    # process, so it is passed on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    code = child.wait()
    if code < 0:
        return 128 - code
    return code
