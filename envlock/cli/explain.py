"""`envlock explain`"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Annotated

import typer

from envlock.cli.options import DATA_FORMATS, DataFormatOption, LockOption, PythonOption, near
from envlock.cli.output import color, emit
from envlock.cli.parser import Command, new_app

app = new_app()

PathArgument = Annotated[
    str,
    typer.Argument(
        help="Path or pattern of facts, such as `cpu.flags`, or the code of a finding.",
        show_default=False,
    ),
]


@app.command(cls=Command)
def explain(
    path: PathArgument,
    lock: LockOption = None,
    python: PythonOption = None,
    format: DataFormatOption = DATA_FORMATS[0],  # noqa: A002 (the option's name)
) -> None:
    """Explain facts: both values, the rule of each policy, why it matters and how that is known.

    \b
    Examples:
      envlock explain environ.TF_ENABLE_ONEDNN_OPTS  one fact
      envlock explain packages.numpy                 all facts of a package
      envlock explain "cpu.*" --format json          for programs
      envlock explain ENV203                         the code of a finding
    """
    from envlock.reports.text import paint

    code = (
        None if "." in path else _code(path)
    )  # a path with a dot need not wait for the tables of codes
    if code is not None:
        from envlock.reports.finding import lines

        emit(json.dumps(code, indent=2) if format == "json" else paint(lines(code), color=color()))
        return
    from envlock.lock.explanation import as_json
    from envlock.reports.policy import facts
    from envlock.workflows.policy import explain as ask

    found = ask(path, near(lock), python=python)
    emit(
        json.dumps(as_json(found), indent=2)
        if format == "json"
        else paint(facts(found, os.environ), color=color())
    )


def _code(word: str) -> dict[str, str] | None:
    """Return what the code of a finding means; None where there is no such code."""
    from envlock.workflows.codes import codes

    found = codes().get(word)
    return None if found is None else asdict(found)
