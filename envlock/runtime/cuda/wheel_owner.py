"""Which installed wheel put a file there, by the RECORDs beside it.

Wheels overwrite each other's files without a word (`nvidia-cudnn-cu11` and `nvidia-cudnn-cu12` both hold
`nvidia/cudnn/lib/libcudnn.so.9`), so every claim is collected. RECORD is described in PEP 376 and PEP 427.
"""

from __future__ import annotations

import os

from envlock.runtime.host import read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Tuple

_VENDORS = ("nvidia_", "nvidia-", "tensorrt")  # whose RECORDs are read: the others hold no CUDA library of TensorFlow


class Claim:
    """One wheel's line about a file.

    Attributes:
        wheel: normalised project name, such as `nvidia-cudnn-cu12`.
        version: version of the wheel.
        sha256: the recorded digest as RECORD writes it (urlsafe base64), or None.
        size: the recorded size in bytes, or None.
    """

    __slots__ = ("sha256", "size", "version", "wheel")

    def __init__(self, wheel: str, version: str, sha256: Optional[str], size: Optional[int]) -> None:
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
                digest, _, size = record[begin : end if end >= 0 else None].decode("ascii", "replace").partition(",")
                sha256 = digest[7:] if digest.startswith("sha256=") else None
                found.append(Claim(wheel, version, sha256, int(size) if size.strip().isdigit() else None))
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
                        records.append((wheel.lower().replace("_", "-"), version, b"\n" + record.replace(b"\r", b"")))
            self._records[folder] = records
        return self._records[folder]
