"""`envlock show`"""

from __future__ import annotations

from pathlib import Path

from envlock.cli import config as settings
from envlock.cli.options import FormatOption, LockArgument, one_of, read_document
from envlock.cli.output import color, emit
from envlock.lock.document import dump, validate
from envlock.reports.text import render_lock


def show(lock: LockArgument = None, format: FormatOption = "text") -> None:  # noqa: A002 (the option's name)
    """Show what a lockfile holds.

    \b
    Examples:
      envlock show                         the nearest lockfile, for people
      envlock show gpu.lock --format json  its canonical JSON, in the newest format
    """
    one_of(format, ["text", "json"], "format")
    name, document = read_document(lock, settings.load(Path.cwd()))
    valid = validate(document, name)
    emit(dump(valid) if format == "json" else render_lock(valid.to_document(), color=color()))
