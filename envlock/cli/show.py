"""`envlock show`"""

from __future__ import annotations

from envlock.cli.options import DATA_FORMATS, DataFormatOption, LockArgument, source
from envlock.cli.output import color, emit
from envlock.cli.parser import Command, new_app
from envlock.workflows.locks import lock_of

app = new_app()


@app.command(cls=Command)
def show(lock: LockArgument = None, format: DataFormatOption = DATA_FORMATS[0]) -> None:  # noqa: A002 (the option's name)
    """Show the contents of a lockfile.

    \b
    Examples:
      envlock show                         the nearest lockfile, as text
      envlock show gpu.lock --format json  its canonical JSON, in the newest format
    """
    from envlock.lock.document import dump
    from envlock.reports.lock import lines
    from envlock.reports.text import paint

    found = lock_of(source(lock))
    emit(dump(found) if format == "json" else paint(lines(found.to_document()), color=color()))
