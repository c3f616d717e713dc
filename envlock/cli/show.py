"""`envlock show`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envlock.cli.options import (
    DATA_FORMATS,
    LIVE,
    DataFormatOption,
    PythonOption,
    exclusive,
    source,
)
from envlock.cli.output import color, emit
from envlock.cli.parser import Command, new_app
from envlock.workflows.locks import lock_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source

app = new_app()


ShownArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="LOCK",
        envvar="ENVLOCK_LOCK",
        help="Lockfile, stamped model, - for stdin, or `live`. [default: the project's nearest envlock.lock]",
        show_default=False,
    ),
]
LineOption = Annotated[
    bool,
    typer.Option(
        "--line", help="Print only the line that names this environment, for a paper or an issue."
    ),
]
SummaryOption = Annotated[
    bool,
    typer.Option(
        "--summary", help="Print at most 40 lines, for an issue tracker: line, versions, GPUs."
    ),
]


@app.command(cls=Command)
def show(
    lock: ShownArgument = None,
    line: LineOption = False,
    summary: SummaryOption = False,
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
    """
    exclusive({"--line": line, "--summary": summary}, {"--format json": format == "json"})
    if line:
        from envlock.runtime.line import line_of
        from envlock.workflows.locks import plain
        from envlock.workflows.model import line_in

        known = None if lock is None else line_in(lock)
        emit(known or line_of(plain(_shown(lock, python))[0]))
        return
    from envlock.lock.document import dump
    from envlock.reports.lock import lines
    from envlock.reports.summary import summary as short
    from envlock.reports.text import paint

    found = lock_of(_shown(lock, python))
    if summary:
        emit("\n".join(short(found.to_document())))
        return
    emit(dump(found) if format == "json" else paint(lines(found.to_document()), color=color()))


def _shown(name: str | None, python: Path | None) -> Source:
    """Return the lockfile that is meant: the live environment's, that in a model, or a file."""
    from envlock.workflows.model import lock_in

    if name == LIVE:
        from envlock.workflows.capture import live_lock

        return live_lock(python)
    return (name and lock_in(name)) or source(name)
