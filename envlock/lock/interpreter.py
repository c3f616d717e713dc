"""Find the environment that a command is about: the same for all commands, wherever envlock is
installed.
"""

from __future__ import annotations

import os
import pwd
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from envlock.lock.environments import Candidate, list_candidates
from envlock.runtime import lockfile
from envlock.runtime.errors import UsageError
from envlock.runtime.host import read_text

HINT = "activate the environment, or name its interpreter: `--python PATH`"
KERNEL_VARIABLE = "JPY_PARENT_PID"
"""Jupyter sets it in each kernel; source: `launch_kernel` of jupyter_client/launcher.py."""
MAKE = "`envlock sync` makes the locked environment"
KERNELS = ("ipykernel_launcher", "ipykernel")
LONGEST_FILE = 1 << 16  # bytes, of /proc
BASES = ("base", "root")
"""conda's names for its own environment, in which conda itself is installed: no project uses it."""


class Environment(NamedTuple):
    """The environment that a command is about.

    Attributes:
        python: its interpreter; None for the one that runs envlock.
        shown: the same as a path for messages.
        origin: how it was found, for messages; empty if the command line names it.
        is_choice: another one could be meant.
    """

    python: Path | None
    shown: str
    origin: str
    is_choice: bool = False


def find_environment(environ: Mapping[str, str], folder: Path) -> Environment:
    """Return the environment of the project in a folder, when none is named.

    If envlock is installed beside TensorFlow, it is envlock's own environment. In a cell of a
    notebook it is the kernel's. Otherwise it is found as uv finds it: the active environment, then
    the project's, which is `.venv` or the one that its package manager created. The tool's own
    environment is not one of these, unless it is active or `python -m envlock` names it. Source:
    https://docs.astral.sh/uv/pip/environments/#discovery-of-python-environments

    Raises:
        UsageError: no environment was found, or it belongs to another user. The message lists the
            places that were examined.
    """
    has_tensorflow = find_spec("tensorflow") is not None
    looked_at = []
    candidates = list(_list_candidates(environ, folder))
    own = Path(sys.prefix).resolve()
    prefixes = set(filter(None, map(_find_prefix, candidates)))
    is_choice = len(prefixes | {own} if has_tensorflow else prefixes) > 1
    for candidate in candidates:
        prefix = _find_prefix(candidate)
        # If envlock is installed beside TensorFlow, it is about its own environment, whatever else
        # exists.
        if candidate.python is not None and prefix in ({own} if has_tensorflow else prefixes):
            _check_owners(candidate)
            shown = _shorten_path(candidate.python, folder)
            python = None if prefix == own else candidate.python
            return Environment(python, shown, candidate.origin, is_choice)
        looked_at.append(candidate.shown)
    if _is_module():
        return Environment(None, sys.executable, "")
    if has_tensorflow:
        origin = "envlock's own, which has TensorFlow"
        return Environment(None, sys.executable, origin, is_choice)
    # A clone has a lockfile and no environment yet.
    hint = HINT if lockfile.find(str(folder)) is None else f"{MAKE}; or {HINT}"
    raise UsageError(f"no environment found; looked at: {', '.join(looked_at)}", hint=hint)


def is_found(python: Path) -> bool:
    """Return whether commands in the current folder take this interpreter if none is named."""
    named = os.environ.get("ENVLOCK_PYTHON")
    try:
        found = Path(named) if named else find_environment(os.environ, Path.cwd()).python
    except (UsageError, OSError):
        return False
    if found is None:
        return False
    # A folder can be named; and the interpreters of many environments are links to one file.
    places = [found, found / "bin" / "python"]
    return any(
        each.parent.resolve() == python.parent.resolve() and each.resolve() == python.resolve()
        for each in places
    )


def _find_prefix(candidate: Candidate) -> Path | None:
    """Return the folder of an environment; None if it has no interpreter.

    The `bin/python` of many environments are links to one file.
    """
    python = candidate.python
    if python is None or not os.path.isfile(python):  # noqa: PTH113 (false for any name)
        return None
    return python.parent.parent.resolve()


