"""The CUDA libraries that TensorFlow loads: what they are called, in which order, and who asks for them.

Measured on TensorFlow 2.18.1 and 2.21.0 with `LD_DEBUG=files` while `tsl::internal::DsoLoader` was called (every
`dlopen` comes from libtensorflow_framework.so.2), and read from `cuda_config.h`, the RUNPATHs and the exported
symbols of the PyPI wheels 2.12.1 to 2.21.0.
"""

from __future__ import annotations

from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

PREFIXES = ("libcu", "libnv", "libnccl")
"""What names of CUDA libraries begin with; `is_cuda` says more exactly."""

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


class Library:
    """One library.

    Attributes:
        key: name of its fact, `cuda.<key>`.
        stem: file name before `.so`.
        macro: `TF_<macro>_VERSION` of cuda_config.h holds the number after `.so.`; None where `number` does.
        number: the fixed number after `.so.`.
        unversioned: TensorFlow asks for the bare `.so` when the numbered one does not load.
        header: (file beside the library's folder, macros of its version), None where no header tells.
        parts: how many parts of the version the library itself answers (`nvrtcVersion` says 12.9, not 12.9.86).
        asker: key of the library that loads it; the framework when None.
    """

    __slots__ = ("asker", "header", "key", "macro", "number", "parts", "stem", "unversioned")

    def __init__(
        self,
        key: str,
        stem: str,
        *,
        macro: Optional[str] = None,
        number: str = "",
        unversioned: bool = False,
        header: Optional[Tuple[str, Tuple[str, ...]]] = None,
        parts: int = 4,
        asker: Optional[str] = None,
    ) -> None:
        self.key = key
        self.stem = stem
        self.macro = macro
        self.number = number
        self.unversioned = unversioned
        self.header = header
        self.parts = parts
        self.asker = asker


def _four(name: str) -> Tuple[str, ...]:
    return tuple(f"{name}_VER_{part}" for part in ("MAJOR", "MINOR", "PATCH", "BUILD"))


_CUBLAS = ("cublas_api.h", _four("CUBLAS"))
CUDNN = ("cudnn_version.h", ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"))

# The order of `TryDlopenCUDALibraries` (xla/tsl/platform/default/dlopen_checker.cc), then what is loaded on demand.
# A library that a former one needs is in the process before TensorFlow asks for it, so the order is part of the answer.
LIBRARIES = (
    Library("cuda_driver", "libcuda", number="1"),
    Library(
        "cudart",
        "libcudart",
        macro="CUDART",
        header=("cuda_runtime_api.h", ("CUDART_VERSION",)),
        parts=2,
    ),
    Library("cublas", "libcublas", macro="CUBLAS", header=_CUBLAS),
    Library("cublasLt", "libcublasLt", macro="CUBLAS", header=_CUBLAS),
    Library("cufft", "libcufft", macro="CUFFT", header=("cufft.h", _four("CUFFT"))),
    Library("curand", "libcurand", macro="CURAND", header=("curand.h", _four("CURAND"))),
    Library(
        "cusolver", "libcusolver", macro="CUSOLVER", header=("cusolver_common.h", _four("CUSOLVER"))
    ),
    Library("cusparse", "libcusparse", macro="CUSPARSE", header=("cusparse.h", _four("CUSPARSE"))),
    Library("cudnn", "libcudnn", macro="CUDNN", header=CUDNN, parts=3),
    Library(
        "nccl",
        "libnccl",
        number="2",
        header=("nccl.h", ("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH")),
        parts=3,
    ),
    Library(
        "cupti",
        "libcupti",
        macro="CUPTI",
        unversioned=True,  # GetCuptiDsoHandle: "Load whatever libcupti.so user specified"
        header=("cupti_version.h", ("CUPTI_API_VERSION",)),
        parts=1,
    ),
    Library("tensorrt", "libnvinfer", macro="TENSORRT", header=None, parts=3),
    Library("nvjitlink", "libnvJitLink", macro="CUDART", parts=2, asker="cusparse"),
    Library("nvrtc", "libnvrtc", macro="CUDART", parts=2, asker="cudnn_graph"),
)


def cudnn_parts(major: str) -> List[Dict[str, Any]]:
    """Return the libraries that cuDNN of this major version opens by itself, in its order: name, asker, optional.

    Sources: `envlock/data/cuda.toml`, cudnn_part.
    """
    return [row for row in table("cuda")["cudnn_parts"] if row["cudnn"] == major]


def tensorrt_number(release: Optional[str]) -> Optional[str]:
    """Return what follows `libnvinfer.so.` in TensorFlow major.minor; None where that is not known.

    Sources: `envlock/data/cuda.toml`, tensorrt.
    """
    number: Optional[str] = table("cuda")["tensorrt_numbers"].get(release or "")
    return number


def other_users() -> List[str]:
    """Return the packages that load CUDA libraries of their own, by path or through their own RUNPATH.

    Sources: `envlock/data/cuda.toml`, other_user.
    """
    users: List[str] = table("cuda")["other_users"]
    return users


def cudnn_part_sonames(part: str, major: str, version: Optional[str]) -> Tuple[str, ...]:
    """Return the names that cuDNN asks for, in order.

    cuDNN 9 tries its full version first, then major.minor, then the soname (seen with 9.3.0 and 9.28.0 under
    `LD_DEBUG=files`); cuDNN 8 asks for the soname only (8.9.4).
    """
    name = f"libcudnn_{part}.so."
    if major != "9" or version is None:
        return (name + major,)
    return name + version, name + version.rpartition(".")[0], name + major
