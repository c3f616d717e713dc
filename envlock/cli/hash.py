"""`envlock hash`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envlock.cli import config as settings
from envlock.cli.hashing import Question, different_packages, look_up, summary
from envlock.cli.options import LockArgument, PythonOption, QuietOption, lock_path
from envlock.cli.output import talk
from envlock.identity.keep import with_identity
from envlock.lock.document import dump, load
from envlock.lock.writer import write_atomically

IndexOption = Annotated[
    list[str] | None,
    typer.Option(
        "--index-url",
        "-i",
        envvar="ENVLOCK_INDEX_URL",
        help="An index to ask, before or instead of... Default: those of pip's and uv's settings.",
        show_default=False,
    ),
]
