"""`envlock explain`"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    DATA_FORMATS,
    WITHOUT_ENVIRONMENT,
    DataFormatOption,
    LockOption,
    PythonOption,
    find_near,
)
from envlock.cli.output import emit, has_color
from envlock.cli.parser import Command, make_app
from envlock.lock.explanation import serialize
from envlock.reports.finding import render_code
from envlock.reports.policy_text import render_facts
from envlock.reports.text import paint
from envlock.workflows.codes import check_name, list_codes

app = make_app()


def _note_code(context: typer.Context, path: str) -> str:
    """Note that the code of a finding is explained, which needs no environment."""
    # A path with a dot is not a code, so the tables of codes are not loaded for it.
    if "." in path:
        return path
    if path in list_codes():
        context.meta[WITHOUT_ENVIRONMENT] = True
    else:
        check_name(path)
    return path


PathArgument = Annotated[
    str,
    typer.Argument(
        callback=_note_code,
        help="Path or pattern of facts, such as `cpu.flags`, or the code of a finding.",
        show_default=False,
    ),
]


@app.command(cls=Command)
def explain(
    context: typer.Context,
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
    if WITHOUT_ENVIRONMENT in context.meta:
        code = asdict(list_codes()[path])
        _print(code, render_code(code), format)
        return
    found = envlock.explain(path, find_near(lock), python=python)
    _print(serialize(found), render_facts(found, os.environ), format)


def _print(value: object, text: Iterable[tuple[str, str]], format: str) -> None:  # noqa: A002 (the option's name)
    if format == "json":
        emit(json.dumps(value, indent=2))
    else:
        emit(paint(text, color=has_color()))
