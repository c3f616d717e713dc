"""`envlock diverge`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from envlock.cli.diverging.compare import compare
from envlock.cli.diverging.record import record
from envlock.cli.options import FormatOption, PythonOption, QuietOption, one_of
from envlock.cli.output import color, emit, talk
from envlock.reports.json import dump
from envlock.reports.text import paint
from envlock.runtime.errors import UsageError

DEFAULT = "run"


class DivergeGroup(TyperGroup):
    """Takes `diverge SCRIPT` for `diverge run SCRIPT`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command before what is none."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [DEFAULT, *args]
        return list(super().parse_args(ctx, args))


app = typer.Typer(
    cls=DivergeGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="""Name the first operation that makes runs differ, and its line.

    `envlock diverge SCRIPT[:FUNCTION]` is `envlock diverge run SCRIPT[:FUNCTION]`.
    """,
)

RunsOption = Annotated[int, typer.Option("--runs", "-n", help="How often to run it.", min=2, max=1000)]
StepsOption = Annotated[
    int | None, typer.Option("--steps", help="End each run behind this many steps.", min=1, show_default=False)
]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Each run in a process of its own, as a script alone always is.")
]
InGraphOption = Annotated[
    bool, typer.Option("--in-graph", help="Look into the graphs where runs differ, instead of running eagerly.")
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="Set all seeds to this before each run.", show_default=False)
]
HtmlOption = Annotated[Path | None, typer.Option("--html", help="Also write the report as a page.", show_default=False)]


def run(
    script: Annotated[str, typer.Argument(metavar="SCRIPT[:FUNCTION]", help="What to run.", show_default=False)],
    args: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGS...", help="For the script; options after --.", show_default=False),
    ] = None,
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
    """Which operation makes runs differ? Run a program several times, and name the first one, its line and its remedy.

    Exit 0: all runs gave the same bits, 1: not, 2: it cannot be run.

    It is run as it is first. Where the runs differ it is run again eagerly, operation by operation, and every input
    and output is compared. FUNCTION takes nothing, or `seed`; what it returns is compared, too.

    \b
    Examples:
      envlock diverge train.py:step              5 runs of a function, in one process
      envlock diverge train.py -- --epochs 1     5 runs of a script, each in a process of its own
      envlock diverge train.py:step --html a.html
                                                 with the operations around the difference, as a page
    """
    one_of(format, ["text", "json"], "format")
    how = {"runs": runs, "steps": steps, "seed": seed, "python": python, "in_graph": in_graph}
    report = _found(script, args, fresh=fresh, html=html, quiet=quiet, how=how)
    if html is not None:
        _page(report, html)
        talk(f"wrote {html}", quiet=quiet)
    emit(dump(report.to_json()) if format == "json" else paint(report.lines(), color=color()))
    raise typer.Exit(report.exit_code)


def _found(
    script: str, args: list[str] | None, *, fresh: bool, html: Path | None, quiet: bool, how: dict[str, Any]
) -> Any:
    from envlock.divergence.debug import debug
    from envlock.divergence.observe import Request
    from envlock.numerics.target import target

    if html is not None and not html.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {html.absolute().parent}", hint="make it first")
    wanted = target(script, tuple(args or ()))
    request = Request(wanted, fresh=fresh or wanted.function is None, **how)
    return debug(request, lambda text: talk(text, quiet=quiet))


def _page(report: Any, path: Path) -> None:
    from envlock.lock.writer import write_atomically
    from envlock.reports.divergence_page import render

    write_atomically(path, render(report.to_json()).encode("utf-8"))


app.command(DEFAULT)(run)
app.command()(record)
app.command()(compare)
