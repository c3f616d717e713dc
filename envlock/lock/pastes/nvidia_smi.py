"""The table of nvidia-smi, and its list of GPUs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from envlock.lock.pastes.statement import Line, Statement
from envlock.runtime.gpu.devices import shorten_model_name

_HEAD = re.compile(
    r"NVIDIA-SMI +\S{1,20} +Driver Version: +([0-9.]{1,20})(?: +CUDA Version: +([0-9.]{1,20}))?",
    re.ASCII,
)
_DEVICE = re.compile(
    r"\| +([0-9]{1,3}) +(\S.{0,60}?) +(?:On|Off|N/A|ERR!|WDDM|TCC) *\|"
    r" +[0-9A-Fa-f:.]+ +(?:On|Off|N/A) *\| +(\S+) *\|?",
    re.ASCII,
)
_MEMORY = re.compile(r"\|.*\| +[0-9]+MiB */ *([0-9]{1,8})MiB *\|.*", re.ASCII)
_LISTED = re.compile(
    r"(?:GPU models and configuration: )?GPU ([0-9]{1,3}): ([^(]{1,60}?)(?: \(UUID: .*\))?",
    re.ASCII,
)
"""What `nvidia-smi -L` prints, and PyTorch's report after it."""
CUT = "..."
"""The end of a name that the table has no room for."""


def read_table(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what the table states of the driver, and of the GPUs if all of them are alike: it counts
    them by their places on the bus, and CUDA by their speed.
    """
    devices: dict[str, list[Statement]] = {}
    index = None
    for number, text in lines:
        head = _HEAD.search(text)
        if head is not None:
            yield Statement("gpu.driver_version", head[1], number)
            if head[2]:
                yield Statement("gpu.cuda_driver_version", head[2], number)
        device = _DEVICE.fullmatch(text.strip())
        memory = _MEMORY.fullmatch(text.strip())
        listed = _LISTED.fullmatch(text.strip())
        if device is not None:
            index = device[1]
            devices.setdefault(index, list(_state_device(index, device, number)))
        elif memory is not None and index in devices:
            devices[index].append(
                Statement(f"gpu.devices.{index}.memory_mib", int(memory[1]), number)
            )
            index = None
        elif listed is not None:
            path = f"gpu.devices.{listed[1]}.name"
            name = Statement(path, shorten_model_name(listed[2]), number)
            devices.setdefault(listed[1], [name])
    if len({tuple(each.value for each in device[:1]) for device in devices.values()}) == 1:
        for statements in devices.values():
            yield from statements


def _state_device(index: str, found: re.Match[str], line: int) -> Iterator[Statement]:
    """Yield what a row states: the name, which can be cut, and ECC, whose cell has a number if it is on."""
    name = shorten_model_name(found[2])
    path = f"gpu.devices.{index}"
    yield Statement(f"{path}.name", name.removesuffix(CUT), line, name.endswith(CUT))
    if found[3].isdigit() or found[3] == "Off":
        yield Statement(f"{path}.ecc", found[3] != "Off", line)
