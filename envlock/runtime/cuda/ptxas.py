"""Which `ptxas` XLA would run, found from files only.

The order is `FindCudaExecutable` of xla/stream_executor/cuda/subprocess_compilation.cc and `CandidateCudaRoots` of
tsl/platform/default/cuda_root_path.cc: the folder of `--xla_gpu_cuda_data_dir`, then every folder of PATH, then the
toolkit's roots. A version that XLA refuses (`FindPtxAsExecutable`) is passed over there. The versions and their sources
stand in `envlock/data/cuda.toml`, ptxas.

Where TensorFlow holds libnvptxcompiler (2.17 and later), XLA uses that first for its own kernels and `ptxas` only
where it does not apply.
"""

from __future__ import annotations

import os

from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Mapping, Optional, Tuple

DATA_DIR_FLAG = "--xla_gpu_cuda_data_dir="
DEFAULT_DATA_DIR = "./cuda_sdk_lib"  # xla/debug_options_flags.cc


def candidates(environ: Mapping[str, str], toolkit: str, package: str, cuda_home: bool) -> Iterator[Tuple[str, str]]:
    """Yield (path, reason) in XLA's order.

    Args:
        environ: the variables as they are when XLA looks (XLA_FLAGS, PATH, CUDA_HOME).
        toolkit: `TF_CUDA_TOOLKIT_PATH` of cuda_config.h, often empty.
        package: the tensorflow folder.
        cuda_home: whether this TensorFlow looks at CUDA_HOME (`reads_cuda_home`).
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


def reads_cuda_home(release: Optional[str]) -> bool:
    """Return whether TensorFlow major.minor looks at CUDA_HOME; one of unknown version is taken not to."""
    since: List[int] = table("cuda")["ptxas"]["cuda_home_since"]
    return _numbers(release or "") >= since


def refused(version: Optional[str]) -> bool:
    """Return whether XLA passes over a ptxas of this version; one of unknown version it is taken to accept."""
    if version is None:
        return False
    rules = table("cuda")["ptxas"]
    numbers = _numbers(version)
    return numbers[:2] < rules["oldest"] or numbers in rules["refused"]


def _numbers(version: str) -> List[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]
