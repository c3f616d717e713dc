"""Warnings about packages that cannot be imported in an image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from envlock.runtime.report import clean, join_first

LISTS = Path("/var/lib/dpkg/info")
"""The files of each Debian package, as dpkg-query(1) reads them."""

SHOWN = 6
"""Libraries that a warning names; the packages in its hint are those of all."""


def describe_unloadable(
    unloadable: Mapping[str, Sequence[str]], wanted: Sequence[str]
) -> list[str]:
    """Return a sentence for each package; the last one says what to do about it.

    It names the Debian packages from which this machine has the libraries, after those that the
    project wants already.
    """
    lines = [
        f"a module of {clean(name)} cannot be imported in the image, which lacks "
        f"{clean(join_first(missing, SHOWN))}"
        for name, missing in unloadable.items()
    ]
    if lines:
        libraries = {library for missing in unloadable.values() for library in missing}
        found = find_debian_packages(libraries)
        names = ", ".join(f'"{name}"' for name in dict.fromkeys([*wanted, *found]))
        setting = f"set `apt = [{names}]`" if found else "add their Debian packages to `apt`"
        lines[-1] += f"; {setting} in [tool.envlock.container] of pyproject.toml, and build again"
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
