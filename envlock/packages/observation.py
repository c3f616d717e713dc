"""The distributions that a run has used, from the files that envlock/guest/observer.py recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator

from envlock.packages.closure import is_held
from envlock.packages.contents import Contents, read_contents
from envlock.packages.installation import Installation, collect_distributions
from envlock.runtime.distributions import OWN_NAME

IMPORTED, MAPPED = "imported", "mapped"


def find_used(lines: list[str], environment: Installation) -> dict[str, str]:
    """Return how a run has used the distributions that own the recorded files, by normalised name.

    A distribution without a list of its files is not found. Those that no policy compares are left
    out.
    """
    kinds: dict[str, str] = {}
    for line in lines:
        kind, _, path = line.partition("\t")
        for name in (path, _resolve_folder(path), os.path.realpath(path)):
            # That a file was imported says more than that it was mapped.
            if kind == IMPORTED or (kind == MAPPED and name not in kinds):
                kinds[name] = kind
    found: dict[str, str] = {}
    for name, distribution in sorted(collect_distributions(environment).items()):
        if name == OWN_NAME or not is_held(name):
            continue
        used_as = {
            kinds[path] for path in _list_names(read_contents(distribution)) if path in kinds
        }
        if IMPORTED in used_as:
            found[name] = IMPORTED
        elif used_as:
            found[name] = MAPPED
    return found


def _resolve_folder(path: str) -> str:
    """Return a path without links among its folders; the file itself may be a link.

    uv can link each file of a package to its cache.
    """
    folder, _, name = path.rpartition("/")
    return f"{os.path.realpath(folder)}/{name}"


def _list_names(files: Contents) -> Iterator[str]:
    """Yield the paths under which a run can have recorded the files of a distribution."""
    for path in files.list_paths():
        yield path
        # For a library that is a link, the kernel reports the target.
        if ".so" in path.rpartition("/")[2]:
            yield os.path.realpath(path)
