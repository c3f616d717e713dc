"""What the dynamic loader knows from the machine: its built-in folders and the CPU's glibc-hwcaps subfolders."""

from __future__ import annotations

from envlock.runtime.host import read_bytes
from envlock.runtime.loader.elf import AARCH64, X86_64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

    from envlock.runtime.host import Host

# Flags of /proc/cpuinfo that each level needs: the x86-64 psABI, section 3.1.1; glibc's sysdeps/x86/get-isa-level.h.
_ISA_LEVELS = (
    ("x86-64-v2", {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}),
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
)
_INTERPRETERS = {X86_64: "/lib64/ld-linux-x86-64.so.2", AARCH64: "/lib/ld-linux-aarch64.so.1"}  # the psABIs
_MACHINES = {"x86_64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}

MULTIARCH = {X86_64: "x86_64-linux-gnu", AARCH64: "aarch64-linux-gnu"}
"""Debian's name of the machine, as in /usr/lib/x86_64-linux-gnu."""


def machine_of(host: Host) -> int:
    """Return e_machine of the libraries that this machine loads; x86-64 where it is neither of the two known."""
    return _MACHINES.get(host.uname()[2], X86_64)


def hwcap_names(host: Host, machine: int) -> Tuple[str, ...]:
    """Return the names of the glibc-hwcaps folders that this CPU can use, best first; aarch64 has none."""
    if machine != X86_64:
        return ()
    text = host.read("/proc/cpuinfo", 1 << 14) or ""
    flags = set(text.partition("\nflags")[2].partition("\n")[0].split())
    names: List[str] = []
    for name, needed in _ISA_LEVELS:
        if not needed <= flags:
            break
        names.insert(0, name)
    return tuple(names)


def default_folders(host: Host, machine: int) -> List[str]:
    """Return the folders that were compiled into this machine's ld.so, in its order; Debian's when there is no ld.so.

    Raises:
        OSError: ld.so cannot be read.
    """
    multiarch = MULTIARCH[machine]
    names = [f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib", "/usr/lib", "/lib64", "/usr/lib64"]
    data = read_bytes(host.system(_INTERPRETERS[machine]))
    if data is None:
        return names[:4]
    # `system_dirs` of elf/dl-load.c: the folders one after another, each with its slash and a NUL.
    places = {name: data.find(b"\0" + name.encode() + b"/\0") for name in names}
    return sorted((name for name in names if places[name] >= 0), key=places.__getitem__)
