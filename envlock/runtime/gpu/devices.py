"""The child's answer as facts: normalised names, units, derived SM counts, and a reason where there is no value."""

from __future__ import annotations

from envlock.runtime.facts import Unavailable
from envlock.runtime.gpu import failures
from envlock.runtime.gpu.nvml import NOT_SUPPORTED, failed
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Optional, Union

    from envlock.runtime.facts import Tree

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
    "compute_mode", "cores", "ecc", "memory_bytes", "persistence", "power_limit_milliwatts", "virtualization",
)  # fmt: skip
"""Where NVML's "not supported" is an answer: the card has none (ECC of a GeForce, memory of its own of a Thor)."""


def tree(answer: Mapping[str, Any], *, wsl2: bool) -> Tree:
    """Return {driver_version, nvml, cuda_driver_version, binding, visible, devices} of an answer whose status is ok.

    `devices` is keyed "0", "1", ... in the order in which CUDA shows them; a GPU that is lost is one `Unavailable`.
    """
    reader = _Reader(answer, wsl2=wsl2)
    cuda = answer["cuda_driver_version"]
    devices: Union[Tree, Unavailable]
    count: Union[int, Unavailable]
    if failed(answer["devices"]):
        count = devices = failures.of_question(
            answer["devices"]["unavailable"], "the list of GPUs", wsl2=wsl2
        )
    else:
        meanings = table("gpu")
        count = len(answer["devices"])
        devices = {
            str(index): _device(device, meanings, wsl2=wsl2)
            for index, device in enumerate(answer["devices"])
        }
    return {
        "driver_version": reader.version("driver_version"),
        "nvml": {
            "version": reader.version("nvml_version"),
            "file_version": answer["library_version"],
        },
        "cuda_driver_version": (
            failures.of_cuda_version(cuda["unavailable"], wsl2=wsl2)
            if failed(cuda)
            else _cuda_version(cuda, wsl2=wsl2)
        ),
        "binding": dict(answer["binding"]),
        "visible": {"count": count, "device_order": answer["device_order"]},
        "devices": devices,
    }


class _Reader:
    """Turns raw values of one object into facts."""

    def __init__(self, raw: Mapping[str, Any], *, wsl2: bool) -> None:
        self.raw = raw
        self.wsl2 = wsl2

    def fact(self, field: str, convert: Optional[Callable[[Any], Any]] = None) -> Any:
        """Return the field's value, converted; None where the card has no such thing; otherwise why it is missing."""
        value = self.raw[field]
        if failed(value):
            code = value["unavailable"]
            if code == NOT_SUPPORTED and field in NONE_IF_UNSUPPORTED:
                return None
            return failures.of_question(code, LABELS[field], wsl2=self.wsl2)
        return value if convert is None or value is None else convert(value)

    def version(self, field: str, convert: Optional[Callable[[Any], Any]] = None) -> Any:
        """Return the field's value, or that it has not the form of a version, which a lock could not hold."""
        value = self.fact(field, convert)
        if isinstance(value, str) and not is_version(value):
            return failures.of_question("undecodable", LABELS[field], wsl2=self.wsl2)
        return value


