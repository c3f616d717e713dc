"""The other back ends of Keras, JAX and PyTorch: their versions, and the settings that change bits.

The settings are listed in a table. They are collected only if Keras computes with that back end.
Nothing is imported: before the program imports the library, the variables are what it will read;
afterwards, its effective settings count as well.
"""

from __future__ import annotations

import os
import sys

from envlock.runtime.collectors.environment_variables import make_recordable
from envlock.runtime.distributions import (
    find_distributions,
    find_package_folder,
    find_shadow,
    is_version,
)
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import read_text
from envlock.runtime.shadows import find_shadows
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Union

    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host

    Fact = Union[str, Unavailable, None]

LIBRARIES = {"jax": "jax", "numpy": "jax", "torch": "torch"}
"""The library whose facts are those of a back end: Keras' numpy takes its neural network operations
from JAX (keras/src/backend/numpy/nn.py)."""

DISTRIBUTIONS = {
    "jax": ("jax", "jaxlib"),
    "numpy": ("jax", "jaxlib", "scipy"),
    "torch": ("torch",),
}
"""The distributions that a back end with facts cannot do without."""

TRUE = ("y", "yes", "t", "true", "on", "1")
"""The words for true of JAX (jax/_src/config.py), some of which PyTorch accepts (c10/util/env.h)."""


def collect_backend(host: Host, backend: str) -> Union[Tree, Unavailable]:
    """Return versions, build and settings of the library of a back end of `LIBRARIES`."""
    library = LIBRARIES[backend]
    hidden = find_shadow(host, library) or find_shadows(host).get(library)
    if hidden is not None:
        return hidden
    distributions = find_distributions(host)
    for name in DISTRIBUTIONS[backend]:
        if name not in distributions or not distributions[name].version:
            return Unavailable(
                f"Keras is to compute with {backend}, but no {name} is installed", "no-backend"
            )
    facts: Tree = {"version": distributions[library].version}
    if library == "torch":
        facts.update(_read_torch_build(host))
    else:
        facts["jaxlib"] = distributions["jaxlib"].version
    facts["settings"] = _collect_settings(host, library)
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


def _collect_settings(host: Host, backend: str) -> Tree:
    library = sys.modules.get(backend) if host.has_imported(backend) else None
    return {row["name"]: _collect_setting(row, host, library) for row in table("backends")[backend]}


def _collect_setting(row: Tree, host: Host, library: object) -> Fact:
    """Return a setting as it may be recorded in a lockfile; None if it is not set."""
    name = row["name"]
    value = at_start = None
    if name.isupper():  # the others are not variables
        value = host.environ.get(name)
    if library is None:
        return make_recordable(value, row)
    if name.isupper():
        at_start = host.start_environ().get(name)
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
        return str(
            getattr(value, "value", value)
        ).lower()  # `value`: that of a member of an enumeration
    except (AttributeError, TypeError, RuntimeError, ValueError):
        return None


def _normalize_value(value: str, row: Tree) -> str:
    """Return the value that a library reads from a variable, as text."""
    if row["records"] == "bool":
        return str(value.lower() in TRUE).lower()
    return value.lower()
