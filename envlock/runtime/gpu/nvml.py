"""The questions put to NVML, and the only answers that may leave the child process.

`capture` takes the `pynvml` module as an argument, so tests hand in one that talks to a stand-in. A value in the
answer is JSON; a question without an answer is `{"unavailable": code}`, where the code is NVML's number or one of
the words of `failures.WORDS`. UUIDs are read only when CUDA_VISIBLE_DEVICES names devices by them, are compared
here, and never enter the answer.
"""

from __future__ import annotations

from envlock.runtime.gpu import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Tuple

    Answer = Dict[str, Any]

NOT_SUPPORTED = 3  # nvml.h: NVML_ERROR_NOT_SUPPORTED, "not supported on target device"
FUNCTION_NOT_FOUND = 13  # the driver's library is older than the question
GPU_IS_LOST = 15

DEVICE_FIELDS = (
    "architecture", "compute_capability", "compute_mode", "cores", "ecc", "memory_bytes", "mig", "name",
    "pci_device_id", "pci_subsystem_id", "persistence", "power_limit_milliwatts", "vbios", "virtualization",
)  # fmt: skip
"""Every fact of a device that may leave the child process."""

MIG_FIELDS = ("compute_slices", "gpu_slices", "memory_mib", "name", "sm_count")

_PLAIN = {
    "architecture": "nvmlDeviceGetArchitecture",
    "compute_mode": "nvmlDeviceGetComputeMode",
    "cores": "nvmlDeviceGetNumGpuCores",
    "name": "nvmlDeviceGetName",
    "persistence": "nvmlDeviceGetPersistenceMode",
    "power_limit_milliwatts": "nvmlDeviceGetPowerManagementLimit",
    "vbios": "nvmlDeviceGetVbiosVersion",
    "virtualization": "nvmlDeviceGetVirtualizationMode",
}


MIG_SLOTS = 64
"""More than any GPU has, which is 7 (https://docs.nvidia.com/datacenter/tesla/mig-user-guide/)."""


def ask(nvml: Any, function: str, *arguments: Any) -> Any:
    """Return what one NVML function answers, or `{"unavailable": code}`; never raises an NVMLError.

    Codes are told apart by `NVMLError.value`: the texts of binding and library differ. Bindings before 11.515 give
    bytes; both kinds decode strictly, so garbage in a name is a UnicodeDecodeError.
    """
    call = getattr(nvml, function, None)
    if call is None:
        return {"unavailable": "binding-too-old"}
    try:
        value = call(*arguments)
    except nvml.NVMLError as error:
        return {"unavailable": getattr(error, "value", 999)}
    except UnicodeDecodeError:
        return {"unavailable": "undecodable"}
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def failed(value: Any) -> bool:
    """Return whether a value of the answer is `{"unavailable": code}`."""
    return isinstance(value, dict) and "unavailable" in value


def capture(nvml: Any, environ: Mapping[str, str]) -> Answer:
    """Return driver versions and the devices CUDA will show, in its order; NVML must be initialised.

    Args:
        nvml: the `pynvml` module.
        environ: where CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER are looked up.
    """
    order = environ.get("CUDA_DEVICE_ORDER", "")
    answer: Answer = {
        "driver_version": ask(nvml, "nvmlSystemGetDriverVersion"),
        "nvml_version": ask(nvml, "nvmlSystemGetNVMLVersion"),
        # v1 of this call answers with a guess when libcuda is missing
        "cuda_driver_version": ask(nvml, "nvmlSystemGetCudaDriverVersion_v2"),
        "device_order": order if order in visible.ORDERS else visible.ORDERS[0],
    }
    selection = visible.parse(environ.get("CUDA_VISIBLE_DEVICES"))
    answer["devices"] = _devices(nvml, selection, answer)
    return answer


def _devices(nvml: Any, selection: visible.Selection, answer: Answer) -> Any:
    if selection.ids == [] or selection.ordinals == []:
        return []
    count = ask(nvml, "nvmlDeviceGetCount")
    if failed(count):
        return count
    handles = [ask(nvml, "nvmlDeviceGetHandleByIndex", index) for index in range(count)]
    instances: Dict[Tuple[int, int], Any] = {}
    by_name = selection.ids is not None
    gpus = [
        _gpu(nvml, index, handle, instances, by_name=by_name)
        for index, handle in enumerate(handles)
    ]
    try:
        chosen = visible.choose(
            selection, gpus, answer["device_order"], visible.driver_branch(answer["driver_version"])
        )
    except visible.Undecided as error:
        return {"unavailable": error.code}
    found: List[Any] = []
    for device in chosen:
        if isinstance(device, visible.Gpu):
            found.append(_device(nvml, handles[device.index], None))
        else:
            found.append(_device(nvml, handles[device.gpu], instances[device.gpu, device.index]))
    return found