def _device(
    raw: Mapping[str, Any], meanings: Mapping[str, Any], *, wsl2: bool
) -> Union[Tree, Unavailable]:
    if failed(raw):
        return failures.of_question(raw["unavailable"], "its facts", wsl2=wsl2)
    reader = _Reader(raw, wsl2=wsl2)
    mig = _mig(raw["mig"], wsl2=wsl2)
    facts: Tree = {
        "name": reader.fact("name", model_name),
        "architecture": reader.fact(
            "architecture", lambda number: named(meanings["architectures"], number)
        ),
        "compute_capability": reader.version(
            "compute_capability", lambda pair: f"{pair[0]}.{pair[1]}"
        ),
        "pci_device_id": reader.fact("pci_device_id", pci_id),
        "pci_subsystem_id": reader.fact("pci_subsystem_id", pci_id),
        "cores": reader.fact("cores"),
        "memory_mib": reader.fact("memory_bytes", lambda size: size // MIB),
        "ecc": reader.fact("ecc", bool),
        "mig": mig,
        "virtualization": reader.fact(
            "virtualization", lambda number: named(meanings["virtualization"], number)
        ),
        "info": {
            "vbios": reader.fact(
                "vbios", str.upper
            ),  # the case of its digits differs between systems
            "persistence": reader.fact("persistence", bool),
            "compute_mode": reader.fact(
                "compute_mode", lambda number: named(meanings["compute_mode"], number)
            ),
            "power_limit_watts": reader.fact("power_limit_milliwatts", lambda power: power // 1000),
        },
    }
    facts["sm_count"] = (
        mig["sm_count"] if isinstance(mig, dict) else _sm_count(facts, meanings["cores_per_sm"])
    )
    return facts


def _mig(raw: Any, *, wsl2: bool) -> Any:
    """Return {profile, sm_count, gpu_slices, compute_slices, memory_mib} of a MIG device; None of a whole GPU."""
    if raw is None:
        return None
    if failed(raw):
        return failures.of_question(raw["unavailable"], LABELS["mig"], wsl2=wsl2)
    facts: Tree = {}
    for field in ("sm_count", "gpu_slices", "compute_slices", "memory_mib"):
        value = raw[field]
        what = "the shape of the MIG device"
        facts[field] = (
            failures.of_question(value["unavailable"], what, wsl2=wsl2) if failed(value) else value
        )
    name = raw["name"]
    profile = None if failed(name) else mig_profile(name)
    if profile is None:
        code = name["unavailable"] if failed(name) else "undecodable"
        facts["profile"] = failures.of_question(code, "the profile of the MIG device", wsl2=wsl2)
    else:
        facts["profile"] = profile
    return facts


def _sm_count(facts: Mapping[str, Any], cores_per_sm: Mapping[str, int]) -> Any:
    """Return cores over cores per SM, which is NVML's only way to the SM count of a whole GPU."""
    cores, capability = facts["cores"], facts["compute_capability"]
    if isinstance(cores, int) and isinstance(capability, str):
        per_sm = cores_per_sm.get(capability)
        if per_sm is not None and cores % per_sm == 0:
            return cores // per_sm
    for fact in (cores, capability):
        if isinstance(fact, Unavailable):
            return fact
    return None if cores is None else failures.of_question("sm-unknown", "the number of SMs")


def is_version(text: str) -> bool:
    """Return whether a text has the form of a version, as "595.80"."""
    plain = all(char.isalnum() or char in ".!+_-" for char in text)
    return text.isascii() and text[:1].isalnum() and plain and len(text) <= 128


def model_name(name: str) -> str:
    """Return a GPU's name without the "NVIDIA " that drivers put before it since about R465, and any MIG profile."""
    name = name.partition(" MIG ")[0]
    return name[len("NVIDIA ") :] if name.startswith("NVIDIA ") else name


def mig_profile(name: str) -> Optional[str]:
    """Return "3g.20gb" of "NVIDIA A100-SXM4-40GB MIG 3g.20gb"; None when the name has no profile."""
    return name.partition("MIG ")[2].strip() or None


def pci_id(number: int) -> str:
    """Return NVML's 32 bits (device, then vendor) as "10de:2335", the way lspci writes them."""
    return f"{number & 0xFFFF:04x}:{number >> 16 & 0xFFFF:04x}"


def cuda_version(number: int) -> str:
    """Return "12.2" of 12020 (nvml.h: NVML_CUDA_DRIVER_VERSION_MAJOR, _MINOR)."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _cuda_version(number: int, *, wsl2: bool) -> Union[str, Unavailable]:
    return (
        cuda_version(number) if number > 0 else failures.of_cuda_version("undecodable", wsl2=wsl2)
    )


def named(names: Mapping[str, str], number: int) -> str:
    """Return the name of one of NVML's numbers; the number itself when it is newer than the table."""
    return names.get(str(number), f"number {number}")
