"""In-process stand-in for the library object that pynvml keeps in `pynvml.nvmlLib`, driven by a GPU profile.

All of pynvml's own code runs: struct layouts, string decoding, error classes. A function that the profile's driver
generation does not export is missing here too.
"""

from __future__ import annotations

import ctypes
import importlib
import json
from pathlib import Path
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

pynvml: Any = importlib.import_module("pynvml")
"""The binding; it has no types, so it is imported here once and is Any."""

HERE = Path(__file__).parent
PROFILES = HERE.parent / "profiles"

SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 0, 1, 2, 3, 6
INSUFFICIENT_SIZE, VERSION_MISMATCH = 7, 25
MEMORY_V2 = 0x02000028  # nvmlMemory_v2: version 2, 40 bytes
MIB = 1024 * 1024

TEXTS = {"Name": "name", "UUID": "uuid", "VbiosVersion": "vbios"}
NUMBERS = {
    "Architecture": "architecture",
    "ComputeInstanceId": "compute_instance",
    "ComputeMode": "compute_mode",
    "CudaComputeCapability": "compute_capability",
    "EccMode": "ecc",
    "GpuInstanceId": "gpu_instance",
    "MaxMigDeviceCount": "mig_slots",
    "MigMode": "mig",
    "NumGpuCores": "cores",
    "PersistenceMode": "persistence",
    "PowerManagementLimit": "power_limit_milliwatts",
    "VirtualizationMode": "virtualization",
}
"""What follows nvmlDeviceGet -> key of the profile; an absent key is "not supported"."""

Profile = dict[str, Any]


