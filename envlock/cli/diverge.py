"""`envlock diverge`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    ArgsArgument,
    FormatOption,
    PythonOption,
    ScriptArgument,
    SeedOption,
    show,
)
from envlock.cli.output import Terminal, emit, get_width, has_color, say, talk
from envlock.cli.parser import Command, Group, make_app
from envlock.cli.signals import interrupt_on_signals
from envlock.evidence.program import Program
from envlock.reports import render
from envlock.runtime.report import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typer._click.core import Context

    from envlock.evidence.diverge.trace_recording import Recorded

DEFAULT = "run"


class DivergeGroup(Group):
    """Accepts `diverge SCRIPT` for `diverge run SCRIPT`."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Insert the default command before a word that is not a command."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [DEFAULT, *args]
        return list(super().parse_args(ctx, args))


app = make_app(
    cls=DivergeGroup,
    no_args_is_help=True,
    help="""Find the first operation that makes runs differ, and its line.

    `envlock diverge SCRIPT[:FUNCTION]` is short for `envlock diverge run SCRIPT[:FUNCTION]`.
    """,
)

StepsOption = Annotated[
    int | None,
    typer.Option("--steps", help="Stop each run after this many steps.", min=1),
]
TraceArgument = Annotated[str, typer.Argument(help="Trace from `envlock diverge record`.")]


@app.command(DEFAULT, cls=Command)
def run(
    script: ScriptArgument,
    args: ArgsArgument = None,
    seed: SeedOption = None,
    python: PythonOption = None,
    runs: Annotated[int, typer.Option("--runs", "-n", help="Number of runs.", min=2, max=1000)] = 5,
    steps: StepsOption = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start a new process for each run, as for a script.")
    ] = False,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Run a program several times and find the first operation that differs.

    Exit 0: all runs gave the same bits. Exit 1: they did not. Exit 2: the program cannot be run.
    Exit 4: a run failed.

    The first runs use the program's own mode. If they differ, they are repeated eagerly, and every
    input and output of every operation is compared. The report names the operation, its line and a
    remedy. FUNCTION takes no argument, or `seed`; its return value is compared as well.

    \b
    Examples:
      envlock diverge train.py:step              5 runs of a function, in one process
      envlock diverge pkg.train:step             a function of a module of a package
      envlock diverge pkg.train                  a module as a program
      envlock diverge train.py -- --epochs 1     5 runs of a script, each in a new process
    """
    with interrupt_on_signals() as stop:
        report = envlock.diverge_script(
            Program(script, args or (), seed, python),
            runs=runs,
            steps=steps,
            fresh=fresh,
            progress=Terminal(),
        )
    if report.evidence.stopped is None:
        show(report, format)
    emit(render(report, format, color=has_color(), width=get_width()))
    raise typer.Exit(stop.exit_code)


@app.command(cls=Command)
def record(
    script: ScriptArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Trace to write.")],
    args: ArgsArgument = None,
    seed: SeedOption = None,
    python: PythonOption = None,
    steps: StepsOption = None,
) -> None:
    """Record the results of every operation of one run, to compare two environments.

    The trace holds fingerprints of inputs and outputs, lines of your code, and the facts of the
    environment. It holds no values, no paths outside the script's folder, and no user or host
    names.

    \b
    Examples:
      envlock diverge record train.py:step -o a.trace              eagerly, operation by operation
      envlock diverge record train.py:step -o b.trace --python other/bin/python
                                                                   in another environment
    """
    with interrupt_on_signals():
        program = Program(script, args or (), seed, python)
        found = envlock.record_trace(program, output, steps=steps, progress=Terminal())
    _explain(found, output)


@app.command(cls=Command)
def compare(
    a: TraceArgument,
    b: TraceArgument,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Compare two traces and find the first operation that gave different bits.

    Exit 0: the same bits everywhere. Exit 1: different bits, or the traces cannot be aligned. Exit
    3: a trace cannot be read.

    \b
    Examples:
      envlock diverge compare a.trace b.trace                                  the first difference, as text
      envlock diverge compare a.trace b.trace -f json | jq .attachments.first  for programs
    """
    show(envlock.compare_traces(a, b), format)


def _explain(found: Recorded, output: Path) -> None:
    """Print what was written, and its limits."""
    size = f"{found.size / 1e6:.1f} MB" if found.size >= 100_000 else f"{found.size / 1e3:.1f} kB"
    amount = f"{found.entries} entries of {count(found.steps, 'step')}"
    talk(f"wrote {output}: {amount}, {size}, TensorFlow {found.header.tensorflow}")
    if found.end.get("elsewhere"):
        say(
            f"warning: {found.end['elsewhere']} operations ran in other threads and were not recorded\n"
        )
