"""Which GPUs CUDA will use in a process, and in which order.

NVML ignores CUDA_VISIBLE_DEVICES. This module applies it to NVML's list, as the driver does: CUDA
programming guide, "CUDA environment variables" (unset, empty, invalid entries, UUID prefixes);
PyTorch's `_parse_visible_devices` for what the guide leaves open (strtoul, duplicates, mixed
kinds); NVIDIA's MIG user guide, "CUDA device enumeration", for MIG. Pure: values in, values out.
"""

from __future__ import annotations

from envlock.runtime.digits import parse_digits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Sequence

ORDERS = ("FASTEST_FIRST", "PCI_BUS_ID")
"""The values of CUDA_DEVICE_ORDER; the first is the default, and CUDA treats any other value like
it.
"""

MULTI_MIG_DRIVER = 570
"""From this driver branch on a process can use one compute instance of every GPU instance, and
whole GPUs as well; before, one compute instance and nothing else (NVIDIA MIG user guide, "CUDA
device enumeration").
"""


class Undecided(Exception):  # noqa: N818 (an answer, turned into a reason by its code)
    """The devices that CUDA will use are unknown; `code` is a key of `failures.UNDECIDED`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Selection:
    """CUDA_VISIBLE_DEVICES, parsed: `ordinals`, or `ids` (GPU- or MIG-), or both None for "all"."""

    __slots__ = ("ids", "ordinals")

    def __init__(
        self, ordinals: Optional[List[int]] = None, ids: Optional[List[str]] = None
    ) -> None:
        self.ordinals = ordinals
        self.ids = ids


class Gpu:
    """One GPU as NVML lists it. `uuid` and `kind` are None if NVML does not return them.

    `kind` is equal for GPUs that a process could not tell apart; `mig` holds the compute instances
    of a GPU in MIG mode and is None for a GPU that is not in MIG mode.
    """

    __slots__ = ("index", "kind", "mig", "uuid")

    def __init__(
        self,
        index: int,
        uuid: Optional[str],
        kind: Optional[str],
        mig: Optional[List[Instance]] = None,
    ) -> None:
        self.index = index
        self.uuid = uuid
        self.kind = kind
        self.mig = mig


class Instance:
    """One MIG compute instance: its index under its GPU in NVML, its UUID, the ids of its
    instances.
    """

    __slots__ = ("compute_instance", "gpu", "gpu_instance", "index", "uuid")

    def __init__(
        self, gpu: int, index: int, uuid: Optional[str], gpu_instance: int, compute_instance: int
    ) -> None:
        self.gpu = gpu
        self.index = index
        self.uuid = uuid
        self.gpu_instance = gpu_instance
        self.compute_instance = compute_instance


if TYPE_CHECKING:
    from typing import Union

    Visible = Union[Gpu, Instance]


def parse(text: Optional[str]) -> Selection:
    """Return the devices that a value of CUDA_VISIBLE_DEVICES selects; None means that it is not
    set.
    """
    if text is None:
        return Selection()
    for prefix in ("GPU-", "MIG-"):
        if text.startswith(prefix):
            return Selection(ids=_parse_ids(text.split(","), prefix))
    return Selection(ordinals=_parse_ordinals(text.split(",")))


def _parse_ids(entries: List[str], prefix: str) -> List[str]:
    names: List[str] = []
    for entry in entries:
        if entry in names:
            return []  # a name that is given twice hides every device
        if not entry.startswith(prefix):
            break  # CUDA ignores what follows an invalid entry
        names.append(entry)
    return names


def _parse_ordinals(entries: List[str]) -> List[int]:
    ordinals: List[int] = []
    for entry in entries:
        number = parse_leading_number(entry.strip())
        if number in ordinals:
            return []
        if number < 0:
            break
        ordinals.append(number)
    return ordinals


def parse_leading_number(text: str) -> int:
    """Return the number at the start of `text`, as C's strtoul does ("1gpu2" is 1), or -1."""
    end = 1 if text[:1] in ("+", "-") else 0
    while end < len(text) and "0" <= text[end] <= "9":
        end += 1
    if end == 0 or text[end - 1] in "+-":
        return -1
    if end > 40:  # no GPU has such a number, and `int` refuses numbers of some thousands of digits
        return -1 if text[0] == "-" else 10**40
    return int(text[:end])


