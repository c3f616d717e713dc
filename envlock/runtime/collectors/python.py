"""The interpreter."""

from __future__ import annotations

import _imp
import _locale
import os
import sys
import time

from envlock.runtime.distributions import get_import_path
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.own_variables import get_additions
from envlock.runtime.shadows import COMMON, list_files
from envlock.runtime.startup import collect_startup, hash_bytes, read_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.runtime.facts import Tree


TEXT = "envlock"
TINY, SMALLEST = "1e-30", "2.2250738585072014e-308"
"""As texts, so that nothing is computed when this module is compiled."""


ARITHMETIC = "arithmetic"
"""The fact of the section `loaded` that says how a process computes after its imports."""


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
        "compiler": parse_compiler(sys.version),
        "prefix_kind": _find_prefix_kind(),
        "startup": collect_startup(host),
        "shadows": _find_shadows(host),
        "optimize": sys.flags.optimize,
        "hash": _hash_text(host),
        **collect_arithmetic(),
        "time_zone": _find_time_zone(),
        "text_encoding": _find_text_encoding(),
    }


def collect_arithmetic() -> Tree:
    """Return how this thread computes, which any library can change as it is loaded."""
    return {"rounding": _find_rounding(), "denormals": _find_denormals()}


def format_arithmetic(facts: Tree) -> str:
    """Return both facts of `collect_arithmetic` as one text."""
    return "rounds {rounding}, denormals {denormals}".format(**facts)


def _find_shadows(host: Host) -> Tree:
    """Return the digest of each module on the import path that hides one of the standard library.

    What lies beside the script is the program's own.
    """
    library = os.path.dirname(os.__file__)
    facts: Tree = {}
    for entry in get_import_path(host):
        if os.path.abspath(entry) == library:
            break
        names = {file.partition(".")[0] for file in list_files(entry)}
        for name in sorted((names & _list_library(library)) - COMMON - facts.keys()):
            try:
                data = read_module(entry, name)
            except OSError as error:
                facts[name] = Unavailable(f"it cannot be read: {error.strerror}", "unreadable")
                continue
            if data is not None:
                facts[name] = hash_bytes(data)
    return facts


def _list_library(folder: str) -> frozenset[str]:
    """Return the modules of the standard library that are searched for on the import path."""
    names = getattr(sys, "stdlib_module_names", None)  # from 3.10 on
    if names is None:
        names = {file.partition(".")[0] for file in os.listdir(folder)}
    return frozenset(names).difference(sys.builtin_module_names)


def _hash_text(host: Host) -> int | None:
    """Return the hash of a fixed text: the effect of PYTHONHASHSEED; None if it is random.

    `-R` makes Python ignore the variable, as `-E` and `-I` do. What `envlock run` sets does not count.
    """
    if "PYTHONHASHSEED" in get_additions(host.environ):
        return None
    seed = host.start_environ().get("PYTHONHASHSEED", "")
    if not seed.isdigit() or sys.flags.ignore_environment:
        return None
    return hash(TEXT)


def _find_rounding() -> str:
    """Return how this thread rounds: the processor, not a variable, decides."""
    tiny = float(TINY)
    if 1.0 + tiny > 1.0:
        return "upward"
    if 1.0 - tiny == 1.0:
        return "nearest"
    return "downward" if -1.0 - tiny < -1.0 else "toward-zero"


def _find_denormals() -> str:
    """Return whether the smallest numbers survive a multiplication in this thread."""
    return "kept" if float(SMALLEST) * 0.5 > 0.0 else "flushed"


def _find_time_zone() -> str:
    """Return the offsets of local time, without and with summer time; not the zone's name, which can be
    any text.
    """
    offsets = [time.timezone]
    if time.daylight:
        offsets.append(time.altzone)
    return "/".join(f"UTC{-each // 60 // 60:+d}:{-each // 60 % 60:02d}" for each in offsets)


def _find_text_encoding() -> str:
    """Return the encoding of a text file that is opened without one."""
    if sys.flags.utf8_mode:
        return "utf-8"
    return _locale.nl_langinfo(_locale.CODESET).lower()


def _get_abi() -> str | None:
    """Return the tag of extension modules, such as `cpython-311-x86_64-linux-gnu`.

    The tag of a free-threaded interpreter has a `t` after the version.
    """
    suffix = next(iter(_imp.extension_suffixes()), "")
    return suffix.partition(".")[2].rpartition(".")[0] or None


def parse_compiler(version: str) -> str | None:
    """Return the part of `sys.version` in brackets; the build date before it is not recorded."""
    return version.rpartition("[")[2].rpartition("]")[0].strip() or None  # Clang leaves a space


def _find_prefix_kind() -> str:
    if os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        return "conda"
    if sys.prefix != sys.base_prefix:
        return "venv"
    return "system"
