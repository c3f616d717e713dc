"""The processor: the flags that choose kernels, and the thread counts that choose summation orders."""

from __future__ import annotations

import os

from envlock.runtime.facts import Unavailable
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping, Optional, Union

    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host

_NAMES = {
    "vendor": ("vendor_id", "CPU implementer"),
    "family": ("cpu family", "CPU architecture"),
    "model": ("model", "CPU part"),
    "model_name": ("model name",),
}


def collect(host: Host) -> Union[Tree, Unavailable]:
    """Return identity, kernel-choosing flags, visible CPUs, quota (CPUs) and effective thread counts."""
    text = host.read("/proc/cpuinfo")
    if text is None:
        return Unavailable("/proc/cpuinfo does not exist; only Linux is supported", "not-linux")
    block = _first_block(text)
    present = (block.get("flags") or block.get("Features") or "").split()
    affinity = host.affinity()
    return {
        **{
            fact: next((block[key] for key in keys if key in block), None)
            for fact, keys in _NAMES.items()
        },
        "flags": sorted(set(present) & set(table("cpu_flags"))),
        "affinity_count": affinity,
        "quota": quota(host),
        # 0 or garbage means "default", and the default is the affinity mask (measured with TensorFlow 2.21)
        "intra_op_threads": _threads(host.environ, "TF_NUM_INTRAOP_THREADS", affinity),
        "inter_op_threads": _threads(host.environ, "TF_NUM_INTEROP_THREADS", affinity),
    }


def _first_block(text: str) -> Dict[str, str]:
    pairs = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _threads(environ: Mapping[str, str], name: str, default: Optional[int]) -> Optional[int]:
    value = environ.get(name, "").strip()
    plain = value.isascii() and value.isdigit() and len(value) < 9
    return int(value) if plain and int(value) > 0 else default


def quota(host: Host) -> Optional[float]:
    """Return the CPU time this process may use, in CPUs (1.5 = 150 ms in 100 ms), or None when it is not limited.

    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files
    """
    try:
        groups = (host.read("/proc/self/cgroup") or "").splitlines()
        for line in groups:
            number, controllers, path = line.split(":", 2)
            if number == "0":
                limit = _v2_quota(host, path)
            elif "cpu" in controllers.split(","):
                limit = _v1_quota(host, path)
            else:
                continue
            if limit is not None:
                return limit
    except (OSError, ValueError, ZeroDivisionError):
        return None
    return None


def _v2_quota(host: Host, path: str) -> Optional[float]:
    for folder in dict.fromkeys(
        (path, "")
    ):  # in a container the path may be the host's, and the root is ours
        text = host.read(os.path.normpath(f"/sys/fs/cgroup/{folder}/cpu.max"))
        if text is not None:
            limit, period = text.split()
            return None if limit == "max" else int(limit) / int(period)
    return None


def _v1_quota(host: Host, path: str) -> Optional[float]:
    for folder in dict.fromkeys((path, "")):
        limit = host.read(os.path.normpath(f"/sys/fs/cgroup/cpu/{folder}/cpu.cfs_quota_us"))
        period = host.read(os.path.normpath(f"/sys/fs/cgroup/cpu/{folder}/cpu.cfs_period_us"))
        if limit is not None and period is not None:
            return None if int(limit) < 0 else int(limit) / int(period)
    return None
