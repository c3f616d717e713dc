"""`envlock lint`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envlock.cli import config as settings
from envlock.cli.options import QuietOption, ReportOption, one_of
from envlock.cli.output import color, emit


def lint(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, and folders with *.py files.")],
    tf: Annotated[
        str | None,
        typer.Option(
            "--tf",
            metavar="VERSION",
            help="Judge for this TensorFlow. Default: the lock's, else the installed one, else the newest known.",
            show_default=False,
        ),
    ] = None,
    lock: Annotated[
        str | None,
        typer.Option(
            envvar="ENVLOCK_LOCK",
            help="The lockfile that says which TensorFlow. Default: the nearest envlock.lock, if there is one.",
            show_default=False,
        ),
    ] = None,
    select: Annotated[list[str] | None, typer.Option(help="Only these rules, or those that start so: ENV2.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Without these rules.")] = None,
    format: ReportOption = "text",  # noqa: A002 (the option's name)
    quiet: QuietOption = False,
) -> None:
    """What in this code makes TensorFlow give other bits?

    Exit 0: nothing, or for information only; 1: errors or warnings.

    The code is read and never run. A comment silences a finding, with a reason:
    `# envlock: ignore[ENV203] sorted below`, on its line or on the line above.

    \b
    Examples:
      envlock lint .                           the project, for the locked TensorFlow
      envlock lint train.py --tf 2.15.1        for another one
      envlock lint src --select ENV1,ENV2      switches, variables and seeds only
      envlock lint . -f sarif > lint.sarif     for code scanning; github for annotations
    """
    from envlock.cli import linting

    one_of(format, list(linting.FORMATS), "format")
    config = settings.load(Path.cwd())
    judged = linting.judge_for(tf, lock or linting.near_lock(config))
    outcome = linting.run(paths, judged, config, select=select or [], ignore=ignore or [], quiet=quiet)
    emit(linting.rendered(outcome, format, color=color()))
    raise typer.Exit(outcome.exit_code)
