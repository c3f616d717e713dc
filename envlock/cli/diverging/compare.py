"""`envlock diverge compare`"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from envlock.cli.options import FormatOption, one_of
from envlock.cli.output import color, emit
from envlock.reports.json import dump
from envlock.reports.text import paint

TraceArgument = Annotated[str, typer.Argument(help="A trace that `envlock diverge record` wrote.", show_default=False)]


def compare(
    a: TraceArgument,
    b: TraceArgument,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Which operation gave other bits in the other environment? Compare two traces, and name the first one.

    Exit 0: the same bits everywhere, 1: not, or they cannot be aligned, 3: a trace cannot be read.

    \b
    Examples:
      envlock diverge compare a.trace b.trace
      envlock diverge compare a.trace b.trace -f json | jq .first
    """
    one_of(format, ["text", "json"], "format")
    report = _compared(a, b)
    emit(dump(report.to_json()) if format == "json" else paint(report.lines(), color=color()))
    raise typer.Exit(report.exit_code)


def _compared(a: str, b: str) -> Any:
    from envlock.divergence.two_traces import report

    return report(a, b)
