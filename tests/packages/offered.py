"""An index without pip and network: what it offers are wheels in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from envlock.packages.index import NoWheelError, Offer, Wanted
from envlock.packages.proofs import NO_WHEEL
from envlock.runtime.errors import OutsideError


class FolderIndex:
    """Offers the wheels of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, wanted: Sequence[Wanted], seconds: float = 0) -> Mapping[str, Offer | OutsideError]:
        """Return the wheel of each package, or why there is none."""
        return {each.name: self._find(each) for each in wanted}

    def find_tagged(self, wanted: Wanted, tags: Sequence[str]) -> Offer | OutsideError:
        """Return the wheel of a package, whatever its tags."""
        return self._find(wanted)

    def _find(self, wanted: Wanted) -> Offer | OutsideError:
        wheels = sorted(self._folder.glob(f"{wanted.name}-{wanted.version}-*.whl"))
        return offer(wheels[0]) if wheels else NoWheelError(NO_WHEEL)


def offer(wheel: Path) -> Offer:
    """Return a wheel of this machine as that of an index."""
    data = wheel.read_bytes()
    return Offer(wheel.name, hashlib.sha256(data).hexdigest(), len(data), wheel)
