"""Driver and GPU facts: the GPUs that CUDA will use, and nothing that identifies a card."""

from __future__ import annotations

from envlock.runtime.gpu import hostfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Union

    from envlock.runtime.facts import Tree, Unavailable
    from envlock.runtime.gpu.nvml import Answer
    from envlock.runtime.host import Host


LIBRARY_NOT_FOUND = 12
"""NVML_ERROR_LIBRARY_NOT_FOUND of nvml.h."""


def collect(host: Host) -> Optional[Union[Tree, Unavailable]]:
    """Return the facts of the driver and of the GPUs that CUDA will show, in CUDA's order.

    None means that there is no sign of an NVIDIA GPU; NVML is not loaded then. If NVML fails as a
    whole, every fact that only NVML provides is `Unavailable` for the same reason, and the facts
    that the kernel exposes are still recorded.
    """
    if not hostfs.has_gpu_hint(host):
        return None
    # ctypes and the child process are needed only if there may be a GPU.
    from envlock.runtime.gpu import devices, nvml_failures, probe

    answer = probe.ask(host, probe.compute_limit(hostfs.count_gpus(host)))
    if _is_wsl_without_nvidia(answer, host):
        return None
    surroundings = hostfs.detect_surroundings(host)
    facts: Tree = {
        "kernel_module": hostfs.read_kernel_module(host),
        "surroundings": list(surroundings),
    }
    if answer["status"] == "ok":
        facts.update(devices.convert_answer(answer, wsl2="wsl2" in surroundings))
    else:
        module = facts["kernel_module"]
        reason = nvml_failures.explain_start_failure(
            answer, module["version"] if module else None, hostfs.get_control_node_errno(host)
        )
        facts.update(_list_missing_facts(answer, reason))
    return facts


def _is_wsl_without_nvidia(answer: Answer, host: Host) -> bool:
    """Return whether /dev/dxg is the GPU of another manufacturer: on WSL2, NVML comes with the
    NVIDIA driver.
    """
    return (
        answer["status"] == "init-failed"
        and answer["code"] == LIBRARY_NOT_FOUND
        and not hostfs.has_driver_sign(host)
    )


def _list_missing_facts(answer: Answer, reason: Unavailable) -> Tree:
    """Return the facts that only NVML has, all with one reason, and what is known of its binding."""
    facts: Tree = dict.fromkeys(
        ("driver_version", "nvml", "cuda_driver_version", "visible", "devices"), reason
    )
    facts["binding"] = dict(answer["binding"]) if "binding" in answer else None
    return facts
