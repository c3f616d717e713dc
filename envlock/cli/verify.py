"""`envlock verify`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envlock.cli import config as settings
from envlock.cli.deep import deep as beyond
from envlock.cli.options import (
    LockArgument,
    PolicyOption,
    PythonOption,
    QuietOption,
    ReportOption,
    one_of,
    read_document,
)
from envlock.cli.output import color, emit
from envlock.lock.live import live
from envlock.reports import FORMATS
from envlock.runtime.report import Report
from envlock.runtime.verify import judge


def verify(
    lock: LockArgument = None,
    policy: PolicyOption = None,
    python: PythonOption = None,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also hash every installed file, and ask TensorFlow in a child process which CUDA it gets.",
        ),
    ] = False,
    numerics: Annotated[
        bool,
        typer.Option("--numerics", help="Also compute the lock's canary in TensorFlow: does it give the same bits?"),
    ] = False,
    format: ReportOption = "text",  # noqa: A002 (the option's name)
    quiet: QuietOption = False,
) -> None:
    """Is this environment the locked one?

    Exit 0: yes, 1: no, 4: a fact that is needed could not be collected.

    Every difference is listed, the likeliest cause of other bits first, each with its reason and its remedy.

    \b
    Examples:
      envlock verify                         the nearest lockfile under its own policy
      envlock verify gpu.lock -p same-arch   another machine of the same architecture will do
      envlock verify --deep                  every file against its RECORD, CUDA against what TensorFlow loads
      envlock verify --numerics              exact results of TensorFlow's operations against the lock's
      envlock verify -f json | jq .findings  for programs
      envlock verify -f github               in a workflow: annotations; sarif and junit for other services
    """
    one_of(format, list(FORMATS), "format")
    name, document = read_document(lock, settings.load(Path.cwd()))
    found = live(python)
    report = judge(document, found, policy)
    if deep:
        report = Report(report.findings + beyond(name, document, found, python, quiet=quiet), report.policy)
    if numerics:
        from envlock.cli.numerics import verified

        report = verified(report, name, document, found, python, quiet=quiet)
    emit(FORMATS[format](report, color=color()))
    raise typer.Exit(report.exit_code)
