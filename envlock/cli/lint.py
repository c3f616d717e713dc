"""`envlock lint`"""

from __future__ import annotations

from typing import Annotated

import typer

import envlock
from envlock.cli.options import FormatOption, LockOption, QuietOption, find_near, load_config, show
from envlock.cli.output import Terminal
from envlock.cli.parser import Command, make_app

app = make_app()

PathsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Python files and notebooks, or folders that hold them.",
        show_default=False,
    ),
]
TensorflowOption = Annotated[
    str | None,
    typer.Option(
        "--tf",
        metavar="VERSION",
        help="TensorFlow version to check for. [default: the locked, else the installed, else the newest one]",
        show_default=False,
    ),
]
SelectOption = Annotated[
    list[str] | None,
    typer.Option(help="Only these rules or prefixes (e.g., ENV2).", show_default=False),
]
IgnoreOption = Annotated[
    list[str] | None, typer.Option(help="Exclude these rules or prefixes.", show_default=False)
]


@app.command(cls=Command)
def lint(
    paths: PathsArgument,
    tf: TensorflowOption = None,
    lock: LockOption = None,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
    quiet: QuietOption = False,
) -> None:
    """Find code that makes TensorFlow results differ between runs.

    Exit 0: no findings, or notes only. Exit 1: errors or warnings.

    The code is read, never run. A comment with a reason silences a finding, on its line or on the
    line above: `# envlock: ignore[ENV203] sorted below`

    \b
    Examples:
      envlock lint .                           the project, for the locked TensorFlow
      envlock lint train.py --tf 2.15.1        for another version
      envlock lint src --select ENV1,ENV2      only switches, variables and seeds
      envlock lint . -f sarif > lint.sarif     for code scanning
    """
    project = load_config()
    report = envlock.lint(
        paths,
        tensorflow=tf,
        lock=find_near(lock),
        select=_split_names(select) or project.lint.get("select", []),
        ignore=(*_split_names(ignore), *project.lint.get("ignore", [])),
        exclude=project.lint.get("exclude", []),
        progress=Terminal(quiet),
    )
    show(report, format)


def _split_names(values: list[str] | None) -> list[str]:
    """Return `ENV1,ENV205` and repeated options as one list."""
    names = []
    for value in values or ():
        names += [name.strip() for name in value.split(",") if name.strip()]
    return names
