"""What is mapped against what the facts name."""

from __future__ import annotations

from envlock.runtime.facts import Unavailable
from envlock.runtime.loaded import contradictions, loaded_cuda

MAPS = """\
7f00-7f01 r--p 00000000 08:01 5   /env/nvidia/cuda_runtime/lib/libcudart.so.12
7f01-7f02 r-xp 00001000 08:01 5   /env/nvidia/cuda_runtime/lib/libcudart.so.12
7f02-7f03 r-xp 00001000 08:01 6   /other/libcudnn.so.9
7f04-7f05 r-xp 00001000 08:01 7   /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15
7f06-7f07 r-xp 00001000 08:01 8   /usr/lib/x86_64-linux-gnu/libcurl.so.4
7f08-7f09 r-xp 00001000 08:01 9   /env/torch/lib/libcublas.so.12 (deleted)
"""


def write(path: str) -> str:
    return path.replace("/env/", "{prefix}/")


def test_cuda_libraries_and_no_others() -> None:
    assert sorted(loaded_cuda(MAPS, write)) == ["libcublas", "libcuda", "libcudart", "libcudnn"]


def test_only_a_mapped_other_file_contradicts() -> None:
    cuda = {
        "cudart": {"soname": "libcudart.so.12", "file": "{prefix}/nvidia/cuda_runtime/lib/libcudart.so.12"},
        "cudnn": {"soname": "libcudnn.so.9", "file": "{prefix}/nvidia/cudnn/lib/libcudnn.so.9"},
        "cuda_driver": {"soname": "libcuda.so.1", "file": "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15"},
        "cublas": {"soname": "libcublas.so.12", "file": None},
        "cufft": {"soname": "libcufft.so.11", "file": "{prefix}/nvidia/cufft/lib/libcufft.so.11"},
        "nccl": {"linkage": "static", "version": "2.21.5"},
        "tensorrt": Unavailable("not known", "unknown-soname"),
        "nvrtc": {"soname": "libnvrtc.so.12", "file": Unavailable("no", "no")},
        "other_cuda": [],
    }
    found = contradictions(MAPS, cuda, write)
    assert [(one.key, one.expected, one.actual) for one in found] == [
        ("cudnn", "{prefix}/nvidia/cudnn/lib/libcudnn.so.9", "/other/libcudnn.so.9"),
        ("cublas", None, "{prefix}/torch/lib/libcublas.so.12"),
    ]
