"""`envlock show`"""

from __future__ import annotations

from typing import Annotated

import typer

from envlock.cli.options import DATA_FORMATS, DataFormatOption, LockArgument, source
from envlock.cli.output import color, emit
from envlock.cli.parser import Command, new_app
from envlock.workflows.locks import lock_of

app = new_app()


LineOption = Annotated[
    bool, typer.Option("--line", help="Print only the line that names this environment, for a paper or an issue.")
]


@app.command(cls=Command)
def show(
    lock: LockArgument = None,
    line: LineOption = False,
    format: DataFormatOption = DATA_FORMATS[0],  # noqa: A002 (the option's name)
) -> None:
    """Show the contents of a lockfile.

    \b
    Examples:
      envlock show                         the nearest lockfile, as text
      envlock show gpu.lock --format json  its canonical JSON, in the newest format
      envlock show --line                  envlock:1:sha256:... (the digest of its facts)
    """
    if line:
        from envlock.runtime.citation import line_of
        from envlock.workflows.locks import plain

        emit(line_of(plain(source(lock))[0]))
        return
    from envlock.lock.document import dump
    from envlock.reports.lock import lines
    from envlock.reports.text import paint

    found = lock_of(source(lock))
    emit(dump(found) if format == "json" else paint(lines(found.to_document()), color=color()))
