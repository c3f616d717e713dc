"""`envlock lint`"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from envlock.cli.options import find_near, load_config, show
from envlock.cli.output import Terminal, emit, talk
from envlock.cli.parser import Command, make_app, make_choice
from envlock.linter import concise
from envlock.linter import lint as workflow
from envlock.lock.interpreter import find_environment
from envlock.reports import FORMATS
from envlock.runtime import lockfile
from envlock.runtime.errors import UsageError
from envlock.runtime.report import count

app = make_app()

CONCISE = "concise"
LINT_FORMATS = (*FORMATS, CONCISE)


@app.command(cls=Command)
def lint(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Python files and notebooks, or folders that hold them. [default: the project]",
        ),
    ] = None,
    tf: Annotated[
        str | None,
        typer.Option(
            "--tf",
            metavar="VERSION",
            help="TensorFlow version to check for. [default: the locked, else the installed, else the newest one]",
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(help="Only these rules or prefixes (e.g., ENV2)."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="FILE",
            help="Leave out what this file holds: findings in old code.",
        ),
    ] = None,
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Write all findings into the baseline; exit 0.")
    ] = False,
    format: Annotated[  # noqa: A002 (the option's name)
        str, make_choice(LINT_FORMATS, "format", "--format", "-f", help="Format of the report.")
    ] = "text",
) -> None:
    """Find code that makes TensorFlow results differ between runs.

    Exit 0: no findings, or notes only. Exit 1: errors or warnings.

    The code is read, never run. A comment with a reason silences a finding, on its line or on the
    line above: `# envlock: ignore[ENV203] sorted below`

    \b
    Examples:
      envlock lint                             the project, for the locked TensorFlow
      envlock lint train.py --tf 2.15.1        for another version
      envlock lint src --select ENV1,ENV2      only switches, variables and seeds
      envlock lint . -f sarif > lint.sarif     for code scanning
      envlock lint . -f concise                one line a finding, for editors
      envlock lint . --baseline old.json --write-baseline    accept the present findings
      envlock lint . --baseline old.json       only what is new since then
    """
    if write_baseline and baseline is None:
        raise UsageError("--write-baseline needs --baseline FILE")
    project = load_config()
    options = workflow.LintOptions(
        tf,
        find_near(None),
        tuple(_split_names(select) or project.lint.get("select", [])),
        tuple(project.lint.get("ignore", [])),
        tuple(project.lint.get("exclude", [])),
        project.lint_per_file,
        _load_baseline(baseline, unread=write_baseline),
        _find_python(),
    )
    # As it is shown: `.` from the project's own folder.
    project_folder = os.path.relpath(lockfile.find_project(str(Path.cwd())))
    report = workflow.lint_with(paths or [project_folder], options, Terminal())
    if write_baseline and baseline is not None:
        workflow.write_baseline(baseline, report.findings)
        number = count(len(report.findings), "finding")
        talk(f"wrote {baseline}: {number}")
        raise typer.Exit(0)
    if format == CONCISE:
        emit(concise.render(report))
        raise typer.Exit(report.exit_code)
    show(report, format)


def _find_python() -> Path | None:
    """Return the interpreter of the environment that all commands are about, None for this one."""
    try:
        return find_environment(os.environ, Path.cwd()).python
    except UsageError:  # to read code, none is needed
        return None


def _load_baseline(file: Path | None, *, unread: bool) -> dict[str, object] | None:
    """Return the baseline to judge by; none where it is written anyway."""
    if file is None or unread:
        return None
    return workflow.read_baseline(file)


def _split_names(values: list[str] | None) -> list[str]:
    """Return `ENV1,ENV205` and repeated options as one list."""
    names = []
    for value in values or ():
        names += [name.strip() for name in value.split(",") if name.strip()]
    return names
