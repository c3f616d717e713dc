"""Download the wheels whose hashes a lockfile has."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache as once
from functools import partial
from pathlib import Path

from packaging.utils import parse_wheel_filename

from envlock.lock.locks import get_name, load_lock
from envlock.packages.identity import Proven, list_proven
from envlock.packages.index import (
    Found,
    NoWheelError,
    Offer,
    PackageIndex,
    Wanted,
    make_target,
)
from envlock.packages.proofs import LeftOut
from envlock.packages.wheelhouse import Missing, find_unowned
from envlock.packages.wheelhouse import fetch_wheels as fill
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.errors import OutsideError
from envlock.runtime.user_cache import require_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source
    from envlock.lock.models import Lockfile

NO_INDEX = "no index has a file of its name and hash"
NOWHERE = (
    f"{NO_INDEX}; `envlock capture --hashes --build` builds it, "
    "or copy it into the folder from the machine that locked it"
)


@dataclass(frozen=True)
class Vendored:
    """The contents of a wheelhouse after it was filled.

    Attributes:
        how: how many wheels were `fetched`, came from the cache (`cached`), or were `there`.
        missing: packages whose wheel could not be downloaded.
        others: wheels in the folder that the lockfile does not name.
    """

    how: Counter[str]
    missing: list[LeftOut]
    others: list[Path]


def vendor(
    lock: Source | None = None,
    folder: Path = Path("wheelhouse"),
    *,
    offline: bool = False,
    progress: Progress = SILENT,
) -> Vendored:
    """Fill a folder with the wheels that a lockfile proves; every file is checked before it gets
    its name.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        folder: the wheelhouse.
        offline: take wheels from the cache, and download none.
        progress: shows what is being done.

    Raises:
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        OutsideError: the downloads take too long; finished files are kept.
        UsageError: the folder cannot be used.
    """
    model = load_lock(lock)
    known, _ = list_proven(model, get_name(lock))
    return fill_wheelhouse(model, known, folder, offline=offline, progress=progress)


def fill_wheelhouse(
    lock: Lockfile,
    known: Sequence[Proven],
    folder: Path,
    *,
    offline: bool,
    progress: Progress,
) -> Vendored:
    """Fill a folder with the wheels of these packages of a lockfile; see `vendor`."""
    cached = Path(require_cache(os.environ))
    tags = [tag for package in known for tag in parse_wheel_filename(package.wheel.name)[3]]
    platforms = sorted({tag.platform for tag in tags})
    index = PackageIndex(make_target(lock, platforms), cached)
    # Once, although the folder's lock is tried often.
    wait = once(partial(progress.say, f"waiting for another envlock that is filling {folder}"))
    fetch = partial(_fetch, index, offline=offline, by_address=not index.named)
    how: Counter[str] = Counter()
    missing = []
    with progress.bar("wheels", len(known)) as advance:
        for event in fill(known, folder, fetch, cache=cached, on_wait=wait):
            advance(1)
            package = event.package
            if isinstance(event, Missing):
                missing.append(LeftOut(package.name, package.version, event.reason))
                continue
            how[event.how] += 1
            if event.how == "fetched":
                progress.say(f"fetched {package.wheel.name}")
    return Vendored(how, sorted(missing), find_unowned(folder, known))


def _fetch(
    index: PackageIndex, wanted: Sequence[Wanted], *, offline: bool, by_address: bool
) -> Found:
    """Fetch wheels, first from their addresses in the lockfile, and then from the indexes.

    An index that is named may be the only one that can be reached.
    """
    if offline:
        error = OutsideError("it is not in the cache, and `--offline` forbids the network")
        return {each.name: error for each in wanted}
    addressed = [each for each in wanted if by_address and each.url is not None]
    found = index.fetch(addressed)
    others = [each for each in wanted if not isinstance(found.get(each.name), Offer)]
    again = index.fetch([each._replace(url=None) for each in others])
    for name, result in again.items():
        # Why the locked address has no file says more than that no index has it.
        if isinstance(result, Offer) or name not in found:
            found[name] = result
        if isinstance(found[name], NoWheelError):
            unaddressed = any(each.name == name and each.url is None for each in wanted)
            found[name] = OutsideError(NOWHERE if unaddressed else NO_INDEX)
    return found
