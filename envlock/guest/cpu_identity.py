"""Ask the processor, or what emulates it, what it is: a program that stands alone.

It answers with the registers EAX, EBX, ECX and EDX of the instruction CPUID, by leaf and subleaf: /proc/cpuinfo would
show the processor of the machine, also inside of an emulator.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import sys

# void f(leaf, subleaf, out): push rbx; mov eax,edi; mov ecx,esi; mov r8,rdx; cpuid;
# mov [r8],eax; mov [r8+4],ebx; mov [r8+8],ecx; mov [r8+12],edx; pop rbx; ret
CODE = bytes.fromhex("5389f889f14989d00fa241890041895804418948084189500c5bc3")
LEAVES = [
    *((0x0, 0), (0x1, 0), (0x7, 0), (0x7, 1)),
    *((0x80000001, 0), (0x80000002, 0), (0x80000003, 0), (0x80000004, 0)),
]


def main() -> None:
    """Answer with one line; `mark` is how it begins."""
    asked = json.loads(sys.argv[1])
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(CODE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    call = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(address)
    registers = (ctypes.c_uint32 * 4)()
    found = {}
    for leaf, subleaf in LEAVES:
        call(leaf, subleaf, ctypes.addressof(registers))
        found["{:x}.{}".format(leaf, subleaf)] = list(registers)
    os.write(1, (asked["mark"] + json.dumps({"registers": found}) + "\n").encode("ascii"))
    os._exit(0)  # the page is still in use


if __name__ == "__main__":
    main()
