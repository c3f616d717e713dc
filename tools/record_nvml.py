"""Turn the GPUs of this machine into a redacted profile for the tests.

Run it from a checkout on a machine with an NVIDIA driver, with a python3 (3.10 or newer) that has nvidia-ml-py:

    python3 tools/record_nvml.py --shape whole > tests/profiles/h100-80gb-hbm3__590__whole.json

It asks only for what the profile's schema has, so no serial number, PDI, bus id or board id is read at all; UUIDs are
replaced by reserved ones before anything is written. Afterwards it replays the profile and compares what envlock
makes of the machine and of the profile; it fails when they differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.append(str(CHECKOUT))

from envlock.runtime.gpu import hostfs, nvml  # noqa: E402
from envlock.runtime.host import Host  # noqa: E402

MIB = 1024 * 1024
NOT_SUPPORTED = 3

QUESTIONS = {
    "name": ("nvmlDeviceGetName", "nvmlDeviceGetName"),
    "pci": ("nvmlDeviceGetPciInfo", "nvmlDeviceGetPciInfo_v3"),
    "compute_capability": (
        "nvmlDeviceGetCudaComputeCapability",
        "nvmlDeviceGetCudaComputeCapability",
    ),
    "architecture": ("nvmlDeviceGetArchitecture", "nvmlDeviceGetArchitecture"),
    "cores": ("nvmlDeviceGetNumGpuCores", "nvmlDeviceGetNumGpuCores"),
    "memory_mib": ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo"),
    "ecc": ("nvmlDeviceGetEccMode", "nvmlDeviceGetEccMode"),
    "mig": ("nvmlDeviceGetMigMode", "nvmlDeviceGetMigMode"),
    "mig_slots": ("nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMaxMigDeviceCount"),
    "virtualization": ("nvmlDeviceGetVirtualizationMode", "nvmlDeviceGetVirtualizationMode"),
    "vbios": ("nvmlDeviceGetVbiosVersion", "nvmlDeviceGetVbiosVersion"),
    "persistence": ("nvmlDeviceGetPersistenceMode", "nvmlDeviceGetPersistenceMode"),
    "compute_mode": ("nvmlDeviceGetComputeMode", "nvmlDeviceGetComputeMode"),
    "power_limit_milliwatts": (
        "nvmlDeviceGetPowerManagementLimit",
        "nvmlDeviceGetPowerManagementLimit",
    ),
}
"""Key of the profile -> (function of pynvml, symbol of the library that it calls)."""

ATTRIBUTES = (
    "multiprocessorCount",
    "gpuInstanceSliceCount",
    "computeInstanceSliceCount",
    "memorySizeMB",
)
Profile = dict[str, Any]


def record(binding: Any, kernel: str | None = None, generation: str = "595") -> Profile:
    """Return the profile of the machine that an initialised `pynvml` module describes.

    Args:
        binding: the `pynvml` module.
        kernel: flavour of the kernel module, `open` or `proprietary`; None if it is not loaded.
        generation: which file of tests/fakes/symbols has the names of this driver.

    Raises:
        SystemExit: the driver does not report its own version or the number of GPUs.
    """
    errors: dict[str, int] = {}
    driver = nvml.ask(binding, "nvmlSystemGetDriverVersion")
    count = nvml.ask(binding, "nvmlDeviceGetCount")
    if nvml.is_unavailable(driver) or nvml.is_unavailable(count):
        sys.exit(f"NVML does not answer: {driver}, {count}")
    cuda = nvml.ask(binding, "nvmlSystemGetCudaDriverVersion_v2")
    if nvml.is_unavailable(cuda):
        errors["nvmlSystemGetCudaDriverVersion_v2"] = cuda["unavailable"]
    source = "recorded by tools/record_nvml.py"
    profile: Profile = {
        "schema": 1,
        "provenance": {"kind": "recorded", "source": source, "not_recorded": []},
        "symbols": generation,
        "system": {
            "driver_version": driver,
            "nvml_version": nvml.ask(binding, "nvmlSystemGetNVMLVersion"),
            "cuda_driver_version": None if nvml.is_unavailable(cuda) else cuda,
        },
        "devices": [_device(binding, index) for index in range(count)],
        "expect": {},
        "kernel": kernel,
    }
    if errors:
        profile["errors"] = errors
    return profile


def _device(binding: Any, index: int) -> Profile:
    uuid = f"GPU-00000000-0000-4000-8000-{index:012x}"
    handle = nvml.ask(binding, "nvmlDeviceGetHandleByIndex", index)
    if nvml.is_unavailable(handle):
        errors = {"nvmlDeviceGetHandleByIndex_v2": handle["unavailable"]}
        unknown = {"device_id": "0x00000000", "subsystem_id": "0x00000000"}
        return {"uuid": uuid, "name": "", "pci": unknown, "errors": errors}
    device: Profile = {"uuid": uuid}
    errors = {}
    for key, (function, symbol) in QUESTIONS.items():
        value = nvml.ask(binding, function, handle)
        if not nvml.is_unavailable(value):
            device[key] = _plain(key, value)
        elif value["unavailable"] != NOT_SUPPORTED:  # an absent key is "not supported"
            errors[symbol] = value["unavailable"]
    if device.get("mig", [0])[0]:
        device["mig_devices"] = _mig_devices(binding, index, handle, device.get("mig_slots", 0))
    if errors:
        device["errors"] = errors
    return device


def _plain(key: str, value: Any) -> Any:
    if key == "pci":
        return {
            "device_id": f"0x{value.pciDeviceId:08X}",
            "subsystem_id": f"0x{value.pciSubSystemId:08X}",
        }
    if key == "memory_mib":
        return value.total // MIB
    return list(value) if isinstance(value, (list, tuple)) else value


def _mig_devices(binding: Any, index: int, handle: Any, slots: int) -> list[Profile | None]:
    found: list[Profile | None] = []
    for slot in range(slots):
        instance = nvml.ask(binding, "nvmlDeviceGetMigDeviceHandleByIndex", handle, slot)
        if nvml.is_unavailable(instance):
            found.append(None)
            continue
        shape = nvml.ask(binding, "nvmlDeviceGetAttributes", instance)
        memory = nvml.ask(binding, "nvmlDeviceGetMemoryInfo", instance)
        found.append({
            "uuid": f"MIG-00000000-0000-4000-8000-{(index + 1) * 256 + slot:012x}",
            "name": nvml.ask(binding, "nvmlDeviceGetName", instance),
            "gpu_instance": nvml.ask(binding, "nvmlDeviceGetGpuInstanceId", instance),
            "compute_instance": nvml.ask(binding, "nvmlDeviceGetComputeInstanceId", instance),
            "memory_mib": None if nvml.is_unavailable(memory) else memory.total // MIB,
            "attributes": None if nvml.is_unavailable(shape) else {field: getattr(shape, field) for field in ATTRIBUTES},
        })  # fmt: skip
    while found and found[-1] is None:
        found.pop()
    return found


def replayed(binding: Any, profile: Profile, environ: dict[str, str]) -> Any:
    """Return what envlock captures from the profile; `binding` has no library of its own afterwards."""
    from tests.fakes.fake_nvml import FakeNvml, install

    install(binding, FakeNvml(profile))
    try:
        binding.nvmlInit()
        return nvml.capture(binding, environ)
    finally:
        install(binding, None)


def main() -> None:
    """Write the profile to standard output; say what to do next on standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--shape", default="whole", help="what is special: whole, mig, eight, wsl2 (default: whole)"
    )
    parser.add_argument(
        "--symbols", default="595", help="file of tests/fakes/symbols with this driver's names"
    )
    arguments = parser.parse_args()

    import pynvml  # type: ignore[import-untyped,unused-ignore]

    pynvml.nvmlInit()
    module = hostfs.read_kernel_module(Host())
    profile = record(pynvml, module["flavour"] if module else None, arguments.symbols)
    real = nvml.capture(pynvml, {})
    pynvml.nvmlShutdown()
    json.dump(profile, sys.stdout, indent=2)
    print()
    first = profile["devices"][0]["name"] if profile["devices"] else "none"
    name = "-".join(first.lower().replace("nvidia ", "").split())
    branch = profile["system"]["driver_version"].split(".")[0]
    print(f"suggested name: {name}__{branch}__{arguments.shape}.json", file=sys.stderr)
    print("fill in `expect` by hand: dotted paths of facts and their values", file=sys.stderr)
    if replayed(pynvml, profile, {}) != real:
        sys.exit(
            "the profile replays to something else than this machine answered: do not commit it"
        )


if __name__ == "__main__":
    main()
