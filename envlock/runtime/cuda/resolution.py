"""TensorFlow's loading of CUDA libraries, replayed on files: which library it asks for, how, and what it would get."""

from __future__ import annotations

import os

from envlock.runtime.cuda.libraries import (
    CUDNN,
    LIBRARIES,
    PREFIXES,
    Library,
    cudnn_part_sonames,
    cudnn_parts,
    tensorrt_number,
)
from envlock.runtime.cuda.versions import Headers, version_in_name
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import read_text
from envlock.runtime.loader.elf import exported
from envlock.runtime.loader.search import Found, Loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Mapping, Optional, Set, Tuple, Union

DLOPEN, NEEDED, STATIC, ABSENT = "dlopen", "needed", "static", "absent"

_DSO = "_ZN3tsl8internal9DsoLoader{}Get{}DsoHandleEv"
_CURAND = _DSO.format(18, "Curand")  # exported up to 2.12; 2.14 and later do not load cuRAND
_NCCL = _DSO.format(16, "Nccl")  # exported since 2.15, though NCCL is static up to 2.20
_NCCL_STATIC = "include/external/nccl_archive/src/nccl.h"  # TensorFlow's own NCCL sources: 2.12 to 2.20, gone in 2.21
_CONFIG = "include/third_party/gpus/cuda/cuda_config.h"


class Resolved:
    """What is known of one library: its file, or its static version, or neither.

    Attributes:
        library: which one; a part of cuDNN has an entry of its own.
        linkage: `dlopen`, `needed` (DT_NEEDED of another), `static` or `absent` (this TensorFlow does not use it).
        found: the loader's answer; None where the linkage is static or absent.
        version: the version, where the linkage is static.
    """

    __slots__ = ("found", "library", "linkage", "version")

    def __init__(
        self,
        library: Library,
        linkage: str,
        found: Optional[Found] = None,
        version: Optional[str] = None,
    ) -> None:
        self.library = library
        self.linkage = linkage
        self.found = found
        self.version = version


def read_config(package: str) -> Optional[Dict[str, str]]:
    """Return the `TF_*` macros of TensorFlow's cuda_config.h, such as {"CUDNN_VERSION": "9"}; None without the file."""
    try:
        text = read_text(os.path.join(package, _CONFIG), 1 << 16)
    except OSError:
        text = None
    if text is None:
        return None
    found: Dict[str, str] = {}
    for line in text.splitlines():
        words = line.split(None, 2)
        if len(words) == 3 and words[0] == "#define" and words[1].startswith("TF_"):
            found[words[1][3:]] = words[2].strip().strip('"')
    return found


