"""The interpreter."""

from __future__ import annotations

import _imp
import os
import sys

from envlock.runtime.startup import collect_startup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host


def collect(host: Host) -> Tree:
    """Return the interpreter's implementation, version, ABI, compiler, prefix and start-up code."""
    release = sys.version_info
    version = f"{release.major}.{release.minor}.{release.micro}"
    if release.releaselevel != "final":
        version += f"{release.releaselevel[:1]}{release.serial}"
    return {
        "implementation": sys.implementation.name,
        "version": version,
        "abi": _get_abi(),
        "compiler": _parse_compiler(sys.version),
        "prefix_kind": _find_prefix_kind(),
        "startup": collect_startup(host),
    }


def _get_abi() -> str | None:
    """Return the tag of extension modules, such as `cpython-311-x86_64-linux-gnu`.

    The tag of a free-threaded interpreter has a `t` after the version.
    """
    suffix = next(iter(_imp.extension_suffixes()), "")
    return suffix.partition(".")[2].rpartition(".")[0] or None


def _parse_compiler(version: str) -> str | None:
    """Return the part of `sys.version` in brackets; the build date before it is not recorded."""
    return version.rpartition("[")[2].rpartition("]")[0].strip() or None  # Clang leaves a space


def _find_prefix_kind() -> str:
    if os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        return "conda"
    if sys.prefix != sys.base_prefix:
        return "venv"
    return "system"
