"""Run a prepared command, and write the packages that it has used into its lockfile."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from envlock.guest.launch import read
from envlock.guest.observer import SEEN
from envlock.lock.locks import load_document
from envlock.lock.temporary import open_draft_folder
from envlock.runtime.assertion import locate
from envlock.runtime.errors import UsageError
from envlock.workflows.run import Prepared
from envlock.workflows.signalled_child import run_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source


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
        # Each Python that finds a module of this name runs it before the program, so that child
        # processes are observed, too; the user's own one is run after it.
        # https://docs.python.org/3/library/site.html#module-sitecustomize
        (folder / "sitecustomize.py").write_text(read("observer"), encoding="utf-8")
        path = os.pathsep.join(filter(None, [str(folder), prepared.environ.get("PYTHONPATH")]))
        code = run_child(prepared, {**prepared.environ, "PYTHONPATH": path})
        report = folder / SEEN
        if not report.is_file():
            hint = "run Python without `-I`, `-E` and `-S`, and leave PYTHONPATH as it is"
            raise UsageError(
                f"nothing was observed of `{prepared.command[0]}` (exit code {code})", hint=hint
            )
        lines = report.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    # Start-up time: the models, which a run that is not observed does not need.
    from envlock.packages.held_packages import add_observed

    return Observed(code, *add_observed(lock, lines, python))