class Replay:
    """One replay of what TensorFlow loads, in its order."""

    def __init__(
        self,
        package: str,
        loader: Loader,
        headers: Headers,
        build: Mapping[str, object],
        release: Optional[str],
    ) -> None:
        """Prepare.

        Args:
            package: the tensorflow folder.
            loader: the process's view.
            headers: reader of version macros.
            build: TensorFlow's build info.
            release: TensorFlow's major.minor for a build of Google's, None for any other.

        Raises:
            OSError, ValueError: TensorFlow's own library cannot be read.
        """
        self._package = package
        self._loader = loader
        self._headers = headers
        self._build = build
        self._release = release
        self.config = read_config(package)
        self._framework = self._own("libtensorflow_framework.so.2")
        try:
            self._owners = [self._framework, self._own("libtensorflow_cc.so.2")]
        except (OSError, ValueError):
            self._owners = [self._framework]
        path = str(self._framework.file)
        self._exports: Set[str] = exported(loader.place(path), (_CURAND, _NCCL))
        self._resolved: Dict[str, Resolved] = {}

    def _own(self, name: str) -> Found:
        path = os.path.join(self._package, name)
        return Found(name, path, "", self._loader.read(path))

    def run(self) -> Iterator[Tuple[str, Union[Resolved, Unavailable]]]:
        """Yield (key, answer) for every library, cuDNN's parts after cuDNN."""
        for library in LIBRARIES:
            answer = self._resolve(library)
            if isinstance(answer, Resolved):
                self._resolved[library.key] = answer
            yield library.key, answer
            if library.key == "cudnn":
                yield from self._cudnn_parts()

    def _resolve(self, library: Library) -> Union[Resolved, Unavailable]:
        if library.key == "nccl" and self._nccl_version() is not None:
            return Resolved(library, STATIC, version=self._nccl_version())
        for owner in self._owners:  # a build that links a CUDA library instead of opening it
            for need in owner.elf.needed if owner.elf is not None else ():
                if need.startswith(library.stem + ".so"):
                    return Resolved(library, NEEDED, self._loader.open(need, owner, PREFIXES))
        if library.asker is not None:
            return self._asked_by(library, self._resolved.get(library.asker))
        if not self._is_used(library):
            return Resolved(library, ABSENT)
        sonames = self._sonames(library)
        if isinstance(sonames, Unavailable):
            return sonames
        return Resolved(library, DLOPEN, self._first(sonames, self._framework))

    def _is_used(self, library: Library) -> bool:
        if library.key == "curand":
            return _CURAND in self._exports
        if library.key == "nccl":
            return _NCCL in self._exports
        return library.key != "tensorrt" or bool(self._build.get("is_tensorrt_build"))

    def _nccl_version(self) -> Optional[str]:
        header = self._loader.place(os.path.join(self._package, _NCCL_STATIC))
        folder, name = os.path.split(header)
        return self._headers.version([folder], (name, ("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH")))

    def _sonames(self, library: Library) -> Union[Tuple[str, ...], Unavailable]:
        """Return the names that TensorFlow asks for, in order."""
        if library.macro is None:
            return (f"{library.stem}.so.{library.number}",)
        if library.key == "tensorrt":
            number = tensorrt_number(self._release)
            if number is None:
                return Unavailable(
                    "the TensorRT version that this TensorFlow build needs is unknown",
                    "unknown-soname",
                )
        else:
            if self.config is None:
                return Unavailable("TensorFlow's cuda_config.h is not installed", "no-cuda-config")
            number = self.config.get(library.macro + "_VERSION")
            if number is None:
                return Unavailable(
                    "TensorFlow's cuda_config.h does not name this library", "no-cuda-config"
                )
        numbered = f"{library.stem}.so.{number}" if number else f"{library.stem}.so"
        return (numbered, f"{library.stem}.so") if library.unversioned else (numbered,)

    def _first(self, sonames: Tuple[str, ...], caller: Found) -> Found:
        """Return the first name's answer that loads; the last resort is what the first name gave."""
        first: Optional[Found] = None
        for soname in sonames:
            found = self._loader.open(soname, caller, PREFIXES)
            if found.file is not None and found.problem is None:
                return found
            if first is None or (first.file is None and found.file is not None):
                first = found
        return first if first is not None else Found(sonames[0])

    def _asked_by(self, library: Library, asker: Optional[Resolved]) -> Resolved:
        """Resolve a library that another CUDA library brings in."""
        if asker is None or asker.found is None or asker.found.elf is None:
            return Resolved(library, ABSENT)
        for need in asker.found.elf.needed:
            if need.startswith(library.stem + ".so"):
                return Resolved(library, NEEDED, self._loader.open(need, asker.found, PREFIXES))
        major = (self.config or {}).get("CUDART_VERSION", "").partition(".")[0]
        if (
            not major.isdigit() or int(major) < 12
        ):  # CUDA 11 has no nvJitLink, and numbers NVRTC otherwise
            return Resolved(library, ABSENT)
        soname = f"{library.stem}.so.{major}"
        return Resolved(library, DLOPEN, self._loader.open(soname, asker.found, PREFIXES))

    def _cudnn_parts(self) -> Iterator[Tuple[str, Resolved]]:
        cudnn = self._resolved.get("cudnn")
        if (
            cudnn is None
            or cudnn.found is None
            or cudnn.found.file is None
            or cudnn.found.problem is not None
        ):
            return
        major = cudnn.found.soname.rpartition(".")[2]
        version = self._cudnn_version(cudnn.found.file)
        for row in cudnn_parts(major):
            part, caller = row["name"], self._resolved.get(row["asker"])
            if caller is None or caller.found is None:
                continue
            found = self._first(cudnn_part_sonames(part, major, version), caller.found)
            if found.file is None and row["optional"]:
                continue
            key = f"cudnn_{part}"
            if found.file is None:
                found.soname = f"libcudnn_{part}.so.{major}"
            library = Library(key, f"libcudnn_{part}", header=CUDNN, parts=3)
            self._resolved[key] = Resolved(library, DLOPEN, found)
            yield key, self._resolved[key]

    def _cudnn_version(self, file: str) -> Optional[str]:
        place = self._loader.place(file)
        named = version_in_name(os.path.realpath(place))
        if len(named) >= 3:
            return ".".join(named[:3])
        return self._headers.version(header_folders(place), CUDNN)


def header_folders(file: str) -> List[str]:
    """Return where the headers that belong to a library lie: wheel, toolkit, and Debian layouts."""
    folder = os.path.dirname(file)
    folders = [os.path.normpath(f"{folder}/../include")]
    if folder.startswith(("/usr/lib", "/lib")):
        folders += [f"/usr/include/{os.path.basename(folder)}", "/usr/include"]
    return folders
