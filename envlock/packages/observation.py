"""Which distributions a run has used, by the files that envlock/guest/observer.py noted."""

from __future__ import annotations

import os

from envlock.packages.closure import is_held
from envlock.packages.contents import contents
from envlock.packages.installation import Installation, by_name
from envlock.runtime.distributions import OWN_NAME

IMPORTED, MAPPED = "imported", "mapped"


def used(lines: list[str], place: Installation) -> dict[str, str]:
    """Return how a run has used the distributions that own the noted files, by normalised name.

    A distribution without a list of its files is not found here. What no policy holds is left out.
    """
    kinds: dict[str, str] = {}
    for kind, _, path in (line.partition("\t") for line in lines):
        for each in (path, _behind_links(path), os.path.realpath(path)):
            if kind == IMPORTED or (kind == MAPPED and each not in kinds):
                kinds[each] = kind
    found: dict[str, str] = {}
    for name, distribution in by_name(place).items():
        if name == OWN_NAME or not is_held(name):
            continue
        own = {
            kinds[path]
            for file in contents(distribution).paths()
            for path in _names(file)
            if path in kinds
        }
        if own:
            found[name] = IMPORTED if IMPORTED in own else MAPPED
    return dict(sorted(found.items()))


def _behind_links(path: str) -> str:
    """Return a path whose folders are no links; uv can link each file of a package to its cache."""
    folder, _, name = path.rpartition("/")
    return f"{os.path.realpath(folder)}/{name}"


def _names(file: str) -> tuple[str, ...]:
    """Return the paths by which a run can know a file: the kernel tells the target of a linked library."""
    return (file, os.path.realpath(file)) if ".so" in file.rpartition("/")[2] else (file,)
