"""/proc/cpuinfo as Linux would write it for a processor, from what the instruction CPUID says. Pure.

Source of the bits: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, "CPUID"; of the names:
arch/x86/include/asm/cpufeatures.h of Linux.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

Registers = Mapping[str, Sequence[int]]
"""EAX, EBX, ECX and EDX by `LEAF.SUBLEAF`, the leaf as a hexadecimal number."""

EAX, EBX, ECX, EDX = range(4)
FLAGS = {
    ("1.0", EDX): {25: "sse", 26: "sse2"},
    ("1.0", ECX): {
        0: "pni",
        1: "pclmulqdq",
        9: "ssse3",
        12: "fma",
        19: "sse4_1",
        20: "sse4_2",
        22: "movbe",
        23: "popcnt",
        25: "aes",
        26: "xsave",
        28: "avx",
        29: "f16c",
    },
    ("7.0", EBX): {
        3: "bmi1",
        5: "avx2",
        8: "bmi2",
        16: "avx512f",
        17: "avx512dq",
        19: "adx",
        21: "avx512ifma",
        28: "avx512cd",
        30: "avx512bw",
        31: "avx512vl",
    },
    ("7.0", ECX): {
        1: "avx512vbmi",
        6: "avx512_vbmi2",
        8: "gfni",
        9: "vaes",
        11: "avx512_vnni",
        12: "avx512_bitalg",
        14: "avx512_vpopcntdq",
    },
    ("7.0", EDX): {
        8: "avx512_vp2intersect",
        22: "amx_bf16",
        23: "avx512_fp16",
        24: "amx_tile",
        25: "amx_int8",
    },
    ("7.1", EAX): {4: "avx_vnni", 5: "avx512_bf16", 21: "amx_fp16", 23: "avx_ifma"},
    ("80000001.0", ECX): {5: "abm", 6: "sse4a"},
}
"""Bits of registers by the names of flags, as far as kernels are chosen by them."""


def render_cpuinfo(registers: Registers, count: int) -> str:
    """Return the text of /proc/cpuinfo for this number of processors of one kind."""
    _, ebx, ecx, edx = registers["0.0"]
    vendor = struct.pack("<3I", ebx, edx, ecx).decode("ascii", "replace")
    signature = registers["1.0"][EAX]
    family, model = decode_signature(signature)
    flags = " ".join(list_flags(registers))
    text = (
        f"vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n"
        f"model name\t: {read_brand(registers)}\nstepping\t: {signature & 15}\nflags\t\t: {flags}\n"
    )
    return "\n".join([f"processor\t: {number}\n{text}" for number in range(count)])


def decode_signature(signature: int) -> tuple[int, int]:
    """Return family and model, whose upper parts count only for some families."""
    family, model = signature >> 8 & 15, signature >> 4 & 15
    if family in (6, 15):
        model += (signature >> 16 & 15) << 4
    if family == 15:
        family += signature >> 20 & 255
    return family, model


def list_flags(registers: Registers) -> list[str]:
    """Return the flags that the registers have, in the order of the table."""
    found = []
    for (leaf, register), names in FLAGS.items():
        value = registers[leaf][register]
        found += [name for bit, name in names.items() if value >> bit & 1]
    return found


def read_brand(registers: Registers) -> str:
    """Return the name of the processor."""
    data = b""
    for leaf in ("80000002.0", "80000003.0", "80000004.0"):
        data += struct.pack("<4I", *registers[leaf])
    return data.split(b"\0")[0].decode("ascii", "replace").strip()
