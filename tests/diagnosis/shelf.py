"""A folder of wheels, called as the real ones and with their requirements, for installers to choose from.

Of most there is a newer version than the one that a test installs: what takes the newest is found out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.fakes.tensorflow_tree import Installation
from tests.machines import BUILD_INFO_CPU_2_21, CUDNN_HEADER, CUDNN_HEADER_PATH
from tests.packages.wheels import make_wheel

NVIDIA = {
    "cublas": ("12.5.3.2", "12.9.1.4"),
    "cuda_runtime": ("12.5.82", "12.9.79"),
    "cufft": ("11.2.3.61", "11.4.1.4"),
    "cusolver": ("11.6.3.83", "11.7.5.82"),
    "cusparse": ("12.5.1.3", "12.5.10.65"),
    "nvjitlink": ("12.5.82", "12.9.86"),
    "nccl": ("2.27.7", "2.28.3"),
    "cuda_nvrtc": ("12.5.82", "12.9.86"),
    "cudnn": ("9.3.0.75", "9.20.0.48"),
}
"""Wheel -> what TensorFlow 2.21 takes at the least, and a newer one."""

ALONE: Mapping[str, Iterable[str]] = {
    "numpy": ("1.26.4", "2.0.2", "2.3.0"),
    "keras": ("3.3.0", "3.5.0", "3.7.0", "3.12.0"),
    "six": ("1.16.0", "1.17.0"),
    "typing-extensions": ("4.5.0", "4.16.0"),
    "pygments": ("2.13.0", "2.20.0"),
    "framework-reproducibility": ("0.6.0",),
}
CUDNN_NEEDS = ("nvidia-cublas-cu12",)
"""As the real wheels have it: any version, where TensorFlow names one."""
MODULE = {"pynvml.py": b"", "example.py": b""}


def fill(folder: Path) -> Path:
    """Write every wheel into a folder and return it."""
    for name, versions in ALONE.items():
        for version in versions:
            _make(folder, name, version)
    _make(folder, "helper", "1.0", ["six>=1.12"])
    _make(folder, "asker", "1.0", ["typing-extensions<4.6,>=3.6.6", "pygments>=2.13", "helper", "six"])
    for version, keras in (("1.15.0", None), ("2.16.2", ">=3.0.0"), ("2.18.1", ">=3.5.0")):
        for name in ("tensorflow", "tensorflow-cpu"):
            numpy = "numpy<2.1.0,>=1.23.5" if version == "2.18.1" else "numpy<2.0.0,>=1.23.5"
            needs = [numpy, "six>=1.12.0", *([f"keras{keras}"] if keras else [])]
            _make(folder, name, version, needs, {f"tensorflow/{name}.txt": b"", **_cpu()})
    _make(folder, "tensorflow-cpu", "2.21.0", ["numpy>=1.26.0", "keras>=3.12.0"], _cpu())
    _make(folder, "tf-keras", "2.16.0", ["tensorflow<2.17,>=2.16"])
    _make(folder, "tf-keras", "2.21.0", ["tensorflow<2.22,>=2.21"])
    _make(folder, "addon", "1.0", ["tensorflow<2.20"])
    _make(folder, "addon", "2.0", ["tensorflow>=2.20"])
    for name in ("first", "second"):
        _make(folder, name, "1.0", files={f"{name}.py": b"", "common.py": name.encode()})
    _make(folder, "nvidia-ml-py", "12.575.51", files=MODULE)
    _make(folder, "nvidia-ml-py", "13.610.43", files=MODULE)
    _make(folder, "pynvml", "11.4.1", files={"pynvml/__init__.py": b""})
    _make(folder, "pynvml", "13.0.1", ["nvidia-ml-py>=12.0.0"], {"pynvml_utils/__init__.py": b""})
    _cuda(folder)
    return folder


def _cuda(folder: Path) -> None:
    """Write `tensorflow[and-cuda]` 2.21 with its wheels."""
    tree = Installation(folder / "tree")
    tree.everything()
    needs = ["numpy>=1.26.0", "keras>=3.12.0"]
    for part, (oldest, newest) in NVIDIA.items():
        name = f"nvidia-{part.replace('_', '-')}-cu12"
        needs.append(f"{name}<13.0,>={oldest}; extra == 'and-cuda'")
        content = _below(tree.site, f"nvidia/{part}")
        for version in (oldest, newest):
            _make(folder, name, version, CUDNN_NEEDS if part == "cudnn" else (), content)
    older = Installation(folder / "older")
    older.cudnn(older.site / "nvidia/cudnn", "9.1.0")
    _make(folder, "nvidia-cudnn-cu12", "9.1.0.70", CUDNN_NEEDS, _below(older.site, "nvidia/cudnn"))
    _make(folder, "nvidia-cudnn-cu13", "9.20.0.48", files=_below(tree.site, "nvidia/cudnn"))
    content = {**_below(tree.site, "tensorflow"), f"tensorflow/{CUDNN_HEADER_PATH}": CUDNN_HEADER.encode()}
    _make(folder, "tensorflow", "2.21.0", needs, content, ["Provides-Extra: and-cuda"])


def _cpu() -> dict[str, bytes]:
    return {"tensorflow/__init__.py": b"", "tensorflow/python/platform/build_info.py": BUILD_INFO_CPU_2_21.encode()}


def _below(site: Path, folder: str) -> dict[str, bytes]:
    files = (path for path in sorted((site / folder).rglob("*")) if path.is_file())
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in files}


def _make(
    folder: Path,
    name: str,
    version: str,
    needs: Iterable[str] = (),
    files: Mapping[str, bytes] | None = None,
    headers: Iterable[str] = (),
) -> None:
    module = name.replace("-", "_")
    content = files if files is not None else {f"{module}/__init__.py": b"", f"{module}/version.py": version.encode()}
    lines = [*headers, *(f"Requires-Dist: {need}" for need in needs)]
    make_wheel(folder, module, version, content, headers=lines)
