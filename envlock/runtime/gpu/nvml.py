"""The calls to NVML, and the list of the only values that may leave the child process.

`capture` takes the `pynvml` module as an argument, so tests pass one that uses a stand-in. Every
value in the answer is JSON; a value that is missing is `{"unavailable": code}`, where the code is
NVML's number or one of the words of `failures.WORDS`. UUIDs are read only when CUDA_VISIBLE_DEVICES
names devices by them, are compared here, and never enter the answer.
"""

from __future__ import annotations

from envlock.runtime.gpu import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Protocol, Tuple, Type, Union

    Answer = Dict[str, Any]
    """A JSON object with the values that may leave the child process."""

    Instances = Dict[Tuple[int, int], object]
    """NVML's handle of each MIG device, by the indexes of its GPU and its slot."""

    class Binding(Protocol):
        """The module `pynvml`, whose functions are looked up by name."""

        NVMLError: Type[Exception]


NOT_SUPPORTED = 3  # nvml.h: NVML_ERROR_NOT_SUPPORTED, "not supported on target device"
FUNCTION_NOT_FOUND = 13  # the driver's library is older than this function
GPU_IS_LOST = 15  # NVML_ERROR_GPU_IS_LOST: it has fallen off the bus, or cannot be reached

DEVICE_FIELDS = (
    "architecture",
    "compute_capability",
    "compute_mode",
    "cores",
    "ecc",
    "memory_bytes",
    "mig",
    "name",
    "pci_device_id",
    "pci_subsystem_id",
    "persistence",
    "power_limit_milliwatts",
    "vbios",
    "virtualization",
)
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


