"""`envlock vendor`"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache as cache_result
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from envlock.cli import config as settings
from envlock.cli.options import IndexOption, LockArgument, QuietOption, RequireAllOption, accept, read_document
from envlock.cli.output import talk
from envlock.cli.progress import bar
from envlock.lock.document import validate
from envlock.packages import cache
from envlock.packages.proven import LeftOut, Proven, proven
from envlock.packages.wheelhouse import Had, Missing, Moved, strangers
from envlock.packages.wheelhouse import vendor as fill
from envlock.runtime.errors import OutsideError, UsageError
from envlock.runtime.report import clean


def vendor(
    lock: LockArgument = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to fill.")] = Path("wheelhouse"),
    index_url: IndexOption = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=32, help="How many downloads at once.")] = 4,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Neither use nor fill the cache.")] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Remove the wheels that the lock does not name.")] = False,
    require_all: RequireAllOption = False,
    quiet: QuietOption = False,
) -> None:
    """Download the wheels that a lockfile proves, so that installing needs no network.

    Every file is checked against its sha256 before it gets its name. Run it again after an interruption: what is
    there is kept, and a download that broke off goes on.

    \b
    Examples:
      envlock vendor                                        fill ./wheelhouse
      envlock export -t pylock --wheelhouse wheelhouse -o pylock.toml
                                                            then: uv pip install --offline -r pylock.toml
    """
    from envlock.packages.indexes.online import fetcher, online

    name, document = read_document(lock, settings.load(Path.cwd()))
    known, left_out = proven(validate(document, name), name)
    accept(left_out, "vendored", require_all=require_all, quiet=quiet)
    kept = cache.folder(os.environ, Path.home())
    fetch = fetcher(online(index_url or [], Path(sys.prefix), kept), by_address=not index_url)
    events = fill(known, output, fetch, cache=None if no_cache else kept, jobs=jobs, on_wait=_waiter(output, quiet))
    missing = _show(events, known, output, quiet)
    _strangers(output, known, prune, quiet)
    if missing:
        talk("\n".join(f"  {each}" for each in missing))
        raise OutsideError(
            f"of {_wheels(len(known))}, {len(missing)} could not be had (listed above)",
            hint="run it again: the others are kept, and a download that broke off goes on",
        )


def _waiter(folder: Path, quiet: bool) -> Callable[[], None]:
    """Return what says once that another one is at work."""
    return cache_result(partial(talk, f"another envlock is filling {folder}: waiting for it", quiet=quiet))


def _show(
    events: Iterable[Moved[Proven] | Had | Missing], packages: list[Proven], folder: Path, quiet: bool
) -> list[LeftOut]:
    """Say how it goes while the folder is filled, and return what is missing."""
    left = {package.name: package.wheel.size for package in packages}
    how: Counter[str] = Counter()
    missing = []
    with bar("fetching wheels", sum(left.values()), quiet=quiet, in_bytes=True) as advance:
        for event in events:
            if isinstance(event, Moved):
                left[event.task.name] -= event.size
                advance(event.size)
                continue
            package = event.package
            advance(left[package.name])  # what was there already, or does not come
            if isinstance(event, Missing):
                missing.append(LeftOut(package.name, package.version, event.reason))
                continue
            how[event.how] += 1
            if event.how == "fetched" and not sys.stderr.isatty():
                talk(f"fetched {package.wheel.name}", quiet=quiet)
    told = ", ".join(f"{how[word]} {words}" for word, words in _HOW.items() if how[word])
    talk(f"{folder}: {_wheels(how.total())}{f' ({told})' if told else ''}", quiet=quiet)
    return sorted(missing)


_HOW = {"fetched": "fetched", "cached": "from the cache", "there": "there already"}


def _wheels(number: int) -> str:
    return f"{number} wheel" if number == 1 else f"{number} wheels"


def _strangers(folder: Path, packages: list[Proven], prune: bool, quiet: bool) -> None:
    """Remove the wheels that are not the lock's, or say that there are some."""
    others = strangers(folder, packages)
    if others and not prune:
        talk(
            f"{folder} also holds {_wheels(len(others))} of other locks; --prune removes what is not this one's",
            quiet=quiet,
        )
    for file in others if prune else []:
        talk(f"removing {clean(str(file))}", quiet=quiet)
        try:
            file.unlink()
        except OSError as error:
            raise UsageError(f"cannot remove {clean(str(file))}: {error.strerror}") from None
