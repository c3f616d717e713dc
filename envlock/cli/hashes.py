"""`envlock hash`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envlock.cli import config as settings
from envlock.cli.hashing import find, found, refuse_another_environment
from envlock.cli.options import (
    STDIN,
    IndexOption,
    LockArgument,
    OfflineOption,
    PythonOption,
    QuietOption,
    read_document,
)
from envlock.cli.output import emit, talk
from envlock.lock.document import dump, validate
from envlock.lock.live import live
from envlock.lock.writer import write_atomically


def hashes(
    lock: LockArgument = None,
    python: PythonOption = None,
    index_url: IndexOption = None,
    offline: OfflineOption = False,
    trust_index: Annotated[
        bool,
        typer.Option(
            "--trust-index",
            help="Take the index's word for the sha256 of a wheel whose RECORD fits: a small part of it is read.",
        ),
    ] = False,
    cache: Annotated[bool, typer.Option(help="Keep the wheels that were read, for `envlock vendor`.")] = True,
    quiet: QuietOption = False,
) -> None:
    """Find the exact wheel that each installed package came from, and write its sha256 into the lock.

    A wheel is proven by its RECORD, which must list exactly the files that are installed with their hashes, and its
    sha256 is computed from all its bytes. What cannot be proven (a checkout, a local build, a package on no index)
    is recorded with the reason.

    Exit 1: the environment is not the locked one. Exit 5: an index failed, and nothing was written.

    \b
    Examples:
      envlock hash                        the nearest lockfile, the indexes of pip's and uv's settings
      envlock hash --trust-index          quick: wheels are not downloaded
      envlock hash -i https://my.org/pip  another index
      envlock hash --offline              local facts only
    """
    name, document = read_document(lock, settings.load(Path.cwd()))
    old = validate(document, name)
    refuse_another_environment(document, live(python))
    new = find(old, python, urls=index_url, offline=offline, trust_index=trust_index, keep=cache, quiet=quiet)
    if lock == STDIN:
        emit(dump(new))
    else:
        write_atomically(Path(name), dump(new))
    for line in found(new):
        talk(line, quiet=quiet)
