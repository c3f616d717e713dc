"""The CUDA libraries that TensorFlow loads: their names, their order, and which library loads them.

Measured on TensorFlow 2.18.1 and 2.21.0 with `LD_DEBUG=files` while `tsl::internal::DsoLoader` was
called (every `dlopen` comes from libtensorflow_framework.so.2), and read from `cuda_config.h`, the
RUNPATHs and the exported symbols of the PyPI wheels 2.12.1 to 2.21.0.
"""

from __future__ import annotations

from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Tuple, TypedDict

    Header = Tuple[str, Tuple[str, ...]]
    """A file beside the library's folder, and the macros of its version."""

    class CudnnPart(TypedDict):
        """A library that cuDNN opens: a row of the table."""

        cudnn: str
        name: str
        asker: str
        optional: bool


PREFIXES = ("libcu", "libnv", "libnccl")
"""How the names of CUDA libraries begin; `is_cuda` is more precise."""

_OTHERS = (
    "libcurl",
    "libcups",
    "libcue",
    "libcuckoo",
    "libcurses",
    "libcunit",
    "libnvme",
    "libnvpair",
)


def is_cuda(name: str) -> bool:
    """Return whether a file or soname belongs to CUDA, its libraries or the NVIDIA driver."""
    return name.startswith(PREFIXES) and not name.startswith(_OTHERS)


class Versioning:
    """How the version of a library is found.

    Attributes:
        header: the header that defines it; None if no header does.
        parts: how many parts of its wheel's version the library itself reports (`nvrtcVersion`
            returns 12.9, not 12.9.86); 0 if it reports a number of its own (`cuptiGetVersion`
            returns 28).
    """

    __slots__ = ("header", "parts")

    def __init__(self, header: Optional[Header] = None, parts: int = 4) -> None:
        self.header = header
        self.parts = parts


class Library:
    """One library.

    Attributes:
        key: the name of its fact, `cuda.<key>`.
        stem: file name before `.so`.
        macro: `TF_<macro>_VERSION` of cuda_config.h has the number after `.so.`; None if `number`
            has it.
        number: the fixed number after `.so.`.
        unversioned: TensorFlow tries the plain `.so` if the numbered one does not load.
        versioning: how its version is found.
        asker: key of the library that loads it; the framework when None.
    """

    __slots__ = ("asker", "key", "macro", "number", "stem", "unversioned", "versioning")

    def __init__(
        self,
        key: str,
        stem: str,
        versioning: Versioning,
        *,
        macro: Optional[str] = None,
        number: str = "",
        unversioned: bool = False,
        asker: Optional[str] = None,
    ) -> None:
        self.key = key
        self.stem = stem
        self.versioning = versioning
        self.macro = macro
        self.number = number
        self.unversioned = unversioned
        self.asker = asker


def _list_macros(name: str) -> Tuple[str, ...]:
    return tuple([f"{name}_VER_{part}" for part in ("MAJOR", "MINOR", "PATCH", "BUILD")])


_CUBLAS = Versioning(("cublas_api.h", _list_macros("CUBLAS")))
_CUDART = Versioning(("cuda_runtime_api.h", ("CUDART_VERSION",)), parts=2)
_CUFFT = Versioning(("cufft.h", _list_macros("CUFFT")))
_CURAND = Versioning(("curand.h", _list_macros("CURAND")))
_CUSOLVER = Versioning(("cusolver_common.h", _list_macros("CUSOLVER")))
_CUSPARSE = Versioning(("cusparse.h", _list_macros("CUSPARSE")))
_CUPTI = Versioning(("cupti_version.h", ("CUPTI_API_VERSION",)), parts=0)
NCCL_MACROS = ("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH")
_NCCL = Versioning(("nccl.h", NCCL_MACROS), parts=3)
CUDNN_HEADER = ("cudnn_version.h", ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"))
CUDNN = Versioning(CUDNN_HEADER, parts=3)
_WITHOUT_HEADER = Versioning()

# The order of `TryDlopenCUDALibraries` (xla/tsl/platform/default/dlopen_checker.cc), then what is
# loaded on demand. A library that an earlier one needs is loaded before TensorFlow asks for it, so
# the order affects the result.
LIBRARIES = (
    Library("cuda_driver", "libcuda", _WITHOUT_HEADER, number="1"),
    Library("cudart", "libcudart", _CUDART, macro="CUDART"),
    Library("cublas", "libcublas", _CUBLAS, macro="CUBLAS"),
    Library("cublasLt", "libcublasLt", _CUBLAS, macro="CUBLAS"),
    Library("cufft", "libcufft", _CUFFT, macro="CUFFT"),
    Library("curand", "libcurand", _CURAND, macro="CURAND"),
    Library("cusolver", "libcusolver", _CUSOLVER, macro="CUSOLVER"),
    Library("cusparse", "libcusparse", _CUSPARSE, macro="CUSPARSE"),
    Library("cudnn", "libcudnn", CUDNN, macro="CUDNN"),
    Library("nccl", "libnccl", _NCCL, number="2"),
    # Unversioned: GetCuptiDsoHandle says "Load whatever libcupti.so user specified".
    Library("cupti", "libcupti", _CUPTI, macro="CUPTI", unversioned=True),
    Library("tensorrt", "libnvinfer", Versioning(parts=3), macro="TENSORRT"),
    Library("nvjitlink", "libnvJitLink", Versioning(parts=2), macro="CUDART", asker="cusparse"),
    Library("nvrtc", "libnvrtc", Versioning(parts=2), macro="CUDART", asker="cudnn_graph"),
)


def list_cudnn_parts(major: str) -> List[CudnnPart]:
    """Return the libraries that cuDNN of this major version opens, in its order.

    Sources: `envlock/data/cuda.toml`, cudnn_part.
    """
    return [row for row in table("cuda")["cudnn_parts"] if row["cudnn"] == major]


def get_tensorrt_number(release: Optional[str]) -> Optional[str]:
    """Return the number after `libnvinfer.so.` in TensorFlow major.minor; None if unknown.

    Sources: `envlock/data/cuda.toml`, tensorrt.
    """
    number: Optional[str] = table("cuda")["tensorrt_numbers"].get(release or "")
    return number


def list_other_users() -> List[str]:
    """Return the packages that load CUDA libraries by path or through their own RUNPATH.

    Sources: `envlock/data/cuda.toml`, other_user.
    """
    users: List[str] = table("cuda")["other_users"]
    return users


def list_cudnn_part_sonames(part: str, major: str, version: Optional[str]) -> Tuple[str, ...]:
    """Return the file names that cuDNN tries, in order.

    cuDNN 9 tries its full version first, then major.minor, then the soname (seen with 9.3.0 and
    9.28.0 under `LD_DEBUG=files`); cuDNN 8 tries only the soname (8.9.4).
    """
    name = f"libcudnn_{part}.so."
    if major != "9" or version is None:
        return (name + major,)
    return name + version, name + version.rpartition(".")[0], name + major
