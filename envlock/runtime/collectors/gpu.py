"""Driver and GPU facts: what CUDA will see, and nothing that identifies a card."""

from __future__ import annotations

from envlock.runtime.gpu import hostfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Optional, Union

    from envlock.runtime.facts import Tree, Unavailable
    from envlock.runtime.host import Host


def collect(host: Host) -> Optional[Union[Tree, Unavailable]]:
    """Return the facts of the driver and of the GPUs that CUDA will show, in CUDA's order.

    None means that nothing hints at an NVIDIA GPU; NVML is not touched then. Where NVML fails as a whole, every fact
    that only it knows is `Unavailable` with the same reason, and what the kernel tells is still there.
    """
    if not hostfs.hints_at_gpu(host):
        return None
    from envlock.runtime.gpu import probe

    answer = probe.ask(host, probe.limit_for(hostfs.gpu_count(host)))
    if _is_wsl_without_nvidia(answer, host):
        return None
    surroundings = hostfs.surroundings(host)
    facts: Tree = {"kernel_module": hostfs.kernel_module(host), "surroundings": list(surroundings)}
    if answer["status"] == "ok":
        from envlock.runtime.gpu import devices

        facts.update(devices.tree(answer, wsl2="wsl2" in surroundings))
    else:
        facts.update(_nothing(answer, host, facts["kernel_module"]))
    return facts


def _is_wsl_without_nvidia(answer: Mapping[str, Any], host: Host) -> bool:
    """Return whether /dev/dxg belongs to a GPU of another maker: WSL2 brings NVML with an NVIDIA driver."""
    return (
        answer["status"] == "init-failed" and answer["code"] == 12 and not hostfs.driver_sign(host)
    )


def _nothing(answer: Mapping[str, Any], host: Host, module: Optional[Mapping[str, Any]]) -> Tree:
    from envlock.runtime.gpu import failures

    version = module["version"] if module else None
    reason = failures.of_start(answer, version, hostfs.control_node_errno(host))
    facts: Tree = dict.fromkeys(
        ("driver_version", "nvml", "cuda_driver_version", "visible", "devices"), reason
    )
    facts["binding"] = dict(answer["binding"]) if "binding" in answer else None
    return facts
