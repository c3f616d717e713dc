"""How TensorFlow loads CUDA libraries, replayed on files: the names that it tries, and the file
that it would load.
"""

from __future__ import annotations

import os

from envlock.runtime.cuda.library_list import (
    CUDNN,
    CUDNN_HEADER,
    LIBRARIES,
    NCCL_MACROS,
    PREFIXES,
    Library,
    get_tensorrt_number,
    list_cudnn_part_sonames,
    list_cudnn_parts,
)
from envlock.runtime.cuda.versions import Headers, parse_name_version
from envlock.runtime.digits import parse_digits
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import read_text
from envlock.runtime.loader.elf import find_exports
from envlock.runtime.loader.search import Found, Loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Mapping, Optional, Set, Tuple, Union

DLOPEN, NEEDED, STATIC, ABSENT = "dlopen", "needed", "static", "absent"

_DSO = "_ZN3tsl8internal9DsoLoader{}Get{}DsoHandleEv"
_CURAND = _DSO.format(18, "Curand")  # exported up to 2.12; 2.14 and later do not load cuRAND
_NCCL = _DSO.format(16, "Nccl")  # exported since 2.15, though NCCL is static up to 2.20
_NCCL_STATIC = "include/external/nccl_archive/src/nccl.h"
"""Releases with TensorFlow's own copy of the NCCL sources: 2.12 to 2.20, removed in 2.21."""
_CONFIG = "include/third_party/gpus/cuda/cuda_config.h"


