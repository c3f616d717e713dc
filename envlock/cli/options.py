"""What commands have in common: options, their choices, and how the lockfile is found."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from envlock.cli.output import emit, get_width, has_color, talk
from envlock.cli.parser import make_choice
from envlock.lock import settings
from envlock.lock.interpreter import find_environment
from envlock.lock.settings import Config
from envlock.reports import FORMATS, render
from envlock.runtime import lockfile
from envlock.runtime.assertion import locate
from envlock.runtime.errors import UsageError
from envlock.runtime.policies import names
from envlock.runtime.report import Report, count

STDIN = "-"
LIVE = "live"
"""The word for the live environment instead of a lockfile, in `envlock diff` and `envlock show`."""
FORWARDED = "ENVLOCK_FORWARDED"
"""As in `envlock/__main__.py`: `python -m envlock` warns where a module has imported that."""
DATA_FORMATS = FORMATS[:2]
"""The formats of commands that print no verdict: text or JSON."""


LockArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="LOCK",
        envvar="ENVLOCK_LOCK",
        help="Lockfile; - for stdin. [default: the project's nearest envlock.lock]",
    ),
]
LockOption = Annotated[
    str | None,
    typer.Option(
        "--lock",
        metavar="LOCK",
        envvar="ENVLOCK_LOCK",
        help="Lockfile. [default: the project's nearest envlock.lock]",
    ),
]
PolicyOption = Annotated[
    str | None,
    make_choice(
        names(),
        "policy",
        "--policy",
        "-p",
        envvar="ENVLOCK_POLICY",
        help="Comparison policy. [default: the lockfile's own]",
    ),
]


WITHOUT_ENVIRONMENT = "envlock.without_environment"
"""What a command notes about a call for which nothing of an environment is read."""


def _find_environment(context: typer.Context, python: Path | None) -> Path | None:
    """Return the interpreter to use, None for this one, and print which it is if a variable or
    envlock has chosen it.

    Raises:
        UsageError: no interpreter was found, and the command examines an environment.
    """
    is_named = get_source(context, "python") == "COMMANDLINE"
    if context.params.get("image") is not None:
        # With `--image` it is a path inside the image, and a variable names an interpreter here.
        return python if is_named else None
    needed = _needs_environment(context)
    quiet = bool(context.params.get("quiet")) or not needed
    if python is not None:
        if not is_named and not _is_called(python):
            talk(f"environment: {python} (ENVLOCK_PYTHON)", quiet=quiet)
        return name_interpreter(python)
    try:
        found = find_environment(os.environ, Path.cwd())
    except UsageError:
        if needed:
            raise
        return None
    if found.is_choice:
        talk(f"environment: {found.shown} ({found.origin})", quiet=quiet)
    return found.python


def name_interpreter(python: Path | None) -> Path | None:
    """Return the interpreter that a value of `--python` names: a folder is an environment, as for uv, and a bare name is
    looked for in PATH.
    """
    if python is None:
        return None
    # The path has lost its `./`, without which PATH would be searched.
    for found in (python / "bin" / "python", python):
        if os.path.isfile(found):  # noqa: PTH113 (false for any name)
            return found.absolute()
    in_path = shutil.which(python.name) if len(python.parts) == 1 else None
    return Path(in_path).absolute() if in_path is not None else python


def _is_called(python: Path) -> bool:
    """Return whether the `envlock` of this environment was called, which has handed over."""
    return os.path.realpath(python.parent) in os.environ.get(FORWARDED, "").split(os.pathsep)


def get_source(context: typer.Context, name: str) -> str | None:
    """Return where the value of a parameter comes from: `COMMANDLINE`, `ENVIRONMENT`, `DEFAULT` and so on."""
    source = context.get_parameter_source(name)
    if source is None:
        return None
    return source.name


def _needs_environment(context: typer.Context) -> bool:
    """Return whether the command examines an environment, and not only the files that it was given."""
    params = context.params
    # The two sides of `diff`.
    if {"a", "b"} <= params.keys():
        return LIVE in (params["a"], params["b"])
    if context.info_name == "show":
        return params.get("lock") == LIVE
    if WITHOUT_ENVIRONMENT in context.meta:
        return False
    if context.info_name == "doctor" and params.get("lock"):
        return False
    return not params.get("compare")


PythonOption = Annotated[
    Path | None,
    typer.Option(
        "--python",
        envvar="ENVLOCK_PYTHON",
        callback=_find_environment,
        help="Interpreter or folder of the environment. [default: envlock's own if it has TensorFlow, else the active "
        "one, else the project's]",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors on stderr.")]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Also list what may differ, and the facts of each change."
    ),
]
FormatOption = Annotated[
    str, make_choice(FORMATS, "format", "--format", "-f", help="Format of the report.")
]
DataFormatOption = Annotated[
    str, make_choice(DATA_FORMATS, "format", "--format", "-f", help="Format of the output.")
]
SCRIPT_HELP = "Script, or a function in it; PACKAGE.MODULE[:FUNCTION] for a module."
ScriptArgument = Annotated[str, typer.Argument(metavar="SCRIPT[:FUNCTION]", help=SCRIPT_HELP)]
ArgsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="ARGS", help="Arguments for the script; options after --."),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        help="Set all seeds (Python, NumPy, TensorFlow, Keras) to this before each run.",
        min=0,
        max=2**32 - 1,
    ),
]


def load_config() -> Config:
    """Return the settings of the project that contains the current folder.

    Raises:
        UsageError: they are not valid.
    """
    return settings.load(Path.cwd())


def find_source(lock: str | None, project: Config | None = None) -> str | bytes:
    """Return the lockfile to use: its path, or its content from stdin.

    Raises:
        LockfileError: none is named and none is found.
        UsageError: it should come from stdin, which is closed.
    """
    if lock == STDIN:
        if sys.stdin is None:
            raise UsageError(
                "cannot read the lockfile from stdin: it is closed",
                hint="pipe a lockfile into envlock, or name one",
            )
        # One byte more than is allowed, so that a longer one is refused instead of truncated.
        return sys.stdin.buffer.read(lockfile.SIZE_LIMIT + 1)
    if project is None:
        project = load_config()
    return _get_named(lock, project) or _locate_nearest()


def find_near(lock: str | None) -> str | None:
    """Return the path of the lockfile to use; None if none is named and none is found."""
    named = _get_named(lock, load_config())
    if named is not None:
        return named
    if lockfile.find(str(Path.cwd())) is None:
        return None
    return _locate_nearest()


def _get_named(lock: str | None, project: Config) -> str | None:
    """Return the lockfile that the command line names, or else the settings."""
    if lock:
        return lock
    if project.lock is None:
        return None
    return str(project.lock)


def _locate_nearest() -> str:
    path = locate()
    relative = os.path.relpath(path)
    if relative.startswith(".."):
        return path
    return relative


def show(report: Report, format: str, *, verbose: bool = False) -> NoReturn:  # noqa: A002 (the option's name)
    """Print a report and exit with its code."""
    emit(render(report, format, color=has_color(), width=get_width(), verbose=verbose))
    raise typer.Exit(report.exit_code)


def list_left_out(packages: Sequence[object], verb: str) -> None:
    """Print which packages are not `verb` (exported, installed) and why."""
    talk(f"error: {count(len(packages), 'package')} not {verb}:")
    for package in packages:
        talk(f"  {package}")


def refuse_both(ways: Mapping[str, object], others: Mapping[str, object]) -> None:
    """Refuse two ways of using a command at once, and options that the chosen way does not use.

    Args:
        ways: the options of which one can be given, with their values.
        others: the options that cannot be combined with any of these.

    Raises:
        UsageError: two of them were given.
    """
    chosen = [name for name, value in ways.items() if value]
    given = [*chosen, *(name for name, value in others.items() if value)]
    if chosen and len(given) > 1:
        raise UsageError(
            f"`{given[0]}` and `{given[1]}` exclude each other", hint=f"remove `{given[1]}`"
        )
