"""The facts about one CUDA library: version, path and owner of the file that the loader finds.

They are the same on every machine with the same file.
"""

from __future__ import annotations

import os
import sys

from envlock.runtime.cuda.resolution import ABSENT, STATIC, Resolved, list_header_folders
from envlock.runtime.cuda.versions import Headers, parse_name_version
from envlock.runtime.digits import parse_digits
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host, read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Tuple, Union

    from envlock.runtime.cuda.library_list import Library
    from envlock.runtime.facts import Tree
    from envlock.runtime.loader.elf import Elf
    from envlock.runtime.loader.search import Loader

    Text = Union[str, None, Unavailable]
    Record = Tuple[str, str, bytes]
    """Wheel, version, and the bytes of its RECORD."""


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

    def describe_library(self, resolved: Resolved) -> Tree:
        """Return the facts of one library.

        Keys: `linkage`; for a library with a soname `soname`, `file`, `resolved_by`, `version`,
        `wheel_version`; for a file one of `build_id`, `record_sha256` (in the form of RECORD) and
        `size` (bytes); `claimed_by` if several wheels list the file; `problem` if loading it would
        fail; `compat_cuda` and `compat_drivers` (branches) of NVIDIA's note in a libcuda that can
        replace an older driver's.
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
            location = self._loader.locate(found.file)
            facts.update(self.describe_file(location, found.elf, resolved.library))
        return facts

    def describe_file(self, path: str, elf: Optional[Elf], library: Optional[Library]) -> Tree:
        """Return the location of a file, its version, and what identifies its bytes."""
        canonical = self._paths.resolve_path(path)
        claims = self._owners.find_claims(canonical)
        wheel_version = _find_wheel_version(claims, _get_size(canonical))
        facts: Tree = {
            "file": self._paths.render_path(canonical),
            "wheel_version": wheel_version,
            "version": wheel_version,
        }
        if library is not None:
            facts["version"] = self._find_version(canonical, library, wheel_version)
        if len(claims) > 1:
            facts["claimed_by"] = [f"{claim.wheel} {claim.version}" for claim in claims]
        facts.update(_get_identity(canonical, elf, claims))
        if elf is not None and elf.compat is not None:
            facts.update(_parse_compat(elf.compat))
        return facts

    def _find_version(self, path: str, library: Library, wheel_version: Text) -> Text:
        numbers = parse_name_version(path)
        header, parts = library.versioning.header, library.versioning.parts
        if library.key == "cuda_driver":
            # The 1 of `libcuda.so.1` is that of its interface, in every version of the driver.
            if len(numbers) > 1:
                return ".".join(numbers)
            return _NO_VERSION
        if len(numbers) >= 3 and parts:
            return ".".join(numbers[:parts])
        # The RECORD of the wheel that owns the file is about this file; a header beside it may be of
        # another version, for example from an upgrade that was interrupted.
        if isinstance(wheel_version, str) and parts:
            return ".".join(wheel_version.split(".")[:parts])
        if header is not None:
            version = self._headers.read_version(list_header_folders(path), header)
            if version is not None:
                return version
        return _NO_VERSION


def _get_size(path: str) -> Optional[int]:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _find_wheel_version(claims: List[Claim], size: Optional[int]) -> Text:
    """Return the version of the wheel whose RECORD matches the file; None if no wheel lists it."""
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


def _get_identity(path: str, elf: Optional[Elf], claims: List[Claim]) -> Tree:
    """Return the strongest evidence of the file's bytes that is cheap to get: the GNU build-id,
    else the wheel's sha256, else the size.
    """
    if elf is not None and elf.build_id is not None:
        return {"build_id": elf.build_id}
    size = _get_size(path)
    digests = set()
    for claim in claims:
        if claim.sha256 is not None and claim.size == size:
            digests.add(claim.sha256)
    if len(digests) == 1:
        return {"record_sha256": digests.pop()}
    return {"size": size}


def _parse_compat(note: str) -> Tree:
    """Return NVIDIA's note in a libcuda that can replace an older driver's: its CUDA version and
    those drivers.

    Its text is JSON such as {"format":1,"CUDA version":"12.9","driver":[535,550],"device":[1,2]};
    `json` is not imported for two fields.
    """
    version: Union[str, Unavailable] = note.partition('"CUDA version":"')[2].partition('"')[0]
    if not version:
        version = Unavailable("NVIDIA's compatibility note has an unknown format", "unknown-note")
    texts = note.partition('"driver":[')[2].partition("]")[0].split(",")
    drivers = [parse_digits(text.strip()) for text in texts]
    return {
        "compat_cuda": version,
        "compat_drivers": [driver for driver in drivers if driver is not None],
    }


_SYSTEM_PREFIXES = ("/", "/usr")
"""Folders of a system Python: of these, only the site folders are the environment, not all of /usr."""
_SYSTEM = ("/usr/", "/lib/", "/lib64/", "/opt/nvidia/")
_LOCAL = "/usr/local/"


class PortablePaths:
    """Rewrites the paths of one process: `{prefix}/...` in the environment, and system paths
    unchanged.

    Any other folder may contain the name of its user, or depend on HOME or the working folder: it
    becomes `{elsewhere}/NAME`.
    """

    def __init__(self, host: Host, prefix: Optional[str] = None) -> None:
        """Store the folders that are rewritten.

        Args:
            host: provides the import path and the root.
            prefix: folder of the environment; `sys.prefix` when not given.
        """
        self._prefix = os.path.realpath(sys.prefix if prefix is None else prefix)
        self._root = host.root.rstrip("/")
        self._real_folders: Dict[str, str] = {}
        self._site: List[str] = [os.path.realpath(folder) for folder in host.path if folder]

    def is_inside(self, path: str) -> bool:
        """Return whether a real path belongs to the environment."""
        if self._prefix not in _SYSTEM_PREFIXES:
            return path.startswith(self._prefix + "/")
        if not path.startswith("/usr/"):
            return False
        return any(path.startswith(folder + "/") for folder in self._site)

    def resolve_path(self, path: str) -> str:
        """Return the canonical path of a file: links are followed inside the environment.

        Installers may link files from a cache (`uv --link-mode symlink`); the path in the cache
        carries no information.
        """
        folder, name = os.path.split(path)
        if folder not in self._real_folders:
            # Resolving takes eleven calls of lstat, and many files share a folder.
            self._real_folders[folder] = os.path.realpath(folder)
        unlinked = os.path.join(self._real_folders[folder], name)
        if not os.path.islink(unlinked):
            return unlinked
        target = os.path.realpath(unlinked)
        if self.is_inside(unlinked) and not self.is_inside(target):
            return unlinked
        return target

    def render_path(self, path: str) -> str:
        """Return a canonical path in the form that a lockfile has."""
        if self.is_inside(path):
            base = "" if self._prefix == "/" else self._prefix
            return "{prefix}" + path[len(base) :]
        if self._root and path.startswith(self._root + "/"):
            path = path[len(self._root) :]
        if _is_system(path):
            return path
        return "{elsewhere}/" + path.rpartition("/")[2]


def _is_system(path: str) -> bool:
    """Return whether a path is in a folder of system packages or of NVIDIA's installers."""
    if not path.startswith(_LOCAL):
        return path.startswith(_SYSTEM)
    folder = path[len(_LOCAL) :].partition("/")[0]
    if folder in ("lib", "lib64", "bin"):
        return True
    # /usr/local/cuda, /usr/local/cuda-12.5
    return not folder.replace("cuda", "", 1).strip("-.0123456789")


