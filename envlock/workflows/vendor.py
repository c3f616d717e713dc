"""Download the wheels whose hashes a lockfile has."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache as once
from functools import partial
from pathlib import Path

from envlock.packages.identity import Proven, list_proven, split_left_out
from envlock.packages.indexes.online import configure_indexes, make_fetch
from envlock.packages.parallel import TIMEOUT, Advance, Moved
from envlock.packages.proofs import LeftOut
from envlock.packages.wheelhouse import Fetch, Had, Missing, find_unowned
from envlock.packages.wheelhouse import fetch_wheels as fill
from envlock.runtime.errors import OutsideError
from envlock.runtime.user_cache import require_cache
from envlock.workflows.locks import get_name, load_lock
from envlock.workflows.progress import SILENT, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


@dataclass(frozen=True)
class Vendored:
    """The contents of a wheelhouse after it was filled.

    Attributes:
        how: how many wheels were `fetched`, came from the cache (`cached`), or were `there`.
        missing: packages whose wheel could not be downloaded.
        left_out: packages that a policy compares and whose wheel the lockfile does not prove.
        others: wheels in the folder that the lockfile does not name.
    """

    how: Counter[str]
    missing: list[LeftOut]
    left_out: list[LeftOut]
    others: list[Path]


JOBS = 4
"""How many downloads run at the same time."""


def vendor(
    lock: Source | None = None,
    folder: Path = Path("wheelhouse"),
    *,
    indexes: Sequence[str] = (),
    only: Collection[str] | None = None,
    offline: bool = False,
    progress: Progress = SILENT,
) -> Vendored:
    """Fill a folder with the wheels that a lockfile proves; every file is checked before it gets
    its name.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        folder: the wheelhouse.
        indexes: package indexes to take the wheels from; the addresses in the lockfile when not
        given.
        only: the packages whose wheels are wanted; all when not given.
        offline: take wheels from the cache, and download none.
        progress: shows what is being done.

    Raises:
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        OutsideError: the downloads take too long; finished files are kept.
        UsageError: the folder cannot be used.
    """
    model = load_lock(lock)
    known, unproven = list_proven(model, get_name(lock))
    left_out, _ = split_left_out(model, unproven)
    if only is not None:
        known = [package for package in known if package.name in only]
    cached = Path(require_cache(os.environ))
    fetch: Fetch = _refuse
    if not offline:
        # An index that is named may be the only one that can be reached; otherwise the lockfile's
        # addresses are used.
        index = configure_indexes(list(indexes), Path(sys.prefix), cached)
        fetch = make_fetch(index, by_address=not indexes)
    # Once, although the folder's lock is tried ten times a second.
    wait = once(partial(progress.say, f"waiting for another envlock that is filling {folder}"))
    events = fill(
        known,
        folder,
        fetch,
        cache=cached,
        jobs=JOBS,
        seconds=TIMEOUT,
        on_wait=wait,
    )
    how, missing = _watch(events, known, progress)
    return Vendored(how, missing, left_out, find_unowned(folder, known))


def _refuse(package: Proven, target: Path, advance: Advance) -> None:
    """Refuse a download, because `offline` is set.

    Raises:
        OutsideError: always.
    """
    raise OutsideError("it is not in the cache, and `--offline` forbids the network")


def _watch(
    events: Iterable[Moved[Proven] | Had | Missing], packages: list[Proven], progress: Progress
) -> tuple[Counter[str], list[LeftOut]]:
    """Show the progress of filling a folder; return how its wheels were obtained, and those that
    are missing.
    """
    left = {package.name: package.wheel.size for package in packages}
    how: Counter[str] = Counter()
    missing = []
    with progress.bar("fetching wheels", sum(left.values()), in_bytes=True) as advance:
        for event in events:
            if isinstance(event, Moved):
                left[event.task.name] -= event.size
                advance(event.size)
                continue
            package = event.package
            # Its remaining bytes were there already, or will not come.
            advance(left[package.name])
            if isinstance(event, Missing):
                missing.append(LeftOut(package.name, package.version, event.reason))
                continue
            how[event.how] += 1
            if event.how == "fetched":
                progress.say(f"fetched {package.wheel.name}")
    return how, sorted(missing)
