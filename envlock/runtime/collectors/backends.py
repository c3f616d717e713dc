"""Keras' other back ends, JAX and PyTorch: their versions, and the settings that change bits, from a table.

Asked only where Keras computes with one. Nothing is imported: before the program has imported the library, its
variables are what it will take; afterwards, what it has in effect counts as well.
"""

from __future__ import annotations

import os
import sys

from envlock.runtime.collectors.environ import record
from envlock.runtime.distributions import installed, is_version, package_folder, shadow
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import read_text
from envlock.runtime.shadows import shadows
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Union

    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host

    Fact = Union[str, Unavailable, None]

DISTRIBUTIONS = {"jax": ("jax", "jaxlib"), "torch": ("torch",)}
"""What is installed of each back end of which there are facts."""

TRUE = ("y", "yes", "t", "true", "on", "1")
"""What JAX takes for true (jax/_src/config.py), and PyTorch in part (c10/util/env.h)."""


def facts_of(host: Host, backend: str) -> Union[Tree, Unavailable]:
    """Return what is known of a back end of `DISTRIBUTIONS`: versions, build and settings."""
    hidden = shadow(host, backend) or shadows(host).get(backend)
    if hidden is not None:
        return hidden
    found = installed(host)
    missing = [
        name for name in DISTRIBUTIONS[backend] if name not in found or not found[name].version
    ]
    if missing:
        return Unavailable(
            f"Keras is to compute with {backend}, but no {missing[0]} is installed", "no-backend"
        )
    build = _torch_build(host) if backend == "torch" else {"jaxlib": found["jaxlib"].version}
    return {"version": found[backend].version, **build, "settings": _settings(host, backend)}


def _torch_build(host: Host) -> Tree:
    """Return for which CUDA or ROCm PyTorch was built, and from which commit, as its version.py says."""
    names: Dict[str, Optional[str]] = {"cuda": None, "git_version": None, "hip": None}
    text = read_text(os.path.join(package_folder(host, "torch") or "", "version.py")) or ""
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        name = name.partition(":")[0].strip()
        if equals and name in names:
            plain = value.strip().strip("'\"")
            names[name] = plain if plain != "None" and is_version(plain) else None
    return dict(names)


def _settings(host: Host, backend: str) -> Tree:
    library = sys.modules.get(backend) if host.imported(backend) else None
    return {row["name"]: _setting(row, host, library) for row in table("backends")[backend]}


def _setting(row: Tree, host: Host, library: Any) -> Fact:
    """Return a setting as a lock may hold it; None where nothing sets it."""
    name = row["name"]
    value = host.environ.get(name) if name.isupper() else None
    if library is None:
        return record(value, row)
    was = host.start_environ().get(name) if name.isupper() else None
    actual = _in_effect(library, row.get("config"))
    if actual is None:
        if value == was:
            return record(value, row)
        return Unavailable(
            "it has changed since the process started, and its reader is imported",
            "set-after-start",
        )
    expected = _plain(value, row) if value == was and value is not None else row.get("default")
    if expected is None and value is None:
        return None
    return (
        record(value if value == was else None, row) if actual == expected else record(actual, row)
    )


def _in_effect(library: Any, path: Optional[str]) -> Optional[str]:
    """Return what an imported library has in effect, in lower case; None where it does not tell."""
    found = library
    try:
        for name in path.split(".") if path else ():
            found = getattr(found, name)
        found = found() if callable(found) else found
        return (
            None if found is library else str(getattr(found, "value", found)).lower()
        )  # of an enumeration, its value
    except (AttributeError, TypeError, RuntimeError, ValueError):
        return None


def _plain(value: str, row: Tree) -> str:
    """Return what a library makes of a variable's value, as text."""
    if row["records"] == "bool":
        return str(value.lower() in TRUE).lower()
    return value.lower()
