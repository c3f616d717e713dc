"""The facts of one CUDA library: from the loader's answer to what goes into the lock."""

from __future__ import annotations

import os

from envlock.runtime.cuda.paths import PortablePaths
from envlock.runtime.cuda.resolution import ABSENT, STATIC, Resolved, header_folders
from envlock.runtime.cuda.versions import Headers, version_in_name
from envlock.runtime.cuda.wheel_owner import Claim, WheelOwners
from envlock.runtime.facts import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Union

    from envlock.runtime.cuda.libraries import Library
    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host
    from envlock.runtime.loader.elf import Elf
    from envlock.runtime.loader.search import Loader

    Text = Union[str, None, Unavailable]

_NO_VERSION = Unavailable("neither the file's name nor a header beside it tells the version", "no-version")


class CudaFacts:
    """Describes the libraries of one process."""

    def __init__(self, host: Host, loader: Loader, headers: Headers) -> None:
        self._loader = loader
        self._headers = headers
        self._paths = PortablePaths(host)
        self._owners = WheelOwners(host.path)

    def library(self, resolved: Resolved) -> Tree:
        """Return the facts of one library.

        Keys: `linkage`; where there is a soname `soname`, `file`, `resolved_by`, `version`, `wheel_version`; where
        there is a file one of `build_id`, `record_sha256` (as RECORD writes it) and `size` (bytes); `claimed_by`
        where several wheels hold the file; `problem` where loading it would fail; `compat_cuda` and
        `compat_drivers` (branches) for a forward-compatible libcuda.
        """
        facts: Tree = {"linkage": resolved.linkage}
        if resolved.linkage == ABSENT:
            return facts
        if resolved.linkage == STATIC or resolved.found is None:
            facts["version"] = resolved.version
            return facts
        found = resolved.found
        facts.update(soname=found.soname, file=None, resolved_by=found.resolved_by, version=None, wheel_version=None)
        if found.problem is not None:
            facts["problem"] = found.problem
        if found.file is not None:
            place = self._loader.place(found.file)
            facts.update(self.file(place, found.elf, resolved.library))
        return facts

    def file(self, path: str, elf: Optional[Elf], library: Optional[Library]) -> Tree:
        """Return where a file lies, its version, and what identifies its bytes."""
        canonical = self._paths.canonical(path)
        claims = self._owners.claims(canonical)
        wheel = _wheel_version(claims, _size(canonical))
        facts: Tree = {"file": self._paths.text(canonical), "wheel_version": wheel}
        facts["version"] = wheel if library is None else self._version(canonical, library, wheel)
        if len(claims) > 1:
            facts["claimed_by"] = [f"{claim.wheel} {claim.version}" for claim in claims]
        facts.update(_identity(canonical, elf, claims))
        if elf is not None and elf.compat is not None:
            facts.update(_compat(elf.compat))
        return facts

    def _version(self, path: str, library: Library, wheel: Text) -> Text:
        named = version_in_name(path)
        if library.key == "cuda_driver":
            return ".".join(named) if len(named) > 1 else _NO_VERSION
        if len(named) >= 3 and library.parts > 1:
            return ".".join(named[: library.parts])
        if library.header is not None:
            told = self._headers.version(header_folders(path), library.header)
            if told is not None:
                return told
        elif isinstance(wheel, str):
            return ".".join(wheel.split(".")[: library.parts])
        return _NO_VERSION


def _size(path: str) -> Optional[int]:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _wheel_version(claims: List[Claim], size: Optional[int]) -> Text:
    """Return the version of the wheel whose RECORD fits the file; None when no wheel claims it."""
    if not claims:
        return None
    fitting = [claim for claim in claims if claim.size is None or claim.size == size]
    if len(fitting) == 1:
        return fitting[0].version
    if not fitting:
        return Unavailable("no wheel's RECORD has this file's size: it was replaced after installation", "replaced")
    return Unavailable("several wheels claim this file and their RECORDs do not tell which wrote it", "several-owners")


def _identity(path: str, elf: Optional[Elf], claims: List[Claim]) -> Dict[str, Any]:
    """Return the strongest cheap evidence of the file's bytes: GNU build-id, the wheel's sha256, or the size."""
    if elf is not None and elf.build_id is not None:
        return {"build_id": elf.build_id}
    size = _size(path)
    fitting = {claim.sha256 for claim in claims if claim.sha256 is not None and claim.size == size}
    if len(fitting) == 1:
        return {"record_sha256": fitting.pop()}
    return {"size": size}


def _compat(note: str) -> Dict[str, Any]:
    """Return what NVIDIA's note says: this libcuda is a forward-compatible one, for which kernel drivers.

    Its text is JSON such as {"format":1,"CUDA version":"12.9","driver":[535,550],"device":[1,2]}; `json` is not
    imported for two fields.
    """
    version = note.partition('"CUDA version":"')[2].partition('"')[0]
    drivers = note.partition('"driver":[')[2].partition("]")[0].split(",")
    return {
        "compat_cuda": version or Unavailable("NVIDIA's compatibility note has another format", "unknown-note"),
        "compat_drivers": [int(driver) for driver in drivers if driver.strip().isdigit()],
    }
