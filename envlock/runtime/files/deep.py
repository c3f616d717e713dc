"""Every installed file of this process's own environment: `ENVLOCK_MODE=deep`, and `envlock verify --deep` in an image.

As `envlock verify --deep` outside, but for bytecode, which that compares in processes of its own. In an image, where
everything that the build wrote has one time, bytecode of the locked packages with another time is compared here, and
what the base had is accepted as the build has written it down.
"""

from __future__ import annotations

import marshal
import os
import sys
from typing import Any

from envlock.runtime.distributions import import_path
from envlock.runtime.files import as_built
from envlock.runtime.files.compiled import Compiled
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.survey import Survey, survey
from envlock.runtime.files.verification import check, report
from envlock.runtime.host import Host
from envlock.runtime.report import Finding

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
EPOCH = 315532800
"""The time of everything that a build of an image writes (envlock/containers/plan.py)."""

HEADER = 16


AS_BUILT = os.path.join(HOME, "base.json")
"""What no RECORD vouches for in the base of an image, as its build has found it."""


def verify_files(lock: dict[str, Any]) -> list[Finding]:
    """Return every file of this environment that is not as its RECORD says, or whose RECORD is not the locked one."""
    found = _surveyed()
    packages, own = (
        lock.get("identity", {}).get("packages", {}),
        lock.get("project", {}).get("name"),
    )
    locked = {
        name: (each["content"], each.get("built")) for name, each in packages.items() if name != own
    }
    faults, compiled = check(found, locked)
    if os.path.exists(
        os.path.join(HOME, "entrypoint.py")
    ):  # an image that `envlock build` has made
        faults = as_built.accept(found, faults, as_built.read(AS_BUILT))
        if sys.prefix != sys.base_prefix:
            faults += newer_bytecode(compiled, os.path.realpath(sys.prefix))
    return report(found, faults)


def write_down() -> None:
    """Write down what no RECORD vouches for, where `verify_files` looks for it: a build does it before it installs."""
    found = _surveyed()
    faults, _ = check(found, {})
    as_built.write(as_built.known(found, faults), AS_BUILT)


def _surveyed() -> Survey:
    folders = dict.fromkeys(os.path.realpath(folder) for folder in import_path(Host()))
    return survey(sys.prefix, [folder for folder in folders if os.path.isdir(folder)])


def newer_bytecode(compiled: list[Compiled], prefix: str, epoch: int = EPOCH) -> list[Fault]:
    """Return the bytecode below `prefix` that was written since the build, and is not its source's."""
    what = "was written after the build, and differs from the source beside it"
    return [
        Fault("bytecode", each.path, what)
        for each in compiled
        if each.path.startswith(prefix + "/")
        and _is_newer(each.path, epoch)
        and not _is_of_its_source(each)
    ]


def _is_newer(path: str, epoch: int) -> bool:
    try:
        return os.stat(path).st_mtime_ns != epoch * 10**9
    except OSError:
        return False


def _is_of_its_source(each: Compiled) -> bool:
    """Return whether this Python would not load the file, or find its source's code in it."""
    if each.tag != sys.implementation.cache_tag:
        return True
    try:
        with open(each.path, "rb") as held, open(each.source, "rb") as source:
            wanted = compile(
                source.read(), each.source, "exec", dont_inherit=True, optimize=each.optimization
            )
            return bool(marshal.loads(held.read()[HEADER:]) == wanted)  # noqa: S302 (Python itself would load it)
    except FileNotFoundError:
        return True  # without a source it is never imported
    except (OSError, SyntaxError, ValueError, EOFError, TypeError):
        return False