def profile(name: str) -> Profile:
    """Return a committed profile."""
    loaded: Profile = json.loads((PROFILES / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def profile_names() -> list[str]:
    """Return the names of all committed profiles, sorted."""
    return sorted(path.stem for path in PROFILES.glob("*.json"))


def symbols(generation: str) -> set[str]:
    """Return the names that a driver generation exports."""
    lines = (HERE / "symbols" / f"{generation}.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def install(binding: Any, library: Any) -> None:
    """Put a library object under a pynvml module and forget what it knew of another one."""
    binding._nvmlGetFunctionPointer_cache.clear()
    binding.nvmlLib = library
    binding._nvmlLib_refcount = 0


def target(argument: Any) -> Any:
    """Return what `byref()` points to; arrays as they are."""
    return getattr(argument, "_obj", argument)


def number(argument: Any) -> int:
    """Return a C or Python integer as an int."""
    return int(getattr(argument, "value", argument))


class FakeNvml:
    """The library. `calls` lists the functions called, in order; `errors` adds to those of the profile."""

    def __init__(self, facts: Profile, errors: dict[str, int] | None = None) -> None:
        self.facts = facts
        self.names = symbols(facts["symbols"])
        self.errors = {**facts.get("errors", {}), **(errors or {})}
        self.calls: list[str] = []
        self.inits = 0
        self.objects: dict[str, Profile] = {}
        for index, device in enumerate(facts["devices"]):
            self.objects[f"d{index}"] = device
            for slot, instance in enumerate(device.get("mig_devices", ())):
                if instance is not None:  # null is a hole
                    self.objects[f"d{index}m{slot}"] = {**instance, "errors": {}}
        self.places = {name: 0x1000 + 0x100 * index for index, name in enumerate(self.objects)}
        self.names_at = {place: name for name, place in self.places.items()}

    def __getattr__(self, symbol: str) -> Callable[..., int]:
        if symbol.startswith("_") or symbol not in self.names:
            raise AttributeError(symbol)

        def function(*arguments: Any) -> int:
            self.calls.append(symbol)
            return self._answer(symbol, arguments)

        return function

    def _answer(self, symbol: str, arguments: tuple[Any, ...]) -> int:
        if symbol in self.errors:
            return int(self.errors[symbol])
        if not self.inits and symbol not in ("nvmlInitWithFlags", "nvmlSystemGetNVMLVersion", "nvmlShutdown"):
            return UNINITIALIZED
        about_device = symbol.startswith("nvmlDeviceGet") and not symbol.startswith(
            ("nvmlDeviceGetCount", "nvmlDeviceGetHandle")
        )
        if about_device:
            device = self._device(arguments[0])
            if device is None:
                return INVALID_ARGUMENT
            if symbol in device.get("errors", {}):
                return int(device["errors"][symbol])
            if symbol.removeprefix("nvmlDeviceGet") in TEXTS:
                return self._text(device.get(TEXTS[symbol.removeprefix("nvmlDeviceGet")]), *arguments[1:])
            if symbol.removeprefix("nvmlDeviceGet") in NUMBERS:
                return self._numbers(device.get(NUMBERS[symbol.removeprefix("nvmlDeviceGet")]), *arguments[1:])
        function = getattr(type(self), f"do_{symbol}", None)
        return NOT_SUPPORTED if function is None else int(function(self, *arguments) or SUCCESS)

    def _named(self, handle: Any) -> str | None:
        address = ctypes.cast(handle, ctypes.c_void_p).value
        return self.names_at.get(address or 0)

    def _device(self, handle: Any) -> Profile | None:
        name = self._named(handle)
        return None if name is None else self.objects[name]

    def _handle(self, out: Any, name: str) -> None:
        address = ctypes.c_void_p(self.places[name])
        ctypes.memmove(ctypes.addressof(target(out)), ctypes.addressof(address), ctypes.sizeof(address))

    @staticmethod
    def _text(text: str | None, buffer: Any, size: Any) -> int:
        if text is None:
            return NOT_SUPPORTED
        data = text.encode("utf-8", "surrogateescape") + b"\0"
        if len(data) > number(size):
            return INSUFFICIENT_SIZE
        ctypes.memmove(buffer, data, len(data))
        return SUCCESS

    @staticmethod
    def _numbers(values: Any, *outs: Any) -> int:
        if values is None:
            return NOT_SUPPORTED
        for out, value in zip(outs, values if isinstance(values, list) else [values], strict=False):
            target(out).value = value
        return SUCCESS

    def do_nvmlInitWithFlags(self, _flags: Any) -> None:
        self.inits += 1

    def do_nvmlShutdown(self) -> None:
        self.inits = max(0, self.inits - 1)

    def do_nvmlSystemGetDriverVersion(self, buffer: Any, size: Any) -> int:
        return self._text(self.facts["system"]["driver_version"], buffer, size)

    def do_nvmlSystemGetNVMLVersion(self, buffer: Any, size: Any) -> int:
        return self._text(self.facts["system"]["nvml_version"], buffer, size)

    def do_nvmlSystemGetCudaDriverVersion_v2(self, out: Any) -> None:
        target(out).value = self.facts["system"]["cuda_driver_version"]

    def do_nvmlDeviceGetCount_v2(self, out: Any) -> None:
        target(out).value = len(self.facts["devices"])

    def do_nvmlDeviceGetHandleByIndex_v2(self, index: Any, out: Any) -> int:
        name = f"d{number(index)}"
        if name not in self.objects:
            return INVALID_ARGUMENT
        code = self.objects[name].get("errors", {}).get("nvmlDeviceGetHandleByIndex_v2")
        if code is None:
            self._handle(out, name)
        return int(code or SUCCESS)

    def do_nvmlDeviceGetMigDeviceHandleByIndex(self, parent: Any, slot: Any, out: Any) -> int:
        name = f"{self._named(parent)}m{number(slot)}"
        if name not in self.objects:
            return NOT_FOUND
        self._handle(out, name)
        return SUCCESS

    def do_nvmlDeviceGetPciInfo_v3(self, handle: Any, out: Any) -> int:
        pci = (self._device(handle) or {}).get("pci")
        if pci is None:
            return NOT_SUPPORTED
        target(out).pciDeviceId = int(pci["device_id"], 16)
        target(out).pciSubSystemId = int(pci["subsystem_id"], 16)
        return SUCCESS

    def do_nvmlDeviceGetMemoryInfo(self, handle: Any, out: Any) -> int:
        total = (self._device(handle) or {}).get("memory_mib")
        if total is None:
            return NOT_SUPPORTED
        target(out).total = target(out).free = total * MIB
        return SUCCESS

    def do_nvmlDeviceGetMemoryInfo_v2(self, handle: Any, out: Any) -> int:
        if target(out).version != MEMORY_V2:
            return VERSION_MISMATCH
        target(out).reserved = (self._device(handle) or {}).get("reserved_mib", 0) * MIB
        return self.do_nvmlDeviceGetMemoryInfo(handle, out)

    def do_nvmlDeviceGetAttributes_v2(self, handle: Any, out: Any) -> int:
        attributes = (self._device(handle) or {}).get("attributes")
        if attributes is None:
            return NOT_SUPPORTED
        for field, value in attributes.items():
            setattr(target(out), field, value)
        return SUCCESS