def _shorten_path(python: Path, folder: Path) -> str:
    """Return the path of an interpreter, relative to a folder if it is below that folder."""
    if python.is_relative_to(folder):
        return str(python.relative_to(folder))
    return str(python)


def _is_module() -> bool:
    """Return whether this process was started as `python -m envlock`, which names the interpreter."""
    return Path(sys.argv[0]).name == "__main__.py"


def _list_candidates(environ: Mapping[str, str], folder: Path) -> Iterator[Candidate]:
    if KERNEL_VARIABLE in environ:
        kernel = _find_kernel(os.getppid())
        # A terminal of Jupyter's server does not belong to a kernel.
        if kernel is not None:
            yield Candidate("the notebook's kernel", f"the notebook's kernel ({kernel})", kernel)
    yield _find_active(environ, "VIRTUAL_ENV")
    if environ.get("CONDA_DEFAULT_ENV") in BASES:
        yield Candidate("CONDA_PREFIX", "CONDA_PREFIX (conda's own)", None)
    else:
        yield _find_active(environ, "CONDA_PREFIX")
    border = Path(lockfile.find_project(str(folder)))
    for parent in (folder, *folder.parents):
        yield from list_candidates(environ, parent)
        if parent == border:
            return


def _find_kernel(process: int) -> Path | None:
    """Return the interpreter of the notebook's kernel that a process belongs to; None outside of
    notebooks.

    The variables of a shell that a cell starts are those of Jupyter's server: they name its
    environment, which is often not the kernel's.
    """
    while process > 1:
        words = _read_process(process, "cmdline").split("\0")
        if is_kernel(words):
            return Path(words[0])
        parent = re.search(r"^PPid:\s+(\d+)$", _read_process(process, "status"), re.MULTILINE)
        if parent is None:
            return None
        process = int(parent[1])
    return None


def _read_process(process: int, name: str) -> str:
    """Return the text of a file of /proc; empty if the process has ended or the file is hidden."""
    try:
        return read_text(f"/proc/{process}/{name}", LONGEST_FILE) or ""
    except OSError:
        return ""


def is_kernel(words: Sequence[str]) -> bool:
    """Return whether a command line starts ipykernel, as `python -m ipykernel_launcher -f FILE`."""
    if not Path(words[0]).is_absolute():
        return False
    # Jupyter's own kernels have one option of Python before the module, `-Xfrozen_modules=off`; a
    # `-m` after that of a program belongs to the program. Source: ipykernel/kernelspec.py
    return any(option == "-m" and module in KERNELS for option, module in pairwise(words[1:5]))


def _find_active(environ: Mapping[str, str], name: str) -> Candidate:
    """Return the environment that the shell has activated; activating it was the user's own
    decision, so its owner is not checked.
    """
    prefix = environ.get(name)
    if not prefix:
        return Candidate(name, f"{name} (unset)", None)
    return Candidate(name, f"{name} ({prefix})", Path(prefix) / "bin" / "python")


def _check_owners(found: Candidate) -> None:
    """Refuse to run an interpreter that another user could have put there.

    Git refuses the hooks of another user's repository in the same way. Source:
    https://git-scm.com/docs/git-config#Documentation/git-config.txt-safedirectory

    Raises:
        UsageError: a path that names or contains the interpreter belongs neither to this user nor
            to root.
    """
    trusted = _list_trusted_users(os.environ)
    for path in found.chosen:
        # The owner of a link decides where it leads, and that of the target what is run there.
        for owner in (path.lstat().st_uid, path.stat().st_uid):
            if owner not in trusted:
                raise UsageError(
                    f"{path} belongs to another user, {_get_user_name(owner)}, "
                    f"so {found.python} is not run",
                    hint=f"if you trust it, name it: `--python {found.python}`",
                )


def _list_trusted_users(environ: Mapping[str, str]) -> set[int]:
    """Return the users whose files may be run: this one, root, and under sudo the user who called
    it.
    """
    user = os.geteuid()
    trusted = {user, 0}
    caller = environ.get("SUDO_UID", "")
    # Only root may trust the variable: any user can set it.
    if user == 0 and caller.isdecimal():
        trusted.add(int(caller))
    return trusted


def _get_user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