def _gpu(
    nvml: Any, index: int, handle: Any, instances: Dict[Tuple[int, int], Any], *, by_name: bool
) -> visible.Gpu:
    if failed(handle):
        return visible.Gpu(index, None, None)
    pci = _pci(nvml, handle)
    kind = (
        None
        if failed(pci["pci_device_id"])
        else f"{pci['pci_device_id']}/{pci['pci_subsystem_id']}"
    )
    uuid = ask(nvml, "nvmlDeviceGetUUID", handle) if by_name else None
    mode = ask(nvml, "nvmlDeviceGetMigMode", handle)
    if failed(mode) or not mode[0]:
        return visible.Gpu(index, uuid if isinstance(uuid, str) else None, kind)
    mig = _instances(nvml, index, handle, instances, by_name=by_name)
    layout = [ask(nvml, "nvmlDeviceGetName", instances[index, one.index]) for one in mig]
    return visible.Gpu(index, uuid if isinstance(uuid, str) else None, f"{kind} {layout}", mig)


def _instances(
    nvml: Any, gpu: int, handle: Any, instances: Dict[Tuple[int, int], Any], *, by_name: bool
) -> List[visible.Instance]:
    """Return the MIG devices of one GPU and put their handles into `instances`."""
    slots = ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle)
    found: List[visible.Instance] = []
    for slot in range(0 if failed(slots) else min(slots, MIG_SLOTS)):
        instance = ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, slot)
        if failed(instance):
            continue  # a hole: slots are sparse
        instances[gpu, slot] = instance
        uuid = ask(nvml, "nvmlDeviceGetUUID", instance) if by_name else None
        ids = [ask(nvml, f"nvmlDeviceGet{kind}InstanceId", instance) for kind in ("Gpu", "Compute")]
        gpu_instance, compute_instance = (-1 - slot if failed(number) else number for number in ids)
        name = uuid if isinstance(uuid, str) else None
        found.append(visible.Instance(gpu, slot, name, gpu_instance, compute_instance))
    return found


def _device(nvml: Any, handle: Any, instance: Optional[Any]) -> Answer:
    """Return the allowed facts of one GPU; those of its MIG device too when `instance` is its handle."""
    if failed(handle):
        return dict(handle)
    facts: Answer = {field: ask(nvml, function, handle) for field, function in _PLAIN.items()}
    facts.update(_pci(nvml, handle))
    facts["compute_capability"] = _pair(ask(nvml, "nvmlDeviceGetCudaComputeCapability", handle))
    ecc = ask(nvml, "nvmlDeviceGetEccMode", handle)
    facts["ecc"] = ecc if failed(ecc) else ecc[0]  # [now, after the next reboot]
    facts["memory_bytes"] = _memory(nvml, handle if instance is None else instance)
    facts["mig"] = _mig_state(nvml, handle) if instance is None else _mig(nvml, instance)
    if instance is not None:
        facts["cores"] = None  # of the whole GPU; NVML has no such question for a MIG device
    if any(failed(value) and value["unavailable"] == GPU_IS_LOST for value in facts.values()):
        return {"unavailable": GPU_IS_LOST}
    return {field: facts[field] for field in DEVICE_FIELDS}


def _pci(nvml: Any, handle: Any) -> Answer:
    pci = ask(nvml, "nvmlDeviceGetPciInfo", handle)
    if failed(pci):
        return {"pci_device_id": pci, "pci_subsystem_id": pci}
    return {"pci_device_id": pci.pciDeviceId, "pci_subsystem_id": pci.pciSubSystemId}


def _pair(value: Any) -> Any:
    return value if failed(value) else list(value)


def _memory(nvml: Any, handle: Any) -> Any:
    memory = ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    return memory if failed(memory) else memory.total


def _mig_state(nvml: Any, handle: Any) -> Any:
    """Return null for a GPU that is not in MIG mode, otherwise why that cannot be told."""
    mode = ask(nvml, "nvmlDeviceGetMigMode", handle)
    if failed(mode) and mode["unavailable"] not in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
        return mode
    return None  # a card without MIG, or a driver from before it


def _mig(nvml: Any, instance: Any) -> Answer:
    shape = ask(nvml, "nvmlDeviceGetAttributes", instance)
    name = ask(nvml, "nvmlDeviceGetName", instance)
    if failed(shape):
        return {**dict.fromkeys(MIG_FIELDS, shape), "name": name}
    return {
        "compute_slices": shape.computeInstanceSliceCount,
        "gpu_slices": shape.gpuInstanceSliceCount,
        "memory_mib": shape.memorySizeMB,
        "name": name,
        "sm_count": shape.multiprocessorCount,
    }
