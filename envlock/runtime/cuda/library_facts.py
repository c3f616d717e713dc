"""The facts of one CUDA library: the loader's answer as version, path and owner that are the same on every machine."""

from __future__ import annotations

import os
import sys

from envlock.runtime.cuda.resolution import ABSENT, STATIC, Resolved, header_folders
from envlock.runtime.cuda.versions import Headers, version_in_name
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple, Union

    from envlock.runtime.cuda.libraries import Library
    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host
    from envlock.runtime.loader.elf import Elf
    from envlock.runtime.loader.search import Loader

    Text = Union[str, None, Unavailable]


_NO_VERSION = Unavailable(
    "neither the file name nor a header beside it gives the version", "no-version"
)


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
        facts.update(
            soname=found.soname,
            file=None,
            resolved_by=found.resolved_by,
            version=None,
            wheel_version=None,
        )
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
        return Unavailable(
            "no RECORD of a wheel has the size of this file: it was replaced after installation",
            "replaced",
        )
    return Unavailable(
        "several wheels claim this file, and their RECORDs do not show which one wrote it",
        "several-owners",
    )


def _identity(path: str, elf: Optional[Elf], claims: List[Claim]) -> Dict[str, Any]:
    """Return the strongest cheap evidence of the file's bytes: GNU build-id, the wheel's sha256, or the size."""
    if elf is not None and elf.build_id is not None:
        return {"build_id": elf.build_id}
    size = _size(path)
    fitting = {claim.sha256 for claim in claims if claim.sha256 is not None and claim.size == size}
    if len(fitting) == 1:
        return {"record_sha256": fitting.pop()}
    return {"size": size}


def _is_short_number(text: str) -> bool:
    """Return whether `int` reads it: it refuses a superscript, and some thousands of digits."""
    return text.isascii() and text.isdigit() and len(text) < 19


def _compat(note: str) -> Dict[str, Any]:
    """Return what NVIDIA's note says: this libcuda is a forward-compatible one, for which kernel drivers.

    Its text is JSON such as {"format":1,"CUDA version":"12.9","driver":[535,550],"device":[1,2]}; `json` is not
    imported for two fields.
    """
    version = note.partition('"CUDA version":"')[2].partition('"')[0]
    drivers = note.partition('"driver":[')[2].partition("]")[0].split(",")
    return {
        "compat_cuda": version
        or Unavailable("NVIDIA's compatibility note has an unknown format", "unknown-note"),
        "compat_drivers": [int(driver) for driver in drivers if _is_short_number(driver.strip())],
    }


_SYSTEM_PREFIXES = (
    "/",
    "/usr",
)  # a system Python: only its site folders are the environment, not all of /usr
_SYSTEM = ("/usr/", "/lib/", "/lib64/", "/opt/nvidia/")
_LOCAL = "/usr/local/"


class PortablePaths:
    """Rewrites paths of one process: `{prefix}/...` inside the environment, as it is below a folder of the system.

    Any other folder may name its user, or depend on HOME or the working folder: of it `{elsewhere}/NAME` is left.
    """

    def __init__(self, host: Host, prefix: Optional[str] = None) -> None:
        """Prepare.

        Args:
            host: gives the import path and the root.
            prefix: folder of the environment; `sys.prefix` when not given.
        """
        self._prefix = os.path.realpath(sys.prefix if prefix is None else prefix)
        self._root = host.root.rstrip("/")
        self._real: Dict[str, str] = {}
        self._site: List[str] = [os.path.realpath(folder) for folder in host.path if folder]

    def inside(self, path: str) -> bool:
        """Return whether a real path belongs to the environment."""
        if self._prefix not in _SYSTEM_PREFIXES:
            return path.startswith(self._prefix + "/")
        return path.startswith("/usr/") and any(
            path.startswith(folder + "/") for folder in self._site
        )

    def canonical(self, path: str) -> str:
        """Return the one path that stands for a file: links followed, unless that leads out of the environment.

        Installers may link files from a cache (`uv --link-mode symlink`); the cache's path says nothing.
        """
        folder, name = os.path.split(path)
        if folder not in self._real:
            self._real[folder] = os.path.realpath(
                folder
            )  # eleven calls of lstat, and many files share a folder
        here = os.path.join(self._real[folder], name)
        real = os.path.realpath(here) if os.path.islink(here) else here
        return here if self.inside(here) and not self.inside(real) else real

    def text(self, path: str) -> str:
        """Return how a canonical path is written down."""
        if self.inside(path):
            base = "" if self._prefix == "/" else self._prefix
            return "{prefix}" + path[len(base) :]
        if self._root and path.startswith(self._root + "/"):
            path = path[len(self._root) :]
        return path if _is_system(path) else "{elsewhere}/" + path.rpartition("/")[2]


