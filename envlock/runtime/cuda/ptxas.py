"""Which `ptxas` XLA would run, found from files only.

The order is `FindCudaExecutable` of xla/stream_executor/cuda/subprocess_compilation.cc and `CandidateCudaRoots` of
tsl/platform/default/cuda_root_path.cc: the folder of `--xla_gpu_cuda_data_dir`, then every folder of PATH, then the
toolkit's roots. A version that XLA refuses (`FindPtxAsExecutable`: below 11.8, and 12.3.103) is passed over there.

Where TensorFlow holds libnvptxcompiler (2.17 and later), XLA uses that first for its own kernels and `ptxas` only
where it does not apply.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Mapping, Optional, Tuple

DATA_DIR_FLAG = "--xla_gpu_cuda_data_dir="
DEFAULT_DATA_DIR = "./cuda_sdk_lib"  # xla/debug_options_flags.cc
CUDA_HOME_SINCE = (2, 21)  # TensorFlow: the text is in 2.21.0 and not in 2.18.1; between them is not checked
OLDEST = (11, 8)
REFUSED = ((12, 3, 103),)


def candidates(environ: Mapping[str, str], toolkit: str, package: str, cuda_home: bool) -> Iterator[Tuple[str, str]]:
    """Yield (path, reason) in XLA's order.

    Args:
        environ: the variables as they are when XLA looks (XLA_FLAGS, PATH, CUDA_HOME).
        toolkit: `TF_CUDA_TOOLKIT_PATH` of cuda_config.h, often empty.
        package: the tensorflow folder.
        cuda_home: whether this TensorFlow looks at CUDA_HOME (2.21 does).
    """
    data_dir = DEFAULT_DATA_DIR
    for word in environ.get("XLA_FLAGS", "").split():
        if word.startswith(DATA_DIR_FLAG):
            data_dir = word[len(DATA_DIR_FLAG) :].strip("'\"")
    yield os.path.join(data_dir, "bin", "ptxas"), "xla_gpu_cuda_data_dir"
    for folder in environ.get("PATH", "").split(":"):
        yield os.path.join(folder, "ptxas"), "PATH"
    if cuda_home and environ.get("CUDA_HOME"):
        yield os.path.join(environ["CUDA_HOME"], "bin", "ptxas"), "CUDA_HOME"
    if toolkit:
        yield os.path.join(toolkit, "bin", "ptxas"), "TF_CUDA_TOOLKIT_PATH"
    yield "/usr/local/cuda/bin/ptxas", "/usr/local/cuda"
    for up in ("..", "../.."):
        yield os.path.join(package, up, "nvidia", "cuda_nvcc", "bin", "ptxas"), "wheel"


def refused(version: Optional[str]) -> bool:
    """Return whether XLA passes over a ptxas of this version; one of unknown version it is taken to accept."""
    if version is None:
        return False
    numbers: List[int] = [int(part) for part in version.split(".") if part.isdigit()]
    return tuple(numbers[:2]) < OLDEST or tuple(numbers) in REFUSED
