"""`envlock show`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from envlock.cli.options import (
    DATA_FORMATS,
    LIVE,
    DataFormatOption,
    PythonOption,
    find_source,
    refuse_both,
)
from envlock.cli.output import emit, has_color
from envlock.cli.parser import Command, make_app
from envlock.lock.lock_text import render_lock
from envlock.lock.locks import load_document
from envlock.lock.paste_text import render_paste
from envlock.lock.pastes import Paste
from envlock.lock.summary import render_summary as summarize
from envlock.reports.text import paint
from envlock.runtime.environment_line import make_line
from envlock.workflows.capture import capture_live_lock
from envlock.workflows.model import read_line, read_lock
from envlock.workflows.pastes import load_side, name_unstated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source

app = make_app()


@app.command(cls=Command)
def show(
    lock: Annotated[
        str | None,
        typer.Argument(
            metavar="LOCK",
            envvar="ENVLOCK_LOCK",
            help="Lockfile, stamped model, pasted text, - for stdin, or `live`. [default: the project's nearest envlock.lock]",
        ),
    ] = None,
    line: Annotated[
        bool,
        typer.Option(
            "--line",
            help="Print only the line that names this environment, for a paper or an issue.",
        ),
    ] = False,
    summary: Annotated[
        bool,
        typer.Option(
            "--summary", help="Print at most 40 lines, for an issue tracker: line, versions, GPUs."
        ),
    ] = False,
    python: PythonOption = None,
    format: DataFormatOption = DATA_FORMATS[0],  # noqa: A002 (the option's name)
) -> None:
    """Show the contents of a lockfile.

    \b
    Examples:
      envlock show                         the nearest lockfile, as text
      envlock show gpu.lock --format json  its canonical JSON, in the newest format
      envlock show --line                  envlock:1:sha256:... (the digest of its facts)
      envlock show live --summary          this environment in at most 40 lines, for an issue
      envlock show model.keras             the environment that a stamped model was made in
      envlock show freeze.txt              what a pasted `pip freeze` states
    """
    refuse_both({"--line": line, "--summary": summary}, {"--format json": format == "json"})
    if line:
        emit(_find_line(lock, python))
        return
    shown = load_side(_find_shown(lock, python))
    if isinstance(shown, Paste):
        refuse_both({"--summary": summary}, {f"a {shown.describe()}": True})
        _show_paste(shown, format)
    elif summary:
        emit("\n".join(summarize(shown.to_document())))
    elif format == "json":
        emit(shown.to_bytes())
    else:
        emit(paint(render_lock(shown.to_document()), color=has_color()))


def _show_paste(paste: Paste, form: str) -> None:
    """Print what a pasted text states."""
    if form == "json":
        lines = {each.path: each.line for each in paste.statements}
        document = {
            "formats": paste.names,
            "facts": paste.make_facts(),
            "lines": lines,
            "disputed": paste.disputed,
            "unversioned": paste.unversioned,
        }
        emit(json.dumps(document, indent=2, sort_keys=True))
        return
    facts = [(each.path, each.value, each.line) for each in paste.statements]
    unstated = name_unstated([each.path for each in paste.statements])
    text = render_paste(
        paste.describe(),
        facts,
        unstated,
        disputed=paste.disputed,
        unversioned=paste.unversioned,
    )
    emit(paint(text, color=has_color()))


def _find_line(name: str | None, python: Path | None) -> str:
    """Return the line to show; a model may have been stamped with only its line."""
    if name is not None:
        line = read_line(name)
        if line is not None:
            return line
    document, _ = load_document(_find_shown(name, python))
    return make_line(document)


def _find_shown(name: str | None, python: Path | None) -> Source:
    """Return the lockfile to show: that of the live environment, that in a model, or a file."""
    if name == LIVE:
        return capture_live_lock(python)
    if name:
        lock = read_lock(name)
        if lock is not None:
            return lock
    return find_source(name)
