"""`envlock explain`"""

from __future__ import annotations

import json
import os
import sys
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
    find_source,
)
from envlock.cli.output import emit, has_color
from envlock.cli.parser import Command, make_app
from envlock.diagnosis.codes import list_codes
from envlock.lock.explanation import serialize
from envlock.lock.interpreter import is_found
from envlock.lock.policy_text import list_allowed, render_facts, render_ways
from envlock.lock.settings import is_default
from envlock.reports.finding import render_code
from envlock.reports.text import paint
from envlock.runtime.short_report import name_lock, name_python

app = make_app()


def _note_code(context: typer.Context, path: str | None) -> str | None:
    """Note that the code of a finding is explained, which needs no environment."""
    if path is None:
        context.meta[WITHOUT_ENVIRONMENT] = True
        return path
    # A path with a dot is not a code, so the tables of codes are not loaded for it.
    if "." not in path and path in list_codes():
        context.meta[WITHOUT_ENVIRONMENT] = True
    return path


@app.command(cls=Command)
def explain(
    context: typer.Context,
    path: Annotated[
        str | None,
        typer.Argument(
            callback=_note_code,
            help="Path or pattern of facts, such as `cpu.flags`, a name such as `numpy` or `machine`, or the code of a "
            "finding. [default: all that may differ]",
        ),
    ] = None,
    lock: LockOption = None,
    python: PythonOption = None,
    format: DataFormatOption = DATA_FORMATS[0],  # noqa: A002 (the option's name)
) -> None:
    """Explain facts: both values, the rule of each policy, why it matters and how that is known.

    Without PATH, the facts of the lockfile that may differ under its policy, and why.

    \b
    Examples:
      envlock explain environ.TF_ENABLE_ONEDNN_OPTS  one fact
      envlock explain numpy                          what differs of a package, and how to accept it
      envlock explain packages.numpy                 all facts of a package
      envlock explain "cpu.*" --format json          for programs
      envlock explain ENV203                         the code of a finding
    """
    if path is None:
        allowed = envlock.allowed(find_source(lock))
        _print(serialize(allowed), list_allowed(allowed), format)
        return
    if WITHOUT_ENVIRONMENT in context.meta:
        code = asdict(list_codes()[path])
        _print(code, render_code(code), format)
        return
    near = find_near(lock)
    found = envlock.explain(path, near, python=python)
    text = list(render_facts(found, os.environ))
    if near is not None:
        text += render_ways(path, found)
        if not is_default(near):
            text = [(style, name_lock(line, near)) for style, line in text]
    named, is_near = str(python or sys.executable), python is None or is_found(python)
    text = [(style, name_python(line, named, found=is_near)) for style, line in text]
    _print(serialize(found), text, format)


def _print(value: object, text: Iterable[tuple[str, str]], format: str) -> None:  # noqa: A002 (the option's name)
    if format == "json":
        emit(json.dumps(value, indent=2))
    else:
        emit(paint(text, color=has_color()))