def parse_driver_branch(version: object) -> Optional[int]:
    """Return 570 of "570.124.04"; None when that is not a driver version."""
    if not isinstance(version, str):
        return None
    return parse_digits(version.partition(".")[0], 8)


def choose(
    selection: Selection, gpus: Sequence[Gpu], order: str, branch: Optional[int]
) -> List[Visible]:
    """Return the devices that CUDA will use, in CUDA's order.

    Args:
        selection: the parsed CUDA_VISIBLE_DEVICES.
        gpus: every GPU that NVML lists, in its order, which is that of the PCI bus.
        order: CUDA_DEVICE_ORDER, one of `ORDERS`.
        branch: the driver's branch, such as 570; None when it is not known.

    Raises:
        Undecided: these values do not determine it.
    """
    devices: List[Visible]
    if selection.ids is not None:
        devices = _select_by_id(selection.ids, gpus)
    elif selection.ordinals is not None:
        devices = list(_select_by_ordinal(selection.ordinals, gpus, order))
    else:
        devices = list(gpus)
    return _expand_mig(devices, branch)


def _select_by_ordinal(ordinals: Sequence[int], gpus: Sequence[Gpu], order: str) -> List[Gpu]:
    kinds = {gpu.kind for gpu in gpus if gpu.kind is not None}
    if ordinals and order != "PCI_BUS_ID" and len(kinds) > 1:
        # CUDA decides by its own heuristic which GPU is the fastest.
        raise Undecided("device-order-unknown")
    if ordinals and any(gpu.mig == [] for gpu in gpus) and len(gpus) > 1:
        # NVIDIA does not document whether a GPU without instances is counted.
        raise Undecided("mig-ordinals")
    selected: List[Gpu] = []
    for ordinal in ordinals:
        if ordinal >= len(gpus):
            break
        selected.append(gpus[ordinal])
    return selected


def _select_by_id(names: Sequence[str], gpus: Sequence[Gpu]) -> List[Visible]:
    selected: List[Visible] = []
    for name in names:
        devices = _find_by_id(name, gpus)
        if len(devices) != 1:
            if not devices and any(gpu.uuid is None for gpu in gpus):
                raise Undecided("device-name-unknown")
            break
        if devices[0] in selected:
            return []
        selected.append(devices[0])
    return selected


def _find_by_id(name: str, gpus: Sequence[Gpu]) -> List[Visible]:
    """Return the devices whose UUID begins with a name, because CUDA accepts abbreviations."""
    if name.startswith("GPU-"):
        return [gpu for gpu in gpus if gpu.uuid is not None and gpu.uuid.startswith(name)]
    devices: List[Visible] = []
    for gpu in gpus:
        for instance in gpu.mig or ():
            if name.startswith("MIG-GPU-"):
                # Before R470: MIG-<GPU uuid>/<GPU instance>/<compute instance>
                ids = f"{instance.gpu_instance}/{instance.compute_instance}"
                is_match = name == f"MIG-{gpu.uuid}/{ids}"
            else:
                is_match = instance.uuid is not None and instance.uuid.startswith(name)
            if is_match:
                devices.append(instance)
    return devices


def _expand_mig(devices: Sequence[Visible], branch: Optional[int]) -> List[Visible]:
    """Return those of the visible devices that CUDA enumerates: MIG limits their number."""
    expanded: List[Visible] = []
    for device in devices:
        if isinstance(device, Gpu) and device.mig is not None:
            expanded.extend(device.mig)
        else:
            expanded.append(device)
    instances = [device for device in expanded if isinstance(device, Instance)]
    if len(instances) == 0 or len(expanded) == 1:
        return expanded
    if branch is None:
        raise Undecided("mig-driver-unknown")
    if branch < MULTI_MIG_DRIVER:
        return list(instances[:1])
    enumerated: List[Visible] = []
    gpu_instances = set()
    for device in expanded:
        if isinstance(device, Instance):
            if (device.gpu, device.gpu_instance) in gpu_instances:
                continue  # one compute instance of each GPU instance, the first
            gpu_instances.add((device.gpu, device.gpu_instance))
        enumerated.append(device)
    return enumerated
