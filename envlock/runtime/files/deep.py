"""Every installed file of this process's own environment: `ENVLOCK_MODE=deep`, and `envlock verify --deep` in an image.

As `envlock verify --deep` outside, but for bytecode, which it compares in processes of its own.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from envlock.runtime.distributions import import_path
from envlock.runtime.files.survey import survey
from envlock.runtime.files.verification import check, report
from envlock.runtime.host import Host
from envlock.runtime.report import Finding


def verify_files(lock: dict[str, Any]) -> list[Finding]:
    """Return every file of this environment that is not as its RECORD says, or whose RECORD is not the locked one."""
    folders = dict.fromkeys(os.path.realpath(folder) for folder in import_path(Host()))
    found = survey(sys.prefix, [folder for folder in folders if os.path.isdir(folder)])
    packages, own = lock.get("identity", {}).get("packages", {}), lock.get("project", {}).get("name")
    locked = {name: (each["content"], each.get("built")) for name, each in packages.items() if name != own}
    faults, _ = check(found, locked)
    return report(found, faults)
