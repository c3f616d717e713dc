"""Which of the files that are looked at an imported name means, told by the ends of their paths."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import PurePath

from envlock.linter.names import LIBRARIES
from envlock.linter.notebooks import SUFFIX


class Places:
    """Where files lie, as imports see them."""

    def __init__(self, files: Sequence[str]) -> None:
        self.paths = [_split_path(file) for file in files]
        self.folders: list[tuple[str, ...]] = []
        self._packages: set[tuple[str, ...]] = set()
        for file, path in zip(files, self.paths, strict=True):
            if PurePath(file).stem == "__init__":  # its path is that of the package
                self._packages.add(path)
                self.folders.append(path)
            else:
                self.folders.append(path[:-1])
        self._by_last: dict[str, list[int]] = {}
        for index, path in enumerate(self.paths):
            if path and not files[index].endswith(SUFFIX):  # nothing imports a notebook
                self._by_last.setdefault(path[-1], []).append(index)

    def find_files(self, name: tuple[str, ...], folder: tuple[str, ...]) -> list[int]:
        """Return the files that an absolute name can mean to a file in a folder: their path ends
        so.

        A single word means a neighbour, or else the only file or package of that name, unless
        Python has one, too, or it lies in a package, where other files find it under that name
        only.
        """
        fit = [
            each
            for each in self._by_last.get(name[-1], [])
            if self.paths[each][-len(name) :] == name
        ]
        if len(name) > 1:
            return fit
        near = [each for each in fit if self.paths[each][:-1] == folder]
        # In a package `import gym` is the library also beside a gym.py, which is `.gym`.
        if folder in self._packages and name[0] in LIBRARIES:
            near = []
        return near or self._find_elsewhere(name[0], fit, folder)

    def _find_elsewhere(self, word: str, fit: list[int], folder: tuple[str, ...]) -> list[int]:
        """Return the file outside the folder of the importer that a one-word name means."""
        apart = [each for each in fit if self.paths[each][:-1] not in self._packages]
        # `import random` means Python's, although some folder has a random.py.
        if not apart or word in sys.stdlib_module_names:
            return []
        top = min(fit, key=lambda each: len(self.paths[each]))
        # A package of its own modules' name is one, too.
        if all(self.paths[each][: len(self.paths[top])] == self.paths[top] for each in fit):
            return [top] if top in apart else []
        # Of several projects in one tree, each has its own: a program puts its folder on the path.
        shared = [_count_shared(self.paths[each], folder) for each in apart]
        nearest = max(shared)
        if nearest == 0 or shared.count(nearest) > 1:
            return []
        return [apart[shared.index(nearest)]]

    def split(
        self, name: tuple[str, ...], folder: tuple[str, ...]
    ) -> tuple[int, tuple[str, ...]] | None:
        """Return the file in which a name is looked up, and what is looked up there; None for what
        lies elsewhere.

        Of several files that it can mean, it is the one nearest to the folder.
        """
        # The longest name that is a file; the rest stands in that file.
        for cut in range(len(name), 0, -1):
            found = self.find_files(name[:cut], folder)
            if found:
                nearest = max(found, key=lambda each: _count_shared(self.paths[each], folder))
                return nearest, name[cut:]
        return None


def split_name(name: str, folder: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts of an imported name; a relative one becomes the path it means."""
    level = len(name) - len(name.lstrip("."))
    parts = tuple(part for part in name[level:].split(".") if part)
    if level:
        # One dot is the folder itself, each further dot the folder above.
        parts = folder[: len(folder) - level + 1] + parts
    # `from . import x` at the top: there is always a first part to look at.
    return parts or ("",)


def _count_shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return how many parts are the same from the start of a path and a folder."""
    for count, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return count
    return min(len(one), len(other))


def _split_path(path: str) -> tuple[str, ...]:
    parts = PurePath(path).with_suffix("").parts
    if parts[-1:] == ("__init__",):
        return parts[:-1]
    return parts
