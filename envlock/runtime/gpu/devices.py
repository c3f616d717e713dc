"""The child's answer as facts: names, units, SM counts, and a reason for each value that is
missing.
"""

from __future__ import annotations

from envlock.runtime.distributions import is_version
from envlock.runtime.facts import Unavailable
from envlock.runtime.gpu import nvml_failures
from envlock.runtime.gpu.nvml import NOT_SUPPORTED, is_unavailable
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Mapping, Optional, Union

    from envlock.runtime.facts import Tree
    from envlock.runtime.gpu.nvml import Answer

    Fact = Union[str, int, List[str], Unavailable, None]

MIB = 1024 * 1024
LABELS = {
    "architecture": "the GPU architecture",
    "compute_capability": "the compute capability",
    "compute_mode": "the compute mode",
    "cores": "the number of CUDA cores",
    "driver_version": "the driver version",
    "ecc": "whether ECC memory is on",
    "memory_bytes": "the memory size",
    "mig": "whether the GPU is in MIG mode",
    "name": "the name of the GPU",
    "nvml_version": "the NVML version",
    "pci_device_id": "the PCI device id",
    "pci_subsystem_id": "the PCI subsystem id",
    "persistence": "the persistence mode",
    "power_limit_milliwatts": "the power limit",
    "vbios": "the VBIOS version",
    "virtualization": "the virtualization mode",
}
NONE_IF_UNSUPPORTED = (
    "compute_mode",
    "cores",
    "ecc",
    "memory_bytes",
    "persistence",
    "power_limit_milliwatts",
    "virtualization",
)
"""Fields for which NVML's "not supported" means that the card does not have it (ECC of a GeForce,
own memory of a Thor).
"""


def convert_answer(answer: Answer, *, wsl2: bool) -> Tree:
    """Return the facts of an answer whose status is `ok`: driver, NVML, CUDA, binding and devices.

    `devices` has the keys "0", "1", ... in CUDA's order; a GPU that is lost is a single
    `Unavailable`.
    """
    reader = _Reader(answer, wsl2=wsl2)
    devices: Union[Tree, Unavailable]
    count: Union[int, Unavailable]
    if is_unavailable(answer["devices"]):
        code = answer["devices"]["unavailable"]
        count = devices = nvml_failures.explain_missing_answer(code, "the list of GPUs", wsl2=wsl2)
    else:
        meanings = table("gpu")
        count = len(answer["devices"])
        devices = {}
        for index, device in enumerate(answer["devices"]):
            devices[str(index)] = _convert_device(device, meanings, wsl2=wsl2)
    return {
        "driver_version": reader.convert_version("driver_version"),
        "nvml": {
            "version": reader.convert_version("nvml_version"),
            "file_version": answer["library_version"],
        },
        "cuda_driver_version": _convert_cuda_version(answer["cuda_driver_version"], wsl2=wsl2),
        "binding": dict(answer["binding"]),
        "visible": {"count": count, "device_order": answer["device_order"]},
        "devices": devices,
    }


class _Reader:
    """Turns raw values of one object into facts."""

    def __init__(self, raw: Answer, *, wsl2: bool) -> None:
        self.raw = raw
        self.wsl2 = wsl2

    def convert_field(self, field: str, convert: Optional[Callable[[Any], Fact]] = None) -> Fact:
        """Return the field's value, converted.

        None if the card does not have it, `Unavailable` if NVML gave no value.
        """
        value = self.raw[field]
        if is_unavailable(value):
            code = value["unavailable"]
            if code == NOT_SUPPORTED and field in NONE_IF_UNSUPPORTED:
                return None
            return nvml_failures.explain_missing_answer(code, LABELS[field], wsl2=self.wsl2)
        if convert is not None and value is not None:
            value = convert(value)
        fact: Fact = value
        return fact

    def look_up_name(self, field: str, names: Mapping[str, str]) -> Fact:
        """Return the name of the field's number, or the number itself if it has no name yet."""
        return self.convert_field(field, lambda number: names.get(str(number), f"number {number}"))

    def convert_version(self, field: str, convert: Optional[Callable[[Any], Fact]] = None) -> Fact:
        """Return the field's value; `Unavailable` if a lockfile cannot have it as a version."""
        value = self.convert_field(field, convert)
        if isinstance(value, str) and not is_version(value):
            return nvml_failures.explain_missing_answer(
                "undecodable", LABELS[field], wsl2=self.wsl2
            )
        return value


