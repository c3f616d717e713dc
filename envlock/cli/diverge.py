"""`envlock diverge`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from envlock.cli.options import ArgsArgument, FormatOption, PythonOption, QuietOption, ScriptArgument, SeedOption, show
from envlock.cli.output import Terminal, say, talk
from envlock.cli.parser import Command, Group, new_app
from envlock.runtime.report import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.divergence.record import Recorded

DEFAULT = "run"


class DivergeGroup(Group):
    """Takes `diverge SCRIPT` for `diverge run SCRIPT`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command before what is no command."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [DEFAULT, *args]
        return list(super().parse_args(ctx, args))


app = new_app(
    cls=DivergeGroup,
    no_args_is_help=True,
    help="""Name the first operation that makes runs differ, and its line.

    `envlock diverge SCRIPT[:FUNCTION]` is short for `envlock diverge run SCRIPT[:FUNCTION]`.
    """,
)

RunsOption = Annotated[int, typer.Option("--runs", "-n", help="Number of runs.", min=2, max=1000)]
StepsOption = Annotated[
    int | None, typer.Option("--steps", help="Stop each run after this many steps.", min=1, show_default=False)
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Start a new process for each run, as for a script.")]
InGraphOption = Annotated[
    bool, typer.Option("--in-graph", help="Look inside graphs where runs differ, instead of running eagerly.")
]
HtmlOption = Annotated[Path | None, typer.Option("--html", help="Also write the report as a page.", show_default=False)]
TraceOutput = Annotated[Path, typer.Option("--output", "-o", help="Trace to write.", show_default=False)]
WholeGraphOption = Annotated[
    bool, typer.Option("--in-graph", help="Run as the program does, and look inside its graphs. [default: eagerly]")
]
UncheckedOption = Annotated[
    bool, typer.Option("--unchecked", help="With --in-graph: skip the run that shows whether tracing changed results.")
]
TraceArgument = Annotated[str, typer.Argument(help="Trace from `envlock diverge record`.", show_default=False)]


@app.command(DEFAULT, cls=Command)
def run(
    script: ScriptArgument,
    args: ArgsArgument = None,
    runs: RunsOption = 5,
    steps: StepsOption = None,
    fresh: FreshOption = False,
    in_graph: InGraphOption = False,
    seed: SeedOption = None,
    python: PythonOption = None,
    html: HtmlOption = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
    quiet: QuietOption = False,
) -> None:
    """Run a program several times and name the first operation that differs, its line and a remedy.

    Exit 0: all runs gave the same bits. Exit 1: not. Exit 2: it cannot be run.

    The first runs are in the program's own mode. If they differ, they are repeated eagerly, and every input and output
    of every operation is compared. FUNCTION takes nothing, or `seed`; what it returns is compared as well.

    \b
    Examples:
      envlock diverge train.py:step              5 runs of a function, in one process
      envlock diverge train.py -- --epochs 1     5 runs of a script, each in a new process
      envlock diverge train.py:step --html a.html
                                                 with the operations around the difference, as a page
    """
    from envlock.lock.writer import write_atomically
    from envlock.reports.divergence_page import page
    from envlock.workflows.diverge import diverge_script
    from envlock.workflows.repeat import need_folder_of

    need_folder_of(html)
    how: dict[str, Any] = {"runs": runs, "steps": steps, "fresh": fresh, "in_graph": in_graph, "seed": seed}
    report = diverge_script(script, args or (), python=python, progress=Terminal(quiet), **how)
    if html is not None:
        write_atomically(html, page(report).encode("utf-8"), "page")
        talk(f"wrote {html}", quiet=quiet)
    show(report, format)


@app.command(cls=Command)
def record(
    script: ScriptArgument,
    output: TraceOutput,
    args: ArgsArgument = None,
    in_graph: WholeGraphOption = False,
    unchecked: UncheckedOption = False,
    steps: StepsOption = None,
    seed: SeedOption = None,
    python: PythonOption = None,
    quiet: QuietOption = False,
) -> None:
    """Record what every operation of one run computes, to compare it with a run in another environment.

    The trace holds fingerprints of inputs and outputs, lines of your code, and the facts of the environment. It holds
    no values, no paths outside the script's folder, and no user or host names.

    \b
    Examples:
      envlock diverge record train.py:step -o a.trace              eagerly, operation by operation
      envlock diverge record train.py:step -o a.trace --in-graph   with its graphs and XLA
      envlock diverge record train.py:step -o b.trace --python other/bin/python
    """
    from envlock.workflows.diverge import record_trace

    how: dict[str, Any] = {"in_graph": in_graph, "check": not unchecked, "steps": steps, "seed": seed}
    found = record_trace(script, output, args or (), python=python, progress=Terminal(quiet), **how)
    _explain(found, output, quiet=quiet)


@app.command(cls=Command)
def compare(
    a: TraceArgument,
    b: TraceArgument,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Compare two traces and name the first operation that gave other bits.

    Exit 0: the same bits everywhere. Exit 1: not, or the traces cannot be aligned. Exit 3: a trace cannot be read.

    \b
    Examples:
      envlock diverge compare a.trace b.trace
      envlock diverge compare a.trace b.trace -f json | jq .attachments.first
    """
    from envlock.workflows.diverge import compare_traces

    show(compare_traces(a, b), format)


WARNINGS = {
    "changed": "tracing CHANGED THE RESULT: TensorFlow fuses kernels that nobody observes, and a fused kernel can give "
    "other bits; the trace is of the program as it ran under the tracer",
    "unstable": "the program computes something else in every run, so whether tracing changed the result is unknown; "
    "`envlock diverge` finds the cause",
}


def _explain(found: Recorded, output: Path, *, quiet: bool) -> None:
    """Say what was written; what limits it is said with --quiet as well."""
    size = f"{found.size / 1e6:.1f} MB" if found.size >= 100_000 else f"{found.size / 1e3:.1f} kB"
    amount = f"{found.entries} entries of {count(found.steps, 'step')}"
    talk(f"wrote {output}: {amount}, {size}, TensorFlow {found.header.tensorflow}", quiet=quiet)
    if found.effect in WARNINGS:
        say(f"warning: {WARNINGS[found.effect]}\n")
    elif found.effect == "none":
        talk("tracing did not change the result", quiet=quiet)
    if found.end.get("elsewhere"):
        say(f"warning: {found.end['elsewhere']} operations ran in other threads and were not recorded\n")
    if found.end.get("unseen"):
        say(f"warning: {found.end['unseen']} operations did not fit into the table and were not recorded\n")
