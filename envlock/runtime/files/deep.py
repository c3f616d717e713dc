"""Check every file of this process's own environment: `ENVLOCK_MODE=deep`, and verification in an
image.

This is what `envlock verify --deep` does from outside, except for the bytecode, which that command
compares in processes of its own. In an image all files that the build wrote have the same time;
bytecode of locked packages with another time is compared here, and files of the base are accepted
if the build has listed them.
"""

from __future__ import annotations

import marshal
import os
import sys

from envlock.runtime.distributions import get_import_path
from envlock.runtime.files import image_baseline
from envlock.runtime.files.compiled_file import CompiledFile
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.survey import Survey, survey
from envlock.runtime.files.verify_files import check, report
from envlock.runtime.host import Host
from envlock.runtime.report import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from envlock.runtime.facts import Tree

    Lock = Mapping[str, Tree]
    """A lockfile's sections by name."""


HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
EPOCH = 315532800
"""The time of every file that the build of an image writes (envlock/image/plan.py)."""

HEADER = 16
"""Bytes of a .pyc file before the code (PEP 552)."""


AS_BUILT = os.path.join(HOME, "base.json")
"""The list of those files of the base that no RECORD covers; the build of an image writes it."""


def verify_files(lock: Lock) -> tuple[list[Finding], int]:
    """Return every file that does not match its RECORD, or whose RECORD is not the locked one; and
    how many files were compared.
    """
    installed = _survey_environment()
    own = lock.get("project", {}).get("name")
    locked, corrections, overwritten = {}, {}, {}
    for name, identity in lock.get("identity", {}).get("packages", {}).items():
        if name != own:
            locked[name] = (identity["content"], identity.get("built"))
            corrections[name] = identity.get("wrong_record", {}).get("files", {})
            overwritten[name] = identity.get("overwritten", {})
    faults, compiled = check(installed, locked, corrections=corrections, overwritten=overwritten)
    # This exists only in an image that `envlock build` has made.
    if os.path.exists(os.path.join(HOME, "entrypoint.py")):
        faults = image_baseline.accept(installed, faults, image_baseline.read(AS_BUILT))
        if sys.prefix != sys.base_prefix:
            faults += find_newer_bytecode(compiled, os.path.realpath(sys.prefix))
    return report(installed, faults), len(installed.claims)


def write_down() -> None:
    """Write the list of files that no RECORD covers to the place where `verify_files` reads it.

    A build does this before it installs packages.
    """
    installed = _survey_environment()
    faults, _ = check(installed, {})
    image_baseline.write(image_baseline.collect_baseline(installed, faults), AS_BUILT)


def _survey_environment() -> Survey:
    folders: list[str] = []
    for folder in get_import_path(Host()):
        real = os.path.realpath(folder)
        if os.path.isdir(real) and real not in folders:
            folders.append(real)
    return survey(sys.prefix, folders)


def find_newer_bytecode(compiled: list[CompiledFile], prefix: str) -> list[Fault]:
    """Return the bytecode below `prefix` that is newer than the build and not compiled from its
    source.
    """
    what = "was written after the build, and differs from the source beside it"
    faults = []
    for file in compiled:
        if not file.path.startswith(prefix + "/"):
            continue
        if _is_newer(file.path) and not _is_of_its_source(file):
            faults.append(Fault("bytecode", file.path, what))
    return faults


def _is_newer(path: str) -> bool:
    try:
        return os.stat(path).st_mtime_ns != EPOCH * 10**9
    except OSError:
        return False


def _is_of_its_source(file: CompiledFile) -> bool:
    """Return whether this Python would not load the file, or whether the file has the code of its
    source.
    """
    if file.tag != sys.implementation.cache_tag:
        return True
    try:
        with open(file.path, "rb") as bytecode, open(file.source, "rb") as source:
            expected = compile(
                source.read(), file.source, "exec", dont_inherit=True, optimize=file.optimization
            )
            # Python itself loads it in the same way.
            return bool(marshal.loads(bytecode.read()[HEADER:]) == expected)  # noqa: S302
    except FileNotFoundError:
        return True  # without a source it is never imported
    except (OSError, SyntaxError, ValueError, EOFError, TypeError):
        return False
