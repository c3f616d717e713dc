"""What the files of a project give each other: names that a module passes on.

A file is looked at after those it imports, so that the names that they pass on are known; of files that import each
other, one is looked at first.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from envlock.linter.files import head
from envlock.linter.module import Definition, Module
from envlock.linter.names import DATA
from envlock.linter.places import Places, absolute

IMPORTS = re.compile(
    r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*|(?:\\\r?\n|[^\\\r\n#])*)|import[ \t]+([\w., \t]+))",
    re.MULTILINE,
)


@dataclass
class Given:
    """What a file gives to those that import it: names with their meaning, its functions and classes."""

    names: dict[str, str] = field(default_factory=dict)
    defined: frozenset[str] = frozenset()


class Project:
    """The files that are looked at; `path` of a module is how it is known here."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = files
        self._places = Places(files)
        self._index = {file: index for index, file in enumerate(files)}
        self._given: dict[int, Given] = {}
        self._meanings: dict[tuple[tuple[str, ...], str], str | None] = {}

    @cached_property
    def _words(self) -> frozenset[str]:
        """Every word that an import of a file here can begin with."""
        words = {word for path in self._places.paths for word in path}
        return frozenset(words - DATA - sys.stdlib_module_names - {"tensorflow", "tf_keras"})

    def ordered(self) -> list[str]:
        """Return the files, each after those it imports."""
        edges = [sorted(self._imported(file)) for file in self.files]
        done: dict[int, None] = {}
        for start in range(len(self.files)):
            stack = [(start, iter(edges[start]))]
            entered = {start}
            while stack:
                index, rest = stack[-1]
                following = next(
                    (each for each in rest if each not in done and each not in entered), None
                )
                if following is None:
                    done.setdefault(index)
                    stack.pop()
                else:
                    entered.add(following)
                    stack.append((following, iter(edges[following])))
        return [self.files[index] for index in done]

    def _imported(self, file: str) -> set[int]:
        folder = self._places.folders[self._index[file]]
        found: set[int] = set()
        for origin, names, plain in IMPORTS.findall(head(file)):
            joint = "" if origin.endswith(".") else "."
            words = re.findall(r"[\w*]+", names)
            written = (
                [f"{origin}{joint}{word}".removesuffix(f"{joint}*") for word in words]
                if origin
                else []
            )
            for name in written or re.findall(r"[\w.]+", plain):
                place = self._place(name, folder)
                if place is not None:
                    found.add(place[0])
        return found

    def _place(self, name: str, folder: tuple[str, ...]) -> tuple[int, tuple[str, ...]] | None:
        parts = absolute(name, folder)
        if not name.startswith(".") and parts[0] not in self._words:
            return None
        return self._places.split(parts, folder)

    def meaning(self, name: str, path: str) -> str | None:
        """Return what an imported name stands for: what a file here passes on under it, else `./INDEX.NAME`.

        None for what no file here holds.
        """
        if name.startswith("./"):
            index, _, rest = name[2:].partition(".")
            return self._passed_on(int(index), tuple(rest.split("."))) if rest else name
        folder = self._places.folders[self._index[path]]
        key = (folder, name)
        if key not in self._meanings:
            place = self._place(name, folder)
            self._meanings[key] = None if place is None else self._passed_on(*place)
        return self._meanings[key]

    def _passed_on(self, index: int, rest: tuple[str, ...]) -> str:
        given = self._given.get(index, Given())
        if rest and rest[0] in given.names:
            return ".".join([given.names[rest[0]], *rest[1:]])
        return ".".join([f"./{index}", *rest])

    def defines(self, name: str) -> bool:
        """Return whether a file here has a function or a class of this name at its top."""
        index, _, rest = name.removeprefix("./").partition(".")
        return rest.partition(".")[0] in self._given.get(int(index), Given()).defined

    def add(self, module: Module) -> None:
        """Remember what a file that was looked at gives to others."""
        index = self._index[module.path]
        given = Given(
            names=module.passed_on(),
            defined=_defined(module),
        )
        for star in module.stars():
            place = self._place(star, self._places.folders[index])
            if place is not None and not place[1]:
                other = self._given.get(place[0], Given())
                own = {name: f"./{place[0]}.{name}" for name in other.defined}
                given.names = {**own, **other.names, **given.names}
        self._given[index] = given


def _defined(module: Module) -> frozenset[str]:
    return frozenset(
        node.name for node in module.tree.body if isinstance(node, Definition | ast.ClassDef)
    )