def _is_system(path: str) -> bool:
    """Return whether a path lies where packages of the system and NVIDIA's installers put files."""
    if path.startswith(_LOCAL):
        first = path[len(_LOCAL) :].partition("/")[0]
        return first in ("lib", "lib64", "bin") or not first.replace("cuda", "", 1).strip(
            "-.0123456789"
        )
    return path.startswith(_SYSTEM)


_VENDORS = (
    "nvidia_",
    "nvidia-",
    "tensorrt",
)  # whose RECORDs are read: the others hold no CUDA library of TensorFlow


class Claim:
    """One wheel's line about a file.

    Attributes:
        wheel: normalised project name, such as `nvidia-cudnn-cu12`.
        version: version of the wheel.
        sha256: the recorded digest as RECORD writes it (urlsafe base64), or None.
        size: the recorded size in bytes, or None.
    """

    __slots__ = ("sha256", "size", "version", "wheel")

    def __init__(
        self, wheel: str, version: str, sha256: Optional[str], size: Optional[int]
    ) -> None:
        self.wheel = wheel
        self.version = version
        self.sha256 = sha256
        self.size = size


class WheelOwners:
    """The RECORDs of NVIDIA's wheels in some folders of the import path, read when first asked."""

    def __init__(self, path: List[str]) -> None:
        self._folders = [os.path.realpath(folder) for folder in path if folder]
        self._records: Dict[str, List[Tuple[str, str, bytes]]] = {}

    def folder_of(self, file: str) -> Optional[str]:
        """Return the folder of the import path that holds the file, the innermost if several do."""
        holding = [folder for folder in self._folders if file.startswith(folder + "/")]
        return max(holding, key=len) if holding else None

    def claims(self, file: str) -> List[Claim]:
        """Return what every wheel says of the file (a real path), in order of the wheel's name."""
        folder = self.folder_of(file)
        if folder is None:
            return []
        wanted = ("\n" + file[len(folder) + 1 :] + ",").encode("utf-8", "surrogateescape")
        found: List[Claim] = []
        for wheel, version, record in self._of(folder):
            at = record.find(wanted)
            if at >= 0:
                begin = at + len(wanted)
                end = record.find(b"\n", begin)
                digest, _, size = (
                    record[begin : end if end >= 0 else None]
                    .decode("ascii", "replace")
                    .partition(",")
                )
                sha256 = digest[7:] if digest.startswith("sha256=") else None
                found.append(
                    Claim(
                        wheel,
                        version,
                        sha256,
                        int(size) if _is_short_number(size.strip()) else None,
                    )
                )
        return found

    def _of(self, folder: str) -> List[Tuple[str, str, bytes]]:
        if folder not in self._records:
            records: List[Tuple[str, str, bytes]] = []
            try:
                names = sorted(os.listdir(folder))
            except OSError:
                names = []
            for name in names:
                if name.endswith(".dist-info") and name.lower().startswith(_VENDORS):
                    wheel, _, version = name[:-10].partition("-")
                    try:
                        record = read_bytes(f"{folder}/{name}/RECORD")
                    except OSError:
                        record = None
                    if record is not None:
                        records.append(
                            (
                                wheel.lower().replace("_", "-"),
                                version,
                                b"\n" + record.replace(b"\r", b""),
                            )
                        )
            self._records[folder] = records
        return self._records[folder]
