"""What TensorFlow logs about the GPUs that it uses, and the cuDNN that it has loaded. Pure.

Not read: names of files such as libcudart.so.11.0, whose number is not the version since CUDA 11.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from envlock.lock.pastes.statement import Line, Statement
from envlock.runtime.gpu.devices import shorten_model_name

_DEVICE = re.compile(
    r".*device:GPU:([0-9]{1,3}) with [0-9]+ MB memory[:)] +-> (?:physical GPU \()?device: [0-9]+,"
    r" name: ([^,]{1,60}), pci bus id: [0-9a-fA-F:.]+, compute capability: ([0-9]+\.[0-9]+)\)?",
    re.ASCII,
)
_CUDNN = re.compile(r".*Loaded cuDNN version ([0-9]{4,6})", re.ASCII)
_OTHER_CUDNN = re.compile(
    r".*Loaded runtime CuDNN library: ([0-9.]{1,20}) but source was compiled with: .*", re.ASCII
)


def read_log(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what the lines state that TensorFlow logs when it makes a device and loads cuDNN."""
    for number, text in lines:
        device = _DEVICE.fullmatch(text)
        if device is not None:
            path = f"gpu.devices.{device[1]}"
            yield Statement(f"{path}.name", shorten_model_name(device[2]), number)
            yield Statement(f"{path}.compute_capability", device[3], number)
        cudnn = _CUDNN.fullmatch(text)
        if cudnn is not None:
            yield Statement("cuda.cudnn.version", _format_cudnn(int(cudnn[1])), number, True)
        other = _OTHER_CUDNN.fullmatch(text)
        if other is not None:
            yield Statement("cuda.cudnn.version", other[1], number, True)


def _format_cudnn(number: int) -> str:
    """Return "8.9.4" of 8904 and "9.3.0" of 90300 (cudnn_version.h: CUDNN_VERSION)."""
    major, rest = divmod(number, 1000 if number < 10000 else 10000)
    return f"{major}.{rest // 100}.{rest % 100}"
