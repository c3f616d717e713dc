"""The processor: flags that select kernels, and thread counts that determine the order of sums."""

from __future__ import annotations

import os

from envlock.runtime.digits import parse_digits
from envlock.runtime.distributions import find_distributions
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host, note, read_bytes
from envlock.runtime.startup import hash_bytes
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Mapping, Optional, Union

    from envlock.runtime.facts import Tree

_NAMES = {
    "vendor": ("vendor_id", "CPU implementer"),
    "family": ("cpu family", "CPU architecture"),
    "model": ("model", "CPU part"),
    "model_name": ("model name",),
}
_SYSTEM = ("/usr/bin", "/bin")
_PROGRAM_LIMIT = 1 << 20  # bytes


def collect(host: Host) -> Union[Tree, Unavailable]:
    """Return identity, kernel-choosing flags, visible CPUs, quota (CPUs) and thread counts."""
    text = host.read("/proc/cpuinfo")
    if text is None:
        return Unavailable("/proc/cpuinfo does not exist; only Linux is supported", "not-linux")
    processor = _parse_first_processor(text)
    facts: Tree = {}
    for fact, keys in _NAMES.items():
        facts[fact] = next((processor[key] for key in keys if key in processor), None)
    flags = (processor.get("flags") or processor.get("Features") or "").split()
    facts["flags"] = sorted(set(flags) & set(table("cpu_flags")))
    affinity = host.affinity()
    facts["affinity_count"] = affinity
    facts["quota"] = read_quota(host)
    facts["intra_op_threads"] = _parse_threads(host.environ, "TF_NUM_INTRAOP_THREADS", affinity)
    facts["inter_op_threads"] = _parse_threads(host.environ, "TF_NUM_INTEROP_THREADS", affinity)
    if find_distributions(host).keys() & {"joblib", "loky"}:
        facts["joblib_count"] = _count_for_joblib(host, text, affinity)
    return facts


def _count_for_joblib(host: Host, text: str, affinity: Optional[int]) -> str:
    """Return how many processors and cores joblib counts: scikit-learn's loops have as many threads as cores, and
    pools as many workers as processors. A program that it asks for the cores, if that is not the system's, is
    held by its digest.

    Source: `cpu_count` in joblib/externals/loky/backend/context.py
    """
    processors = [each for each in text.split("\n\n") if each.startswith("processor")]
    limits = [len(processors)]
    if affinity is not None:
        limits.append(affinity)
    try:
        quota = _read_v2_quota(host, "") or _read_v1_quota(host, "")  # of this group, not its own
    except (OSError, ValueError, ZeroDivisionError):
        quota = None
    if quota is not None:
        limits.append(-int(-quota // 1))  # rounded upwards
    wanted = parse_digits(host.environ.get("LOKY_MAX_CPU_COUNT", ""), 8)
    if wanted is not None:
        limits.append(wanted)
    usable = max(min(limits), 1)
    cores: Union[int, str] = usable
    if usable == len(processors):
        program = _find_program(host, "lscpu")
        if program is not None and os.path.dirname(program) not in map(host.system, _SYSTEM):
            cores = hash_bytes(read_bytes(program, _PROGRAM_LIMIT) or b"")
        else:
            cores = _count_cores(processors, has_sockets=program is not None)
    return f"processors: {usable}, cores: {cores}"


def _find_program(host: Host, name: str) -> Optional[str]:
    """Return the file that a command of this name is."""
    for folder in host.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(host.system(folder) if folder.startswith("/") else folder, name)
        note(path)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None


def _count_cores(processors: List[str], *, has_sockets: bool) -> int:
    """Return how many cores the processors are: as `lscpu` counts them, or without it, as joblib does, which takes
    cores of two sockets for one; the number of processors where the kernel does not say.
    """
    names = ("physical id", "core id") if has_sockets else ("core id",)
    cores = set()
    for each in processors:
        lines = each.splitlines()
        cores.add(tuple(line for line in lines if line.startswith(names)))
    return len(cores) if cores != {()} else len(processors)


def _parse_first_processor(text: str) -> Dict[str, str]:
    """Return the first block of /proc/cpuinfo.

    The other blocks differ from it only in numbers that are not recorded.
    """
    processor = {}
    for line in text.partition("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        processor[key.strip()] = value.strip()
    return processor


def _parse_threads(environ: Mapping[str, str], name: str, default: Optional[int]) -> Optional[int]:
    """Return the number of threads that a variable sets, else the default."""
    # 0 or garbage means "default", and the default is the affinity mask (measured with TensorFlow
    # 2.21).
    return parse_digits(environ.get(name, "").strip(), 8) or default


def read_quota(host: Host) -> Optional[float]:
    """Return the CPU time this process may use, in CPUs (1.5 = 150 ms in 100 ms), or None.

    None means that it is not limited.

    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files
    """
    try:
        groups = (host.read("/proc/self/cgroup") or "").splitlines()
        for line in groups:
            number, controllers, path = line.split(":", 2)
            limit = None
            if number == "0":
                limit = _read_v2_quota(host, path)
            elif "cpu" in controllers.split(","):
                limit = _read_v1_quota(host, path)
            if limit is not None:
                return limit
    except (OSError, ValueError, ZeroDivisionError):
        return None
    return None


def _read_v2_quota(host: Host, path: str) -> Optional[float]:
    # In a container the path may be that of the host, while the mounted root is the container's own
    # group.
    for folder in dict.fromkeys((path, "")):
        text = host.read(os.path.normpath(f"/sys/fs/cgroup/{folder}/cpu.max"))
        if text is None:
            continue
        limit, period = text.split()
        if limit == "max":
            return None
        return int(limit) / int(period)
    return None


def _read_v1_quota(host: Host, path: str) -> Optional[float]:
    for folder in dict.fromkeys((path, "")):
        limit = host.read(os.path.normpath(f"/sys/fs/cgroup/cpu/{folder}/cpu.cfs_quota_us"))
        period = host.read(os.path.normpath(f"/sys/fs/cgroup/cpu/{folder}/cpu.cfs_period_us"))
        if limit is None or period is None:
            continue
        if int(limit) < 0:
            return None
        return int(limit) / int(period)
    return None
