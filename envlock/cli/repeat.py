"""`envlock repeat`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    SCRIPT_HELP,
    ArgsArgument,
    FormatOption,
    PythonOption,
    SeedOption,
)
from envlock.cli.output import Terminal, emit, get_width, has_color, say
from envlock.cli.parser import Command, make_app
from envlock.cli.signals import interrupt_on_signals
from envlock.evidence.program import Program
from envlock.evidence.repeat import repeat_page
from envlock.evidence.repeat.repeat import need_folder_of
from envlock.lock.writer import write_atomically
from envlock.reports import render
from envlock.runtime.errors import UsageError
from envlock.runtime.report import UNKNOWN, Report

app = make_app()


@app.command(cls=Command)
def repeat(
    script: Annotated[
        str | None,
        typer.Argument(metavar="SCRIPT[:FUNCTION]", help=SCRIPT_HELP),
    ] = None,
    args: ArgsArgument = None,
    seed: SeedOption = None,
    python: PythonOption = None,
    runs: Annotated[int, typer.Option("--runs", "-n", help="Number of runs.", min=1)] = 7,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start a new process for each run.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(help="New folder to save the results in, for --compare."),
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A B", help="Compare two saved folders; run nothing."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write the report as a page.")] = None,
    output: Annotated[
        bool, typer.Option("--output", help="Pass the script's own output through, on stderr.")
    ] = False,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Run a training several times and compare the results bit for bit.

    Exit 0: the same bits in all runs. Exit 1: different bits. Exit 2: cannot be run. Exit 4: a run
    failed. 130: Ctrl-C.

    FUNCTION returns a value, a Keras model or a dict of named values, yields one at each step, or
    returns a (model, data[, fit_arguments]). A SCRIPT without a FUNCTION calls
    envlock.record(loss=..., weights=...) at every step.

    \b
    Examples:
      envlock repeat train.py:step                   7 runs of a function, in one process
      envlock repeat train.py --fresh -- --epochs 2  7 runs of a script, each in a new process
      envlock repeat train.py:step --seed 1          with the same seeds before each run
      envlock repeat pkg.train:step                  a function of a module of a package
      envlock repeat pkg.train --fresh               a module as a program
      envlock repeat train.py:step --save cpu        save the results, on each of two machines
      envlock repeat --compare cpu gpu               compare them
    """
    # What can be refused is refused before the runs, which can take hours.
    _check(script, compare, save)
    need_folder_of(html)
    progress = Terminal()
    with interrupt_on_signals() as stop:
        if compare is not None:
            report = envlock.compare_saved(*compare, python=python, progress=progress)
        else:
            report = envlock.repeat(
                Program(script or "", args or (), seed, python),
                runs=runs,
                fresh=fresh,
                save=save,
                output=output,
                progress=progress,
            )
    if html is not None:
        page = repeat_page.render_page(report, render(report))
        write_atomically(html, page.encode("utf-8"), "page")
    emit(render(report, format, color=has_color(), width=get_width()))
    _print_hints(report)
    if report.evidence.interrupted:
        raise typer.Exit(stop.exit_code)
    raise typer.Exit(report.exit_code)


def _check(script: str | None, compare: object, save: Path | None) -> None:
    """Refuse options that contradict each other, before anything runs."""
    hint = "use `envlock repeat SCRIPT[:FUNCTION]`, or `envlock repeat --compare A B`"
    if script is None and compare is None:
        raise UsageError("nothing to run or compare", hint=hint)
    if script is not None and compare is not None:
        raise UsageError("`--compare` takes no script", hint=hint)
    if compare is not None and save is not None:
        raise UsageError("`--compare` and `--save` exclude each other", hint="use one of them")


def _print_hints(report: Report) -> None:
    """Print a remedy if too few runs finished; beside the matrices, the report has no room for it."""
    for fix in dict.fromkeys(finding.fix for finding in report.of(UNKNOWN)):
        say(f"hint: {fix}\n")
