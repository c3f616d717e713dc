"""JAX and PyTorch: their versions, and the settings that change bits.

The settings are listed in a table. Of the variables that only the libraries read, those that the
table does not know count, too, unless it names them as harmless: each release has new ones. Nothing
is imported: before the program imports the library, the variables are what it will read; afterwards,
its effective settings count as well.
"""

from __future__ import annotations

import os
import sys

from envlock.runtime.collectors.environment_variables import make_recordable
from envlock.runtime.distributions import (
    NO_VERSION,
    find_distributions,
    find_package_folder,
    is_version,
)
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host, read_text
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Union

    from envlock.runtime.facts import Tree

    Fact = Union[str, Unavailable, None]

NAME_LIMIT = 128
"""Characters of a variable's name in a lockfile."""

TRUE = ("y", "yes", "t", "true", "on", "1")
"""The words for true of JAX (jax/_src/config.py), some of which PyTorch accepts (c10/util/env.h)."""


def collect_library(host: Host, library: str) -> Tree:
    """Return versions, build and settings of an installed `jax` or `torch`."""
    distributions = find_distributions(host)
    facts: Tree = {"version": distributions[library].version or NO_VERSION}
    if library == "torch":
        facts.update(_read_torch_build(host))
    else:
        facts["jaxlib"] = None
        if "jaxlib" in distributions:
            facts["jaxlib"] = distributions["jaxlib"].version or NO_VERSION
    facts["settings"] = collect_settings(host, library)
    return facts


def _read_torch_build(host: Host) -> Tree:
    """Return PyTorch's CUDA or ROCm version and its commit, from its version.py."""
    build: Tree = {"cuda": None, "git_version": None, "hip": None}
    text = read_text(os.path.join(find_package_folder(host, "torch") or "", "version.py")) or ""
    for line in text.splitlines():
        target, equals, value = line.partition("=")
        name = target.partition(":")[0].strip()  # `cuda: Optional[str] = '12.6'`
        if equals and name in build:
            plain = value.strip().strip("'\"")
            is_known = plain != "None" and is_version(plain)
            build[name] = plain if is_known else None
    return build


def collect_settings(host: Host, name: str) -> Tree:
    """Return the settings of a library that may be recorded, by name; None for those that are unset."""
    rows = table("backends")["settings"][name]
    library = sys.modules.get(name) if host.has_imported(name) else None
    settings: Tree = {row["name"]: _collect_setting(row, host, library) for row in rows}
    for variable in _list_unlisted(host, name, library):
        row = {"name": variable, "records": "integer"}
        settings[variable] = _collect_setting(row, host, library)
    return settings


def _list_unlisted(host: Host, name: str, library: object) -> List[str]:
    """Return the variables that are set, that only this library reads, and that the table does not
    know, sorted.
    """
    others = table("backends")["others"][name]
    names = set(host.environ)
    if library is not None:
        names |= set(host.start_environ())
    known = {row["name"] for row in table("backends")["settings"][name]}
    known.update(
        others["harmless"], (row["name"] for row in table("environ") if "packages" not in row)
    )
    begins, harmless = tuple(others["begins"]), tuple(others["harmless_begins"])
    return [
        variable
        for variable in sorted(names - known)
        if variable.startswith(begins)
        and not variable.startswith(harmless)
        and variable.isascii()
        and variable.isidentifier()
        and len(variable) <= NAME_LIMIT
    ]


def _collect_setting(row: Tree, host: Host, library: object) -> Fact:
    """Return a setting as it may be recorded in a lockfile; None if it is not set."""
    name = row["name"]
    is_variable = name.isupper()
    value = host.environ.get(name) if is_variable else None
    if library is None:
        return make_recordable(value, row)
    at_start = host.start_environ().get(name) if is_variable else None
    in_effect = _read_setting(library, row.get("config"))
    if in_effect is None:
        if value == at_start:
            return make_recordable(value, row)
        return Unavailable(
            "it has changed since the process started, and its reader is imported",
            "set-after-start",
        )
    expected = row.get("default")
    if value is not None and value == at_start:
        expected = _normalize_value(value, row)
    if expected is None and value is None:
        return None
    if in_effect != expected:
        return make_recordable(in_effect, row)
    # A variable that was changed after the start is not what the library uses, so it is not
    # recorded.
    return make_recordable(value if value == at_start else None, row)


def _read_setting(library: object, path: Optional[str]) -> Optional[str]:
    """Return the effective value of a setting of an imported library, in lower case; None if it
    cannot be read.
    """
    if not path:
        return None
    value = library
    try:
        for name in path.split("."):
            value = getattr(value, name)
        if callable(value):
            value = value()
        if value is library:
            return None
        # A member of an enumeration has its value in `value`.
        return str(getattr(value, "value", value)).lower()
    except (AttributeError, TypeError, RuntimeError, ValueError):
        return None


def _normalize_value(value: str, row: Tree) -> str:
    """Return the value that a library reads from a variable, as text."""
    if row["records"] == "bool":
        return str(value.lower() in TRUE).lower()
    return value.lower()