class Resolved:
    """The result for one library: its file, its static version, or neither.

    Attributes:
        library: the library; a part of cuDNN has an entry of its own.
        linkage: `dlopen`, `needed` (DT_NEEDED of another), `static` or `absent` (this TensorFlow
            does not use it).
        found: the file that the loader finds; None if the linkage is static or absent.
        version: the version, if the linkage is static.
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
    """Return the `TF_*` macros of TensorFlow's cuda_config.h; None if the file does not exist.

    For example {"CUDNN_VERSION": "9"}.
    """
    try:
        text = read_text(os.path.join(package, _CONFIG), 1 << 16)
    except OSError:
        text = None
    if text is None:
        return None
    macros: Dict[str, str] = {}
    for line in text.splitlines():
        words = line.split(None, 2)
        if len(words) == 3 and words[0] == "#define" and words[1].startswith("TF_"):
            macros[words[1][3:]] = words[2].strip().strip('"')
    return macros


class Replay:
    """A replay of how TensorFlow loads its libraries, in its order."""

    def __init__(
        self,
        package: str,
        loader: Loader,
        headers: Headers,
        build: Mapping[str, object],
        release: Optional[str],
    ) -> None:
        """Read TensorFlow's own library.

        Args:
            package: the tensorflow folder.
            loader: the dynamic loader as this process sees it.
            headers: reads version macros.
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
        self._framework = self._read_own("libtensorflow_framework.so.2")
        try:
            self._owners = [self._framework, self._read_own("libtensorflow_cc.so.2")]
        except (OSError, ValueError):
            self._owners = [self._framework]
        path = str(self._framework.file)
        self._exports: Set[str] = find_exports(loader.locate(path), (_CURAND, _NCCL))
        self._resolved: Dict[str, Resolved] = {}

    def _read_own(self, name: str) -> Found:
        path = os.path.join(self._package, name)
        return Found(name, path, "", self._loader.read(path))

    def run(self) -> Iterator[Tuple[str, Union[Resolved, Unavailable]]]:
        """Yield (key, result) for every library; the parts of cuDNN follow cuDNN."""
        for library in LIBRARIES:
            answer = self._resolve(library)
            if isinstance(answer, Resolved):
                self._resolved[library.key] = answer
            yield library.key, answer
            if library.key == "cudnn":
                yield from self._resolve_cudnn_parts()

    def _resolve(self, library: Library) -> Union[Resolved, Unavailable]:
        if library.key == "nccl":
            version = self._find_static_nccl()
            if version is not None:
                return Resolved(library, STATIC, version=version)
        # Some builds are linked with a CUDA library instead of opening it.
        for owner in self._owners:
            found = self._open_needed(library, owner)
            if found is not None:
                return Resolved(library, NEEDED, found)
        if library.asker is not None:
            return self._resolve_indirect(library, self._resolved.get(library.asker))
        if not self._is_used(library):
            return Resolved(library, ABSENT)
        sonames = self._list_sonames(library)
        if isinstance(sonames, Unavailable):
            return sonames
        return Resolved(library, DLOPEN, self._open_first(sonames, self._framework))

    def _open_needed(self, library: Library, caller: Found) -> Optional[Found]:
        """Open a library that the caller is linked with; None if it is not linked with it."""
        if caller.elf is None:
            return None
        for need in caller.elf.needed:
            if need.startswith(library.stem + ".so"):
                return self._loader.open(need, caller, PREFIXES)
        return None

    def _is_used(self, library: Library) -> bool:
        if library.key == "curand":
            return _CURAND in self._exports
        if library.key == "nccl":
            return _NCCL in self._exports
        return library.key != "tensorrt" or bool(self._build.get("is_tensorrt_build"))

    def _find_static_nccl(self) -> Optional[str]:
        header = self._loader.locate(os.path.join(self._package, _NCCL_STATIC))
        folder, name = os.path.split(header)
        return self._headers.read_version([folder], (name, NCCL_MACROS))

    def _list_sonames(self, library: Library) -> Union[Tuple[str, ...], Unavailable]:
        """Return the file names that TensorFlow tries, in order."""
        if library.macro is None:
            return (f"{library.stem}.so.{library.number}",)
        number = self._find_number(library, library.macro)
        if isinstance(number, Unavailable):
            return number
        plain = f"{library.stem}.so"
        numbered = f"{plain}.{number}" if number else plain
        if library.unversioned:
            return numbered, plain
        return (numbered,)

    def _find_number(self, library: Library, macro: str) -> Union[str, Unavailable]:
        """Return the number after `.so.` in the name that TensorFlow asks for."""
        if library.key == "tensorrt":
            number = get_tensorrt_number(self._release)
            if number is None:
                return Unavailable(
                    "the TensorRT version that this TensorFlow build needs is unknown",
                    "unknown-soname",
                )
            return number
        if self.config is None:
            return Unavailable("TensorFlow's cuda_config.h is not installed", "no-cuda-config")
        number = self.config.get(macro + "_VERSION")
        if number is None:
            return Unavailable(
                "TensorFlow's cuda_config.h does not name this library", "no-cuda-config"
            )
        return number

    def _open_first(self, sonames: Tuple[str, ...], caller: Found) -> Found:
        """Return the first result that loads, else the first that has a file, else the first."""
        fallback: Optional[Found] = None
        for soname in sonames:
            found = self._loader.open(soname, caller, PREFIXES)
            if found.file is not None and found.problem is None:
                return found
            if fallback is None or (fallback.file is None and found.file is not None):
                fallback = found
        if fallback is None:
            return Found(sonames[0])
        return fallback

    def _resolve_indirect(self, library: Library, asker: Optional[Resolved]) -> Resolved:
        """Resolve a library that another CUDA library loads."""
        if asker is None or asker.found is None or asker.found.elf is None:
            return Resolved(library, ABSENT)
        found = self._open_needed(library, asker.found)
        if found is not None:
            return Resolved(library, NEEDED, found)
        major = (self.config or {}).get("CUDART_VERSION", "").partition(".")[0]
        # CUDA 11 has no nvJitLink, and numbers NVRTC differently.
        if (parse_digits(major) or 0) < 12:
            return Resolved(library, ABSENT)
        soname = f"{library.stem}.so.{major}"
        return Resolved(library, DLOPEN, self._loader.open(soname, asker.found, PREFIXES))

    def _resolve_cudnn_parts(self) -> Iterator[Tuple[str, Resolved]]:
        cudnn = self._resolved.get("cudnn")
        if cudnn is None or cudnn.found is None:
            return
        if cudnn.found.file is None or cudnn.found.problem is not None:
            return
        major = cudnn.found.soname.rpartition(".")[2]
        version = self._find_cudnn_version(cudnn.found.file)
        for row in list_cudnn_parts(major):
            part, asker = row["name"], self._resolved.get(row["asker"])
            if asker is None or asker.found is None:
                continue
            found = self._open_first(list_cudnn_part_sonames(part, major, version), asker.found)
            if found.file is None and row["optional"]:
                continue
            key = f"cudnn_{part}"
            if found.file is None:
                found.soname = f"libcudnn_{part}.so.{major}"
            library = Library(key, f"libcudnn_{part}", CUDNN)
            self._resolved[key] = Resolved(library, DLOPEN, found)
            yield key, self._resolved[key]

    def _find_cudnn_version(self, file: str) -> Optional[str]:
        location = self._loader.locate(file)
        # The name that is opened has the major version only, and is a link to a file whose name has
        # the others, or is that file: in a wheel.
        numbers = parse_name_version(os.path.realpath(location))
        if len(numbers) >= 3:
            return ".".join(numbers[:3])
        return self._headers.read_version(list_header_folders(location), CUDNN_HEADER)


def list_header_folders(file: str) -> List[str]:
    """Return the folders of the headers that belong to a library, in the layouts of wheels, the
    toolkit and Debian.
    """
    folder = os.path.dirname(file)
    folders = [os.path.normpath(f"{folder}/../include")]
    if folder.startswith(("/usr/lib", "/lib")):
        folders += [f"/usr/include/{os.path.basename(folder)}", "/usr/include"]
    return folders
