"""The interpreter."""

from __future__ import annotations

import os
import sys

from envlock.runtime.startup import startup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host


def collect(host: Host) -> Tree:
    """Return implementation, version, ABI, compiler and kind of prefix of this interpreter, and what it runs first."""
    release = sys.version_info
    stage = "" if release.releaselevel == "final" else f"{release.releaselevel[:1]}{release.serial}"
    return {
        "implementation": sys.implementation.name,
        "version": f"{release.major}.{release.minor}.{release.micro}{stage}",
        "abi": _abi(),
        "compiler": _compiler(sys.version),
        "prefix_kind": _prefix_kind(),
        "startup": startup(host),
    }


def _abi() -> str | None:
    """Return the tag of extension modules, such as `cpython-311-x86_64-linux-gnu`; a free-threaded one has a `t`."""
    import _imp

    suffix = next(iter(_imp.extension_suffixes()), "")
    return suffix.partition(".")[2].rpartition(".")[0] or None


def _compiler(version: str) -> str | None:
    """Return what stands in brackets in `sys.version`; the build date, which stands before it, is no fact."""
    return version.rpartition("[")[2].rpartition("]")[0].strip() or None  # Clang leaves a blank


def _prefix_kind() -> str:
    if os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        return "conda"
    return "venv" if sys.prefix != sys.base_prefix else "system"
