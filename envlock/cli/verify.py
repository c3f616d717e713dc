"""`envlock verify`"""

from __future__ import annotations

from pathlib import Path

import typer

from envlock.cli import config as settings
from envlock.cli.options import FormatOption, LockArgument, PolicyOption, PythonOption, live, one_of, read_document
from envlock.cli.output import color, emit
from envlock.reports import FORMATS
from envlock.runtime.verify import judge


def verify(
    lock: LockArgument = None,
    policy: PolicyOption = None,
    python: PythonOption = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
) -> None:
    """Is this environment the locked one?

    Exit 0: yes, 1: no, 4: a fact that is needed could not be collected.

    Every difference is listed, the likeliest cause of other bits first, each with its reason and its remedy.

    \b
    Examples:
      envlock verify                         the nearest lockfile under its own policy
      envlock verify gpu.lock -p same-arch   another machine of the same architecture will do
      envlock verify -f json | jq .findings  for programs
    """
    one_of(format, list(FORMATS), "format")
    _, document = read_document(lock, settings.load(Path.cwd()))
    report = judge(document, live(python), policy)
    emit(FORMATS[format](report, color=color()))
    raise typer.Exit(report.exit_code)
