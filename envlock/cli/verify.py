"""`envlock verify`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envlock.cli import config as settings
from envlock.cli.options import (
    LockArgument,
    PolicyOption,
    PythonOption,
    QuietOption,
    ReportOption,
    live,
    one_of,
    read_document,
)
from envlock.cli.output import color, emit, talk
from envlock.reports import FORMATS
from envlock.runtime.capture import Snapshot
from envlock.runtime.cuda import deep as asked
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.report import Finding, Report
from envlock.runtime.verify import judge


def verify(
    lock: LockArgument = None,
    policy: PolicyOption = None,
    python: PythonOption = None,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Also ask TensorFlow, in a child process (seconds), which CUDA it gets."),
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
      envlock verify --deep                  files against what TensorFlow itself loads
      envlock verify -f json | jq .findings  for programs
      envlock verify -f github               in a workflow: annotations; sarif and junit for other services
    """
    one_of(format, list(FORMATS), "format")
    _, document = read_document(lock, settings.load(Path.cwd()))
    found = live(python)
    report = judge(document, found, policy)
    if deep:
        talk("asking TensorFlow itself which CUDA libraries it gets", quiet=quiet)
        report = Report(report.findings + _contradictions(found, python), report.policy)
    emit(FORMATS[format](report, color=color()))
    raise typer.Exit(report.exit_code)


def _contradictions(found: Snapshot, python: Path | None) -> list[Finding]:
    cuda = found.facts.get("cuda")
    if not isinstance(cuda, dict):  # no CUDA build of TensorFlow: there is nothing to ask
        return []
    answers = asked.ask_tensorflow(Host(), python=None if python is None else str(python))
    return [asked.unanswered(answers)] if isinstance(answers, Unavailable) else asked.contradictions(cuda, answers)