def ask(nvml: Binding, function: str, *arguments: object) -> Any:
    """Return the result of one NVML function, or `{"unavailable": code}`; never raises an
    NVMLError.

    The code is `NVMLError.value`, because the texts differ between binding and library. Bindings
    before 11.515 return bytes; both kinds decode strictly, so garbage in a name is a
    UnicodeDecodeError.
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
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


def is_unavailable(value: object) -> bool:
    """Return whether a value of the answer is `{"unavailable": code}`."""
    return isinstance(value, dict) and "unavailable" in value


def capture(nvml: Binding, environ: Mapping[str, str]) -> Answer:
    """Return driver versions and the devices that CUDA will use, in its order.

    NVML must be initialised.

    Args:
        nvml: the `pynvml` module.
        environ: the variables, of which CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER are used.
    """
    order = environ.get("CUDA_DEVICE_ORDER", "")
    if order not in visible.ORDERS:
        order = visible.ORDERS[0]
    answer: Answer = {
        "driver_version": ask(nvml, "nvmlSystemGetDriverVersion"),
        "nvml_version": ask(nvml, "nvmlSystemGetNVMLVersion"),
        # version 1 of this call returns a guess if libcuda is missing
        "cuda_driver_version": ask(nvml, "nvmlSystemGetCudaDriverVersion_v2"),
        "device_order": order,
    }
    selection = visible.parse(environ.get("CUDA_VISIBLE_DEVICES"))
    answer["devices"] = _collect_devices(nvml, selection, answer)
    return answer


def _collect_devices(
    nvml: Binding, selection: visible.Selection, answer: Answer
) -> Union[List[Answer], Answer]:
    """Return the facts of the devices that CUDA will use, or `{"unavailable": code}`."""
    if selection.ids == [] or selection.ordinals == []:
        return []
    count = ask(nvml, "nvmlDeviceGetCount")
    if is_unavailable(count):
        return dict(count)
    handles = [ask(nvml, "nvmlDeviceGetHandleByIndex", index) for index in range(count)]
    instances: Instances = {}
    # UUIDs identify cards, so they are read only if a device is selected by one.
    by_name = selection.ids is not None
    gpus = []
    for index, handle in enumerate(handles):
        gpus.append(_describe_gpu(nvml, index, handle, instances, by_name=by_name))
    branch = visible.parse_driver_branch(answer["driver_version"])
    try:
        devices = visible.choose(selection, gpus, answer["device_order"], branch)
    except visible.Undecided as error:
        return {"unavailable": error.code}
    facts = []
    for device in devices:
        if isinstance(device, visible.Gpu):
            facts.append(_collect_device(nvml, handles[device.index], None))
        else:
            instance = instances[device.gpu, device.index]
            facts.append(_collect_device(nvml, handles[device.gpu], instance))
    return facts


def _describe_gpu(
    nvml: Binding, index: int, handle: object, instances: Instances, *, by_name: bool
) -> visible.Gpu:
    """Return the properties of one GPU that `visible.choose` needs.

    The handles of its MIG devices are added to `instances`.
    """
    if is_unavailable(handle):
        return visible.Gpu(index, None, None)
    pci = _collect_pci_ids(nvml, handle)
    kind = None
    if not is_unavailable(pci["pci_device_id"]):
        kind = f"{pci['pci_device_id']}/{pci['pci_subsystem_id']}"
    uuid = _get_uuid(nvml, handle) if by_name else None
    mode = ask(nvml, "nvmlDeviceGetMigMode", handle)
    if is_unavailable(mode) or not mode[0]:
        return visible.Gpu(index, uuid, kind)
    mig = _list_instances(nvml, index, handle, instances, by_name=by_name)
    layout = [ask(nvml, "nvmlDeviceGetName", instances[index, device.index]) for device in mig]
    return visible.Gpu(index, uuid, f"{kind} {layout}", mig)


def _get_uuid(nvml: Binding, handle: object) -> Optional[str]:
    uuid = ask(nvml, "nvmlDeviceGetUUID", handle)
    return uuid if isinstance(uuid, str) else None


def _list_instances(
    nvml: Binding, gpu: int, handle: object, instances: Instances, *, by_name: bool
) -> List[visible.Instance]:
    """Return the MIG devices of one GPU, and add their handles to `instances`."""
    slots = ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle)
    if is_unavailable(slots):
        return []
    devices: List[visible.Instance] = []
    for slot in range(min(slots, MIG_SLOTS)):
        instance = ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, slot)
        if is_unavailable(instance):
            continue  # an empty slot: the numbers have gaps
        instances[gpu, slot] = instance
        uuid = _get_uuid(nvml, instance) if by_name else None
        gpu_instance = ask(nvml, "nvmlDeviceGetGpuInstanceId", instance)
        compute_instance = ask(nvml, "nvmlDeviceGetComputeInstanceId", instance)
        # A number that no other device has stands for one that NVML does not return.
        if is_unavailable(gpu_instance):
            gpu_instance = -1 - slot
        if is_unavailable(compute_instance):
            compute_instance = -1 - slot
        devices.append(visible.Instance(gpu, slot, uuid, gpu_instance, compute_instance))
    return devices


def _collect_device(nvml: Binding, handle: object, instance: Optional[object]) -> Answer:
    """Return the allowed facts of one GPU, and of its MIG device if `instance` is its handle."""
    if isinstance(handle, dict) and is_unavailable(handle):
        return dict(handle)
    facts: Answer = {field: ask(nvml, function, handle) for field, function in _PLAIN.items()}
    facts.update(_collect_pci_ids(nvml, handle))
    capability = ask(nvml, "nvmlDeviceGetCudaComputeCapability", handle)
    facts["compute_capability"] = capability if is_unavailable(capability) else list(capability)
    ecc = ask(nvml, "nvmlDeviceGetEccMode", handle)
    facts["ecc"] = ecc if is_unavailable(ecc) else ecc[0]  # [now, after the next reboot]
    memory = ask(nvml, "nvmlDeviceGetMemoryInfo", handle if instance is None else instance)
    facts["memory_bytes"] = memory if is_unavailable(memory) else memory.total
    if instance is None:
        facts["mig"] = _explain_mig_mode(nvml, handle)
    else:
        facts["mig"] = _collect_mig(nvml, instance)
        facts["cores"] = None  # that of the whole GPU; NVML has no such function for a MIG device
    if any(
        is_unavailable(value) and value["unavailable"] == GPU_IS_LOST for value in facts.values()
    ):
        return {"unavailable": GPU_IS_LOST}
    return {field: facts[field] for field in DEVICE_FIELDS}


def _collect_pci_ids(nvml: Binding, handle: object) -> Answer:
    pci = ask(nvml, "nvmlDeviceGetPciInfo", handle)
    if is_unavailable(pci):
        return {"pci_device_id": pci, "pci_subsystem_id": pci}
    return {"pci_device_id": pci.pciDeviceId, "pci_subsystem_id": pci.pciSubSystemId}


def _explain_mig_mode(nvml: Binding, handle: object) -> Optional[Answer]:
    """Return None for a GPU outside MIG mode, `{"unavailable": code}` if NVML does not say."""
    mode = ask(nvml, "nvmlDeviceGetMigMode", handle)
    if is_unavailable(mode) and mode["unavailable"] not in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
        return dict(mode)
    return None  # a card without MIG, or a driver older than MIG


def _collect_mig(nvml: Binding, instance: object) -> Answer:
    shape = ask(nvml, "nvmlDeviceGetAttributes", instance)
    name = ask(nvml, "nvmlDeviceGetName", instance)
    if is_unavailable(shape):
        return {**dict.fromkeys(MIG_FIELDS, shape), "name": name}
    return {
        "compute_slices": shape.computeInstanceSliceCount,
        "gpu_slices": shape.gpuInstanceSliceCount,
        "memory_mib": shape.memorySizeMB,
        "name": name,
        "sm_count": shape.multiprocessorCount,
    }
