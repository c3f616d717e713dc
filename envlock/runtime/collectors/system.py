"""Operating system, C library and the evidence of being in a container."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Tuple

    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host

_CGROUP_MARKS = ("docker", "kubepods", "libpod", "containerd", "lxc", "crio")
_FILES = ("/.dockerenv", "/run/.containerenv", "/.singularity.d")
_VARIABLES = ("KUBERNETES_SERVICE_HOST", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")


def collect(host: Host) -> Tree:
    """Return OS release, kernel, machine, C library, and the evidence of being in a container."""
    kernel, release, machine = host.uname()
    os_release = _read_os_release(host)
    libc, libc_version = _find_libc(host)
    return {
        "os": os_release.get("ID"),
        "os_version": os_release.get("VERSION_ID"),
        "kernel": kernel,
        "kernel_release": release,
        "machine": machine,
        "libc": libc,
        "libc_version": libc_version,
        "container": _find_container_evidence(host),
    }


def _read_os_release(host: Host) -> Dict[str, str]:
    text = host.read("/etc/os-release") or host.read("/usr/lib/os-release") or ""
    values = {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        values[key] = value.strip().strip("\"'")
    return values


def _find_libc(host: Host) -> Tuple[Optional[str], Optional[str]]:
    """Return the name and version of the C library: glibc reports its own; musl is recognised by
    the file of its loader.
    """
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError, AttributeError):  # musl and macOS do not have this name
        name = version = ""
    if name:
        return name, version
    if any(file.startswith("ld-musl-") for file in host.listdir("/lib")):
        return "musl", None
    return None, None


def _find_container_evidence(host: Host) -> List[str]:
    """Return the names of the rules that matched, never the texts that they read: names and paths
    there can identify a site.
    """
    evidence = [path for path in _FILES if host.exists(path)]
    evidence += [name for name in _VARIABLES if name in host.environ]
    try:
        cgroup = host.read("/proc/self/cgroup") or ""
    except OSError:
        cgroup = ""
    evidence += ["cgroup:" + mark for mark in _CGROUP_MARKS if mark in cgroup]
    return sorted(evidence)
