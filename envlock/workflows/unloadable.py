"""Warnings about packages that cannot be imported in an image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from envlock.runtime.report import clean

LISTS = Path("/var/lib/dpkg/info")
"""The files of each Debian package, as dpkg-query(1) reads them."""

SHOWN = 6
"""Libraries that a warning names; the packages in its hint are those of all."""


def describe_unloadable(unloadable: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a sentence for each package; the last one says what to do about it.

    It names the Debian packages from which this machine has the libraries.
    """
    lines = []
    for name, missing in unloadable.items():
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        lines.append(
            f"`import {clean(name)}` fails in the image, which lacks "
            f"{clean(', '.join(missing[:SHOWN]))}{more}"
        )
    if lines:
        libraries = {library for missing in unloadable.values() for library in missing}
        packages = find_debian_packages(libraries)
        names = ", ".join(f'"{name}"' for name in packages)
        setting = f"`apt = [{names}]`" if packages else "their Debian packages as `apt`"
        lines[-1] += (
            f"; add {setting} to [tool.envlock.container] in pyproject.toml, and build again"
        )
    return lines


def find_debian_packages(libraries: Iterable[str]) -> list[str]:
    """Return the names of the Debian packages of this machine that own libraries; none on another system."""
    names = set(libraries)
    owners = set()
    for file in LISTS.glob("*.list"):  # "libgl1:amd64.list"
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            path = PurePath(line)
            # Copies in folders of programs do not count.
            if path.name in names and path.parent.name.endswith("-linux-gnu"):
                owners.add(file.stem.partition(":")[0])
    return sorted(owners)
