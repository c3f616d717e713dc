"""Which GPUs CUDA will show to a process, and in which order.

NVML does not know CUDA_VISIBLE_DEVICES. This applies it to what NVML lists, as the driver does: CUDA programming
guide, "CUDA environment variables" (unset, empty, invalid entries, UUID prefixes); PyTorch's `_parse_visible_devices`
for what the guide leaves open (strtoul, duplicates, mixed kinds); NVIDIA's MIG user guide, "CUDA device enumeration",
for MIG. Everything here is values in, values out.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Sequence

ORDERS = ("FASTEST_FIRST", "PCI_BUS_ID")
"""The values of CUDA_DEVICE_ORDER; the first is the default and is what CUDA does for any other value."""

MULTI_MIG_DRIVER = 570
"""From this driver branch on a process sees one compute instance of every GPU instance, and whole GPUs beside them;
before, one compute instance and nothing else (NVIDIA MIG user guide, "CUDA device enumeration")."""


class Undecided(Exception):  # noqa: N818 (an answer, turned into a reason by its code)
    """What CUDA will show cannot be told from here; `code` is a key of `failures.UNDECIDED`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Selection:
    """CUDA_VISIBLE_DEVICES, parsed: `ordinals`, or `ids` (GPU- or MIG- names), or both None for "all"."""

    __slots__ = ("ids", "ordinals")

    def __init__(
        self, ordinals: Optional[List[int]] = None, ids: Optional[List[str]] = None
    ) -> None:
        self.ordinals = ordinals
        self.ids = ids


class Gpu:
    """One GPU as NVML lists it. `uuid` and `kind` are None when it does not answer.

    `kind` is equal for GPUs that a process could not tell apart; `mig` holds the compute instances of a GPU in MIG
    mode and is None for one that is not.
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
    """One MIG compute instance: NVML's index under its GPU, its UUID, GPU instance id and compute instance id."""

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
    """Return what a value of CUDA_VISIBLE_DEVICES asks for; None is "not set"."""
    if text is None:
        return Selection()
    for prefix in ("GPU-", "MIG-"):
        if text.startswith(prefix):
            return Selection(ids=_names(text.split(","), prefix))
    return Selection(ordinals=_ordinals(text.split(",")))


def _names(entries: List[str], prefix: str) -> List[str]:
    names: List[str] = []
    for entry in entries:
        if entry in names:
            return []  # a name given twice hides every device
        if not entry.startswith(prefix):
            break
        names.append(entry)
    return names


def _ordinals(entries: List[str]) -> List[int]:
    ordinals: List[int] = []
    for entry in entries:
        number = leading_number(entry.strip())
        if number in ordinals:
            return []
        if number < 0:
            break
        ordinals.append(number)
    return ordinals


def leading_number(text: str) -> int:
    """Return the number that `text` begins with, as C's strtoul takes it ("1gpu2" is 1); -1 when there is none."""
    end = 1 if text[:1] in ("+", "-") else 0
    while end < len(text) and "0" <= text[end] <= "9":
        end += 1
    if end > 40:  # no GPU has such a number, and `int` refuses some thousands of digits
        return -1 if text[0] == "-" else 10**40
    return int(text[:end]) if end and text[end - 1] not in "+-" else -1


def driver_branch(version: object) -> Optional[int]:
    """Return 570 of "570.124.04"; None when that is not a driver version."""
    head = version.partition(".")[0] if isinstance(version, str) else ""
    return int(head) if head.isascii() and head.isdigit() and len(head) < 9 else None


def choose(
    selection: Selection, gpus: Sequence[Gpu], order: str, branch: Optional[int]
) -> List[Visible]:
    """Return the devices CUDA shows, in CUDA's order.

    Args:
        selection: what CUDA_VISIBLE_DEVICES asks for.
        gpus: every GPU that NVML lists, in its order, which is that of the PCI bus.
        order: CUDA_DEVICE_ORDER, one of `ORDERS`.
        branch: the driver's branch, such as 570; None when it is not known.

    Raises:
        Undecided: the facts at hand do not say.
    """
    if selection.ids is not None:
        named = _by_name(selection.ids, gpus)
    elif selection.ordinals is not None:
        named = list(_by_ordinal(selection.ordinals, gpus, order))
    else:
        named = list(gpus)
    return _enumerable(named, branch)


def _by_ordinal(ordinals: Sequence[int], gpus: Sequence[Gpu], order: str) -> List[Gpu]:
    kinds = {gpu.kind for gpu in gpus if gpu.kind is not None}
    if ordinals and order != "PCI_BUS_ID" and len(kinds) > 1:
        raise Undecided("device-order-unknown")  # which is the fastest is CUDA's own guess
    if ordinals and any(gpu.mig == [] for gpu in gpus) and len(gpus) > 1:
        raise Undecided(
            "mig-ordinals"
        )  # whether a GPU without instances is counted is not documented
    chosen: List[Gpu] = []
    for ordinal in ordinals:
        if ordinal >= len(gpus):
            break
        chosen.append(gpus[ordinal])
    return chosen


def _by_name(names: Sequence[str], gpus: Sequence[Gpu]) -> List[Visible]:
    chosen: List[Visible] = []
    for name in names:
        found = _named(name, gpus)
        if len(found) != 1:
            if not found and any(gpu.uuid is None for gpu in gpus):
                raise Undecided("device-name-unknown")
            break
        if found[0] in chosen:
            return []
        chosen.append(found[0])
    return chosen


def _named(name: str, gpus: Sequence[Gpu]) -> List[Visible]:
    if name.startswith("GPU-"):
        return [gpu for gpu in gpus if gpu.uuid is not None and gpu.uuid.startswith(name)]
    instances = [(gpu, instance) for gpu in gpus for instance in gpu.mig or ()]
    if name.startswith("MIG-GPU-"):  # before R470: MIG-<GPU uuid>/<GPU instance>/<compute instance>
        return [instance for gpu, instance in instances if _old_name(gpu, instance) == name]
    return [
        instance
        for _, instance in instances
        if instance.uuid is not None and instance.uuid.startswith(name)
    ]


def _old_name(gpu: Gpu, instance: Instance) -> str:
    return f"MIG-{gpu.uuid}/{instance.gpu_instance}/{instance.compute_instance}"


def _enumerable(named: Sequence[Visible], branch: Optional[int]) -> List[Visible]:
    """Return what of the visible devices CUDA enumerates: MIG limits how many."""
    expanded: List[Visible] = []
    for device in named:
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
    kept: List[Visible] = []
    taken = set()
    for device in expanded:
        if isinstance(device, Instance):
            if (device.gpu, device.gpu_instance) in taken:
                continue  # one compute instance of each GPU instance, the first
            taken.add((device.gpu, device.gpu_instance))
        kept.append(device)
    return kept
