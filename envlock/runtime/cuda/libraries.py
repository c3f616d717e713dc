"""The CUDA libraries that TensorFlow loads: what they are called, in which order, and who asks for them.

Measured on TensorFlow 2.18.1 and 2.21.0 with `LD_DEBUG=files` while `tsl::internal::DsoLoader` was called (every
`dlopen` comes from libtensorflow_framework.so.2), and read from `cuda_config.h`, the RUNPATHs and the exported
symbols of the PyPI wheels 2.12.1 to 2.21.0.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, Tuple

PREFIXES = ("libcu", "libnv", "libnccl")
"""What names of CUDA libraries begin with; `is_cuda` says more exactly."""

_OTHERS = ("libcurl", "libcups", "libcue", "libcuckoo", "libcurses", "libcunit", "libnvme", "libnvpair")


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
    Library("cudart", "libcudart", macro="CUDART", header=("cuda_runtime_api.h", ("CUDART_VERSION",)), parts=2),
    Library("cublas", "libcublas", macro="CUBLAS", header=_CUBLAS),
    Library("cublasLt", "libcublasLt", macro="CUBLAS", header=_CUBLAS),
    Library("cufft", "libcufft", macro="CUFFT", header=("cufft.h", _four("CUFFT"))),
    Library("curand", "libcurand", macro="CURAND", header=("curand.h", _four("CURAND"))),
    Library("cusolver", "libcusolver", macro="CUSOLVER", header=("cusolver_common.h", _four("CUSOLVER"))),
    Library("cusparse", "libcusparse", macro="CUSPARSE", header=("cusparse.h", _four("CUSPARSE"))),
    Library("cudnn", "libcudnn", macro="CUDNN", header=CUDNN, parts=3),
    Library("nccl", "libnccl", number="2", header=("nccl.h", ("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH")), parts=3),
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

# cuDNN's parts, by its major version: (name, who asks). The shim and the graph library `dlopen` them.
CUDNN_PARTS: Dict[str, Tuple[Tuple[str, str], ...]] = {
    "8": (
        ("ops_infer", "cudnn"),
        ("cnn_infer", "cudnn"),
        ("adv_infer", "cudnn"),
        ("ops_train", "cudnn"),
        ("cnn_train", "cudnn"),
        ("adv_train", "cudnn"),
    ),
    "9": (
        ("graph", "cudnn"),
        ("ops", "cudnn"),
        ("cnn", "cudnn"),
        ("adv", "cudnn"),
        ("heuristic", "cudnn_graph"),
        ("engines_precompiled", "cudnn_graph"),
        ("engines_runtime_compiled", "cudnn_graph"),
        ("engines_tensor_ir", "cudnn_graph"),  # from 9.2x on
        ("ext", "cudnn"),  # from 9.2x on
    ),
}
OPTIONAL_PARTS = ("engines_tensor_ir", "ext")
"""Not in every release of cuDNN 9: no fact when not found."""


# TensorFlow major.minor -> what follows `libnvinfer.so.` (seen under LD_DEBUG=files; only builds with TensorRT count).
TENSORRT_NUMBERS = {"2.12": "8", "2.14": "8", "2.15": "8.6.1", "2.16": "8.6.1", "2.17": "8.6.1"}


def cudnn_part_sonames(part: str, major: str, version: Optional[str]) -> Tuple[str, ...]:
    """Return the names that cuDNN asks for, in order.

    cuDNN 9 tries its full version first, then major.minor, then the soname (seen with 9.3.0 and 9.28.0 under
    `LD_DEBUG=files`); cuDNN 8 asks for the soname only (8.9.4).
    """
    name = f"libcudnn_{part}.so."
    if major != "9" or version is None:
        return (name + major,)
    return name + version, name + version.rpartition(".")[0], name + major


OTHER_USERS = (
    "torch",
    "cupy",
    "jaxlib",
    "onnxruntime",
    "paddle",
    "mxnet",
    "numba",
    "pycuda",
    "tensorrt",
    "cudf",
    "rmm",
)
"""Packages that load CUDA libraries of their own, by path or through their own RUNPATH."""
