"""The options that several commands share, and finding the lockfile they mean."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from envlock.cli.config import Config
from envlock.cli.output import talk
from envlock.runtime import lockfile
from envlock.runtime.assertion import locate
from envlock.runtime.errors import UsageError

STDIN = "-"

LockArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="LOCK",
        envvar="ENVLOCK_LOCK",
        help="The lockfile; - is stdin. Default: the nearest envlock.lock, from here upwards.",
        show_default=False,
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        "-p",
        envvar="ENVLOCK_POLICY",
        help="How closely: strict, same-arch or functional. Default: the lock's own.",
        show_default=False,
    ),
]
PythonOption = Annotated[
    Path | None,
    typer.Option(
        "--python",
        envvar="ENVLOCK_PYTHON",
        help="Look at the environment of this interpreter; envlock need not be installed there.",
        show_default=False,
    ),
]
IndexOption = Annotated[
    list[str] | None,
    typer.Option(
        "--index-url",
        "-i",
        envvar="ENVLOCK_INDEX_URL",
        help="Ask this package index (may be repeated). Default: those of pip's and uv's settings.",
        show_default=False,
    ),
]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Ask no index: what can be told here only.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on stderr but errors.")]
RequireAllOption = Annotated[
    bool, typer.Option("--require-all", help="Exit 1, and write nothing, when a package is left out.")
]
FormatOption = Annotated[str, typer.Option("--format", "-f", help="text for people, json for programs.")]
ReportOption = Annotated[
    str,
    typer.Option("--format", "-f", help="text for people; json, github, junit or sarif for programs."),
]


def one_of(value: str, choices: list[str], what: str) -> str:
    """Return `value` when it is one of the choices.

    Raises:
        UsageError: it is not; the hint lists them.
    """
    if value not in choices:
        raise UsageError(f"there is no {what} `{value}`", hint=f"there are: {', '.join(choices)}")
    return value


def accept(left_out: Sequence[object], done: str, *, require_all: bool, quiet: bool) -> None:
    """Say which packages are not `done` (exported, vendored) and why; exit 1 where all of them were asked for."""
    if not left_out:
        return
    number = f"{len(left_out)} {'package is' if len(left_out) == 1 else 'packages are'}"
    talk(f"{'error' if require_all else 'warning'}: {number} not {done}:", quiet=quiet and not require_all)
    for each in left_out:
        talk(f"  {each}", quiet=quiet and not require_all)
    if require_all:
        raise typer.Exit(1)


def read_document(lock: str | None, config: Config) -> tuple[str, dict[str, Any]]:
    """Return the name and the checked document of the lockfile that is meant.

    Raises:
        LockfileError: there is none, or it is invalid.
        UsageError: it is to come from stdin, which is closed.
    """
    if lock == STDIN and sys.stdin is None:
        raise UsageError("cannot read the lockfile from stdin: it is closed", hint="pipe a lockfile in, or name one")
    if lock == STDIN:
        return "stdin", lockfile.parse(sys.stdin.buffer.read(lockfile.SIZE_LIMIT + 1), "from stdin")
    path = lock or (str(config.lock) if config.lock else None) or _near()
    return path, lockfile.read_file(path)


def target(output: Path | None, config: Config) -> Path:
    """Return where `capture` writes: the file named, the project's, the nearest one of the project, or a new one here.

    A lock above the folder of the project's settings belongs to another project.
    """
    near = lockfile.find(str(Path.cwd()))
    if near is not None and config.folder is not None and not Path(near).is_relative_to(config.folder):
        near = None
    return output or config.lock or Path(near or lockfile.NAME)


def _near() -> str:
    path = locate()
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