def _convert_device(raw: Answer, meanings: Tree, *, wsl2: bool) -> Union[Tree, Unavailable]:
    """Return the facts of one GPU; `meanings` is the table `gpu`."""
    if is_unavailable(raw):
        return nvml_failures.explain_missing_answer(raw["unavailable"], "its facts", wsl2=wsl2)
    reader = _Reader(raw, wsl2=wsl2)
    mig = _convert_mig(raw["mig"], wsl2=wsl2)
    facts: Tree = {
        "name": reader.convert_field("name", shorten_model_name),
        "architecture": reader.look_up_name("architecture", meanings["architectures"]),
        "compute_capability": reader.convert_version(
            "compute_capability", lambda pair: f"{pair[0]}.{pair[1]}"
        ),
        "pci_device_id": reader.convert_field("pci_device_id", format_pci_id),
        "pci_subsystem_id": reader.convert_field("pci_subsystem_id", format_pci_id),
        "cores": reader.convert_field("cores"),
        "memory_mib": reader.convert_field("memory_bytes", lambda size: size // MIB),
        "ecc": reader.convert_field("ecc", bool),
        "mig": mig,
        "virtualization": reader.look_up_name("virtualization", meanings["virtualization"]),
        "info": {
            # The case of the digits differs between systems.
            "vbios": reader.convert_field("vbios", str.upper),
            "persistence": reader.convert_field("persistence", bool),
            "compute_mode": reader.look_up_name("compute_mode", meanings["compute_mode"]),
            "power_limit_watts": reader.convert_field(
                "power_limit_milliwatts", lambda power: power // 1000
            ),
        },
    }
    if isinstance(mig, dict):
        facts["sm_count"] = mig["sm_count"]
    else:
        facts["sm_count"] = _compute_sm_count(facts, meanings["cores_per_sm"])
    return facts


def _convert_mig(raw: Optional[Answer], *, wsl2: bool) -> Union[Tree, Unavailable, None]:
    """Return {profile, sm_count, gpu_slices, compute_slices, memory_mib} of a MIG device.

    For a whole GPU it is None.
    """
    if raw is None:
        return None
    if is_unavailable(raw):
        return nvml_failures.explain_missing_answer(raw["unavailable"], LABELS["mig"], wsl2=wsl2)
    facts: Tree = {}
    for field in ("sm_count", "gpu_slices", "compute_slices", "memory_mib"):
        value = raw[field]
        if is_unavailable(value):
            code = value["unavailable"]
            value = nvml_failures.explain_missing_answer(
                code, "the shape of the MIG device", wsl2=wsl2
            )
        facts[field] = value
    name = raw["name"]
    what = "the profile of the MIG device"
    if is_unavailable(name):
        code = name["unavailable"]
        facts["profile"] = nvml_failures.explain_missing_answer(code, what, wsl2=wsl2)
    else:
        profile = parse_mig_profile(name)
        facts["profile"] = profile or nvml_failures.explain_missing_answer("undecodable", what)
    return facts


def _compute_sm_count(facts: Tree, cores_per_sm: Mapping[str, int]) -> Fact:
    """Return the number of cores divided by cores per SM, which is the only way to get a whole
    GPU's SM count from NVML.
    """
    cores, capability = facts["cores"], facts["compute_capability"]
    if isinstance(cores, int) and isinstance(capability, str):
        per_sm = cores_per_sm.get(capability)
        if per_sm is not None and cores % per_sm == 0:
            return cores // per_sm
    for fact in (cores, capability):
        if isinstance(fact, Unavailable):
            return fact
    if cores is None:
        return None
    return nvml_failures.explain_missing_answer("sm-unknown", "the number of SMs")


def shorten_model_name(name: str) -> str:
    """Return a GPU's name without any MIG profile and without "NVIDIA ".

    Drivers put "NVIDIA " before the name since about R465.
    """
    name = name.partition(" MIG ")[0]
    prefix = "NVIDIA "
    if name.startswith(prefix):
        return name[len(prefix) :]
    return name


def parse_mig_profile(name: str) -> Optional[str]:
    """Return "3g.20gb" of "NVIDIA A100-SXM4-40GB MIG 3g.20gb"; None for a name without a profile."""
    return name.partition("MIG ")[2].strip() or None


def format_pci_id(number: int) -> str:
    """Return NVML's 32 bits (device, then vendor) as "10de:2335", the form that lspci prints."""
    return f"{number & 0xFFFF:04x}:{number >> 16 & 0xFFFF:04x}"


def format_cuda_version(number: int) -> str:
    """Return "12.2" of 12020 (nvml.h: NVML_CUDA_DRIVER_VERSION_MAJOR, _MINOR)."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _convert_cuda_version(number: Union[int, Answer], *, wsl2: bool) -> Union[str, Unavailable]:
    """Return the CUDA version of NVML's number; `number` may be `{"unavailable": code}`."""
    if isinstance(number, dict):
        return nvml_failures.explain_missing_cuda_version(number["unavailable"], wsl2=wsl2)
    if number > 0:
        return format_cuda_version(number)
    return nvml_failures.explain_missing_cuda_version("undecodable", wsl2=wsl2)
