"""What commands have in common: options, their choices, and which lockfile is meant."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from envlock.cli.output import color, emit, talk
from envlock.cli.parser import choice
from envlock.reports import FORMATS, render
from envlock.runtime import lockfile
from envlock.runtime.assertion import locate
from envlock.runtime.errors import UsageError
from envlock.runtime.policy import names
from envlock.runtime.report import Report
from envlock.workflows.interpreter import find_environment
from envlock.workflows.settings import Config
from envlock.workflows.settings import load as settings

STDIN = "-"
LIVE = "live"
"""What stands for the live environment in the place of a lockfile, in `envlock diff` and `envlock show`."""
DATA_FORMATS = FORMATS[:2]
"""What a command prints that judges nothing: text or JSON."""


LockArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="LOCK",
        envvar="ENVLOCK_LOCK",
        help="Lockfile; - for stdin. [default: the project's nearest envlock.lock]",
        show_default=False,
    ),
]
LockOption = Annotated[
    str | None,
    typer.Option(
        "--lock",
        metavar="LOCK",
        envvar="ENVLOCK_LOCK",
        help="Lockfile. [default: the project's nearest envlock.lock]",
        show_default=False,
    ),
]
PolicyOption = Annotated[
    str | None,
    choice(
        names(),
        "policy",
        *("--policy", "-p"),
        envvar="ENVLOCK_POLICY",
        help="Comparison policy. [default: the lockfile's own]",
        show_default=False,
    ),
]


def _environment(context: typer.Context, python: Path | None) -> Path | None:
    """Return the interpreter that is meant, None for this one, and say which unless the command line names it."""
    source = getattr(context.get_parameter_source("python"), "name", None)
    if context.params.get("image") is not None:  # a path in there; a variable names one here
        return python if source == "COMMANDLINE" else None
    quiet = bool(context.params.get("quiet")) or not _looks_at_environment(context)
    if python is not None:
        if source != "COMMANDLINE":
            talk(f"environment: {python} (ENVLOCK_PYTHON)", quiet=quiet)
        # a path has lost its `./`, without which PATH would be searched
        return python.absolute() if os.path.isfile(python) else python  # noqa: PTH113 (false for any name)
    try:
        found = find_environment(os.environ, Path.cwd())
    except UsageError:
        if _looks_at_environment(context):
            raise
        return None
    if found.origin:
        talk(f"environment: {found.shown} ({found.origin})", quiet=quiet)
    return found.python


def _looks_at_environment(context: typer.Context) -> bool:
    """Return whether the command looks at an environment, and not only at the files that it was given."""
    given = context.params
    if {"a", "b"} <= given.keys():  # of `diff`
        return LIVE in (given["a"], given["b"])
    if context.info_name == "show":
        return given.get("lock") == LIVE
    examined = given.get("lock") if context.info_name == "doctor" else None
    return not (examined or given.get("compare"))


PythonOption = Annotated[
    Path | None,
    typer.Option(
        "--python",
        envvar="ENVLOCK_PYTHON",
        callback=_environment,
        help="Interpreter of the environment. [default: envlock's own if it has TensorFlow, else the active one, else "
        "the project's]",
        show_default=False,
    ),
]
IndexOption = Annotated[
    list[str] | None,
    typer.Option(
        "--index-url",
        "-i",
        envvar="ENVLOCK_INDEX_URL",
        help="Package index (repeatable). [default: those of pip's and uv's settings]",
        show_default=False,
    ),
]
TimeoutOption = Annotated[
    float, typer.Option(metavar="SECONDS", min=1, help="Give up after this long.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors on stderr.")]
RequireAllOption = Annotated[
    bool, typer.Option("--require-all", help="Exit 1 and write nothing if a package is left out.")
]
FormatOption = Annotated[
    str, choice(FORMATS, "format", "--format", "-f", help="Format of the report.")
]
DataFormatOption = Annotated[
    str, choice(DATA_FORMATS, "format", "--format", "-f", help="Format of the output.")
]
PlatformOption = Annotated[
    str | None,
    typer.Option(
        help="Platform: linux/amd64 or linux/arm64. [default: the lockfile's]",
        metavar="PLATFORM",
        show_default=False,
    ),
]
MirrorOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Registry mirror (repeatable), e.g., nvcr.io=harbor.example/nvcr.",
        metavar="MIRROR",
        show_default=False,
    ),
]
AcceptOption = Annotated[
    str | None,
    typer.Option(
        help="Accept this digest for a release's tag, although another one is known.",
        metavar="DIGEST",
        show_default=False,
    ),
]
SCRIPT_HELP = "Script, or a function in it; PACKAGE.MODULE:FUNCTION for a module."
ScriptArgument = Annotated[
    str, typer.Argument(metavar="SCRIPT[:FUNCTION]", help=SCRIPT_HELP, show_default=False)
]
ModuleOption = Annotated[bool, typer.Option("-m", help="SCRIPT is a module: -m PACKAGE.MODULE.")]
ArgsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ARGS", help="Arguments for the script; options after --.", show_default=False
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        help="Set all seeds (Python, NumPy, TensorFlow, Keras) to this before each run.",
        min=0,
        max=2**32 - 1,
        show_default=False,
    ),
]


def config() -> Config:
    """Return the settings of the project that the current folder lies in.

    Raises:
        UsageError: they are not valid.
    """
    return settings(Path.cwd())


def source(lock: str | None, project: Config | None = None) -> str | bytes:
    """Return the lockfile that is meant: its path, or its content from stdin.

    Raises:
        LockfileError: none is named and none is near.
        UsageError: it is to come from stdin, which is closed.
    """
    if lock == STDIN and sys.stdin is None:
        raise UsageError(
            "cannot read the lockfile from stdin: it is closed",
            hint="pipe a lockfile into envlock, or name one",
        )
    if lock == STDIN:
        return sys.stdin.buffer.read(lockfile.SIZE_LIMIT + 1)
    known = config() if project is None else project
    return lock or (str(known.lock) if known.lock else None) or _near()


def near(lock: str | None) -> str | None:
    """Return the path of the lockfile that is meant; None where none is named and none is near."""
    known = config()
    found = lock or (str(known.lock) if known.lock else None)
    return found or (_near() if lockfile.find(str(Path.cwd())) else None)


def show(report: Report, format: str) -> NoReturn:  # noqa: A002 (the option's name)
    """Print a report and exit by it."""
    emit(render(report, format, color=color()))
    raise typer.Exit(report.exit_code)


def left_out(packages: Sequence[object], verb: str, *, required: bool, quiet: bool) -> None:
    """Say which packages are not `verb` (exported, vendored) and why; exit 1 where all of them were asked for."""
    if not packages:
        return
    number = f"{len(packages)} {'package' if len(packages) == 1 else 'packages'}"
    talk(
        f"{'error' if required else 'warning'}: {number} not {verb}:", quiet=quiet and not required
    )
    for each in packages:
        talk(f"  {each}", quiet=quiet and not required)
    if required:
        raise typer.Exit(1)


def _near() -> str:
    path = locate()
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def exclusive(ways: Mapping[str, object], others: Mapping[str, object]) -> None:
    """Refuse two ways of using a command at once, and options that the chosen way would not look at.

    Raises:
        UsageError: two of them were given.
    """
    chosen = [name for name, value in ways.items() if value]
    given = [*chosen, *(name for name, value in others.items() if value)]
    if chosen and len(given) > 1:
        raise UsageError(
            f"`{given[0]}` and `{given[1]}` exclude each other", hint=f"remove `{given[1]}`"
        )
