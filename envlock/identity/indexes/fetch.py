"""Where a proven wheel is fetched from: the address that the lock has, or an index that offers the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from envlock.identity.indexes.download import download
from envlock.identity.indexes.online import Online
from envlock.identity.parallel import Advance
from envlock.identity.proven import Proven
from envlock.identity.wheelhouse import Fetch
from envlock.lock.identity import WheelFile
from envlock.runtime.errors import OutsideError


def fetcher(online: Online, *, by_address: bool) -> Fetch:
    """Return what fetches a wheel: `by_address` from where the lock says, and else from the indexes by name and hash.

    An index that was asked for is asked in place of the lock's address, which may be out of reach.
    """

    def fetch(package: Proven, target: Path, advance: Advance) -> None:
        wheel = package.wheel
        first: OutsideError | None = None
        for url in _addresses(online, package, by_address):
            fault = _attempt(online, url, wheel, target, advance)
            if fault is None:
                return
            first = first or fault
        raise first or OutsideError("no index that was asked has a file of its name and hash")

    return fetch


def _attempt(online: Online, url: str, wheel: WheelFile, target: Path, advance: Advance) -> OutsideError | None:
    """Return what went wrong, if something did."""
    try:
        download(online.client, url, target, sha256=wheel.sha256, size=wheel.size, on_bytes=advance)
    except OutsideError as error:
        return error
    return None


def _addresses(online: Online, package: Proven, by_address: bool) -> Iterator[str]:
    wheel = package.wheel
    first = wheel.url if by_address else None
    if first is not None:
        yield first
    for file in online.files(package.name):
        if file.name == wheel.name and file.sha256 in (None, wheel.sha256) and file.url != first:
            yield file.url
