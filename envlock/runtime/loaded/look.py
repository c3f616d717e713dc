"""The files that this process runs code from: those that are mapped, and those of its modules."""

from __future__ import annotations

import os
import sys

from envlock.runtime.host import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import AbstractSet, Dict, List

MAPS_LIMIT = 1 << 26
PERMISSIONS = slice(17, 34)
"""Where a line has them, after two addresses of 8 to 13 digits: https://man7.org/linux/man-pages/man5/proc_pid_maps.5.html"""
_DELETED = " (deleted)"


def list_mapped() -> List[str]:
    """Return the files that are mapped as code into this process, in the order of addresses.

    Raises:
        OSError: the kernel does not say it.
    """
    text = read_text("/proc/self/maps", MAPS_LIMIT) or ""
    files: Dict[str, None] = {}
    for line in text.split("\n"):
        if "x" in line[PERMISSIONS]:
            place = line.find("/", 40)
            if place > 0 and not line.endswith(_DELETED):
                files[line[place:]] = None
    return list(files)


def list_module_files(known: AbstractSet[str] = frozenset()) -> List[str]:
    """Return the files of the modules that this process has run, in the order of their import.

    Args:
        known: files that are left out.
    """
    usual = type(sys)
    files: Dict[str, None] = {}
    for module in list(sys.modules.values()):
        if type(module) is usual:
            file = module.__dict__.get("__file__")
        else:
            # Without `getattr`: it would load a lazy module.
            try:
                file = object.__getattribute__(module, "__dict__").get("__file__")
            except (AttributeError, TypeError):  # not every object in sys.modules is a module
                continue
        if isinstance(file, str) and file not in known and file.startswith(os.sep):
            files[file] = None
    return list(files)
