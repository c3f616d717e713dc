"""`envlock doctor`"""

from __future__ import annotations

from typing import Annotated

import typer

import envlock
from envlock.cli.options import FormatOption, PythonOption, find_source
from envlock.cli.output import Terminal, emit, get_width, has_color, talk
from envlock.cli.parser import Command, make_app
from envlock.diagnosis.variable_values import list_fixes
from envlock.reports import render
from envlock.runtime.errors import UsageError

app = make_app()


@app.command(cls=Command)
def doctor(
    lock: Annotated[
        str | None,
        typer.Argument(
            metavar="LOCK",
            help="Lockfile of the environment to examine; - for stdin. [default: the live environment]",
        ),
    ] = None,
    python: PythonOption = None,
    fix_env: Annotated[
        bool, typer.Option("--fix-env", help="Print only shell lines that set and unset variables.")
    ] = False,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove",
            help="Run probe operations in a child process to check that determinism is on (takes seconds).",
        ),
    ] = False,
    setup: Annotated[
        str | None,
        typer.Option("--setup", help="Python lines to run before the probe operations."),
    ] = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Find defects and sources of nondeterminism in an environment.

    Exit 0: no errors. Exit 1: errors. Every finding has its evidence, reason and remedy. An
    environment without findings prints nothing on stdout. Nothing is changed.

    \b
    Examples:
      envlock doctor                            the live environment
      envlock doctor gpu.lock                   the environment of a lockfile
      eval "$(envlock doctor --fix-env)"        correct the variables of this shell
      envlock doctor --prove                    test whether op determinism is on
      envlock doctor --prove --setup "$(head -n 9 train.py)"
                                                the same, after the first lines of a program
    """
    if setup is not None and not prove:
        raise UsageError("`--setup` needs `--prove`", hint="add `--prove`")
    source = find_source(lock) if lock is not None else None
    report = envlock.doctor(source, python=python, prove=prove, setup=setup, progress=Terminal())
    if fix_env:
        lines = list_fixes(report.findings)
        # A shell evaluates what is printed, so nothing is printed if there is nothing to do.
        if lines:
            emit("\n".join(lines))
        return
    if report.findings or format != "text" or report.evidence.states is not None:
        emit(render(report, format, color=has_color(), width=get_width()))
    else:
        talk(report.headline)
    raise typer.Exit(report.exit_code)