_VENDORS = ("nvidia_", "nvidia-", "tensorrt")
"""Makers whose RECORDs are read: the wheels of others contain no CUDA library of TensorFlow."""


class Claim:
    """The row of one wheel's RECORD for a file.

    Attributes:
        wheel: normalised project name, such as `nvidia-cudnn-cu12`.
        version: version of the wheel.
        sha256: the recorded digest in the form of RECORD (urlsafe base64), or None.
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
    """The RECORDs of NVIDIA's wheels in some folders of the import path, read when first needed."""

    def __init__(self, path: List[str]) -> None:
        self._folders = [os.path.realpath(folder) for folder in path if folder]
        self._records: Dict[str, List[Record]] = {}

    def find_folder(self, file: str) -> Optional[str]:
        """Return the folder of the import path that contains the file; the innermost, if several
        do.
        """
        folders = [folder for folder in self._folders if file.startswith(folder + "/")]
        return max(folders, key=len, default=None)

    def find_claims(self, file: str) -> List[Claim]:
        """Return the rows of all wheels for the file (a real path), in the order of their names."""
        folder = self.find_folder(file)
        if folder is None:
            return []
        row_start = ("\n" + file[len(folder) + 1 :] + ",").encode("utf-8", "surrogateescape")
        claims: List[Claim] = []
        for wheel, version, record in self._read_records(folder):
            start = record.find(row_start)
            if start >= 0:
                begin = start + len(row_start)
                end = record.find(b"\n", begin)
                row = record[begin:end] if end >= 0 else record[begin:]
                claims.append(_parse_claim(wheel, version, row))
        return claims

    def _read_records(self, folder: str) -> List[Record]:
        if folder not in self._records:
            self._records[folder] = _read_vendor_records(folder)
        return self._records[folder]


def _parse_claim(wheel: str, version: str, row: bytes) -> Claim:
    """Return a claim, parsed from the rest of a row of RECORD, `sha256=...,size`."""
    digest, _, size = row.decode("ascii", "replace").partition(",")
    claim = Claim(wheel, version, None, None)
    if digest.startswith("sha256="):
        claim.sha256 = digest[7:]
    claim.size = parse_digits(size.strip())
    return claim


def _read_vendor_records(folder: str) -> List[Record]:
    records: List[Record] = []
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return records
    for name in names:
        if not name.endswith(".dist-info") or not name.lower().startswith(_VENDORS):
            continue
        wheel, _, version = name[: -len(".dist-info")].partition("-")
        try:
            record = read_bytes(f"{folder}/{name}/RECORD")
        except OSError:
            continue
        if record is not None:
            # With a line break also before the first row, every row can be found by "\n" and its
            # path.
            record = b"\n" + record.replace(b"\r", b"")
            records.append((wheel.lower().replace("_", "-"), version, record))
    return records
