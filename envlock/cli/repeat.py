"""`envlock repeat`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    AS_TEXT,
    SCRIPT_HELP,
    ArgsArgument,
    PythonOption,
    ReportOptions,
    SeedOption,
)
from envlock.cli.output import Terminal, emit, get_width, has_color, say
from envlock.cli.parser import Command, make_app, spread_groups
from envlock.cli.signals import interrupt_on_signals
from envlock.lock.writer import write_atomically
from envlock.reports import render, repeat_page
from envlock.runtime.errors import UsageError
from envlock.runtime.report import UNKNOWN, Report
from envlock.workflows.program import Program
from envlock.workflows.repeat import need_folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.numerics.outcome import RepeatEvidence

app = make_app()

OptionalScript = Annotated[
    str | None,
    typer.Argument(metavar="SCRIPT[:FUNCTION]", help=SCRIPT_HELP, show_default=False),
]
RunsOption = Annotated[int, typer.Option("--runs", "-n", help="Number of runs.", min=1)]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Start a new process for each run.")]
SaveOption = Annotated[
    Path | None,
    typer.Option(help="New folder to save the results in, for --compare.", show_default=False),
]
CompareOption = Annotated[
    tuple[Path, Path] | None,
    typer.Option(metavar="A B", help="Compare two saved folders; run nothing.", show_default=False),
]
StepOption = Annotated[
    list[int] | None,
    typer.Option(
        help="Step to show (repeatable). [default: the first different step, and the last]",
        show_default=False,
    ),
]
HtmlOption = Annotated[
    Path | None, typer.Option(help="Also write the report as a page.", show_default=False)
]
OutputOption = Annotated[
    bool, typer.Option("--output", help="Pass the script's own output through, on stderr.")
]


@dataclass(frozen=True)
class RepeatedProgram:
    """The program that is repeated; none where saved results are compared."""

    script: OptionalScript = None
    args: ArgsArgument = None
    seed: SeedOption = None
    python: PythonOption = None


@dataclass(frozen=True)
class ResultOptions:
    """What becomes of the results: saved, compared, shown and drawn."""

    save: SaveOption = None
    compare: CompareOption = None
    step: StepOption = None
    html: HtmlOption = None


NO_PROGRAM = RepeatedProgram()
PRINTED = ResultOptions()


@app.command(cls=Command)
@spread_groups
def repeat(
    run: RepeatedProgram = NO_PROGRAM,
    runs: RunsOption = 7,
    fresh: FreshOption = False,
    results: ResultOptions = PRINTED,
    output: OutputOption = False,
    shown: ReportOptions = AS_TEXT,
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
    _check(run.script, results)
    need_folder_of(results.html)
    steps = results.step or []
    progress = Terminal(shown.quiet)
    with interrupt_on_signals() as stop:
        if results.compare is not None:
            report = envlock.compare_saved(
                *results.compare, steps=steps, python=run.python, progress=progress
            )
        else:
            report = envlock.repeat(
                Program(run.script or "", run.args or (), run.seed, run.python),
                runs=runs,
                fresh=fresh,
                save=results.save,
                steps=steps,
                output=output,
                progress=progress,
            )
    _write(report, results)
    emit(render(report, shown.format, color=has_color(), width=get_width()))
    _print_hints(report)
    if report.evidence.interrupted:
        raise typer.Exit(stop.exit_code)
    raise typer.Exit(report.exit_code)


def _check(script: str | None, results: ResultOptions) -> None:
    """Refuse options that contradict each other, before anything runs."""
    hint = "use `envlock repeat SCRIPT[:FUNCTION]`, or `envlock repeat --compare A B`"
    if script is None and results.compare is None:
        raise UsageError("nothing to run or compare", hint=hint)
    if script is not None and results.compare is not None:
        raise UsageError("`--compare` takes no script", hint=hint)
    if results.compare is not None and results.save is not None:
        raise UsageError("`--compare` and `--save` exclude each other", hint="use one of them")


def _print_hints(report: Report) -> None:
    """Print a remedy if too few runs finished; beside the matrices, the report has no room for it."""
    for fix in dict.fromkeys(finding.fix for finding in report.of(UNKNOWN)):
        say(f"hint: {fix}\n")


def _write(report: Report[RepeatEvidence], results: ResultOptions) -> None:
    """Write the page that was requested."""
    if results.html is not None:
        page = repeat_page.render_page(report, render(report))
        write_atomically(results.html, page.encode("utf-8"), "page")
