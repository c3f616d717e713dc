"""What the files of a project give each other: names that a module passes on, and functions that draw.

A file is looked at after those it imports, so that the names that they pass on are known; of files that import each
other, one is looked at first. What a function draws is asked for rarely, and its file is then read once more.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from envlock.linter.files import Unreadable, head, read
from envlock.linter.module import DEPTH, Definition, Module
from envlock.linter.places import Places, absolute
from envlock.linter.program import DATA
from envlock.linter.stateful import Draw, draws, is_of_others

IMPORTS = re.compile(
    r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*|(?:\\\r?\n|[^\\\r\n#])*)|import[ \t]+([\w., \t]+))",
    re.MULTILINE,
)
FEW = 3  # draws that are kept of a function: a report shows the first
KEPT = 16  # files that are kept after one asked for them


@dataclass
class Given:
    """What a file gives to those that import it: names with their meaning, its functions and classes; uses it Keras?"""

    names: dict[str, str] = field(default_factory=dict)
    defined: frozenset[str] = frozenset()
    keras: bool = False
    others: frozenset[str] = (
        frozenset()
    )  # classes of other packages' kind, as transformers of scikit-learn


class Project:
    """The files that are looked at; `path` of a module is how it is known here."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = files
        self._places = Places(files)
        self._index = {file: index for index, file in enumerate(files)}
        self._given: dict[int, Given] = {}
        self._meanings: dict[tuple[tuple[str, ...], str], str | None] = {}
        self._draws: dict[str, list[Draw]] = {}
        self._modules: dict[int, Module | None] = {}
        self._depth = 0
        self._importers: dict[int, set[int]] = {}

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
                    self._importers.setdefault(place[0], set()).add(self._index[file])
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

    def uses_keras(self, name: str) -> bool:
        """Return whether the file that has what is called so uses Keras."""
        index = name.removeprefix("./").partition(".")[0]
        return self._given.get(int(index), Given()).keras

    def is_of_others(self, name: str) -> bool:
        """Return whether what is called so is a class of another package's kind."""
        index, _, rest = name.removeprefix("./").partition(".")
        return rest in self._given.get(int(index), Given()).others

    def calls(self, path: str, name: str, limit: int) -> Iterator[tuple[Module, ast.Call]]:
        """Yield every call of a function of a file in those that import it, with its module: so many files at most."""
        index = self._index[path]
        for importer in sorted(self._importers.get(index, ()))[:limit]:
            module = self._module(importer)
            if module is not None:
                yield from ((module, call) for call in module.named.get(f"./{index}.{name}", ()))

    def function(self, name: str | None) -> tuple[Module, Definition] | None:
        """Return a function of another file, or the `__init__` of a class, with its module, by its name here."""
        if name is None or not name.startswith("./"):
            return None
        index, _, rest = name[2:].partition(".")
        module = self._module(int(index)) if rest else None
        if module is None:
            return None
        found = _function(module, f"{rest}.__init__") or _function(module, rest)
        return None if found is None else (module, found)

    def draws(self, name: str | None) -> list[Draw]:
        """Return what a function, a method or the objects of a class of another file draw, by its name here."""
        if name is None or not name.startswith("./"):
            return []
        if name not in self._draws:
            self._draws[name] = []  # while it is looked for: what calls itself draws nothing more
            index, _, rest = name[2:].partition(".")
            module = self._module(int(index)) if rest and self._depth < DEPTH else None
            function = None if module is None else _function(module, rest)
            if module is not None and function is not None:
                self._depth += 1
                self._draws[name] = _kept(module, draws(module, function))
                self._depth -= 1
        return self._draws[name]

    def _module(self, index: int) -> Module | None:
        """Return a file that is asked for, read once more: few are, and no tree need be kept for all."""
        if index not in self._modules:
            while len(self._modules) >= KEPT:
                del self._modules[next(iter(self._modules))]
            try:
                self._modules[index] = read(self.files[index], self)
            except Unreadable:
                self._modules[index] = None
        return self._modules[index]

    def add(self, module: Module) -> None:
        """Remember what a file that was looked at gives to others."""
        index = self._index[module.path]
        given = Given(
            names=module.passed_on(),
            defined=_defined(module),
            keras=module.uses_keras,
            others=_of_others(module),
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


def _of_others(module: Module) -> frozenset[str]:
    classes = (each for each in module.tree.body if isinstance(each, ast.ClassDef))
    return frozenset(each.name for each in classes if is_of_others(module, each))


def _function(module: Module, name: str) -> Definition | None:
    """Return a function or method of a file; a class stands for what its objects do when they are called."""
    first, _, rest = name.partition(".")
    node = next((each for each in module.tree.body if getattr(each, "name", None) == first), None)
    if isinstance(node, ast.ClassDef):
        methods = {method.name: method for method in node.body if isinstance(method, Definition)}
        return methods.get(rest) if rest else methods.get("__call__", methods.get("call"))
    return node if isinstance(node, Definition) and not rest else None


def _kept(module: Module, drawn: Iterable[Draw]) -> list[Draw]:
    """Return some draws with their place in words and without the tree of the file."""
    file = module.path.rpartition("/")[2]
    return [
        replace(each, name=f"{each.name} (line {each.node.lineno} of {file})", node=ast.Pass())
        if hasattr(each.node, "lineno")
        else each
        for each in list(drawn)[:FEW]
    ]
