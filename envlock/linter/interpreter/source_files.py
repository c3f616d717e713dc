"""The files of a project, as the interpreter sees them: which one an import means, and what each
imports.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from envlock.linter.module import Module
from envlock.linter.names import LIBRARIES, TENSORFLOW_1
from envlock.linter.notebooks import Cells
from envlock.linter.places import Places, split_name
from envlock.linter.undefined_names import find_undefined

LOADERS = (
    *("importlib.import_module", "importlib.util.spec_from_file_location", "imp.load_source"),
    *("pkgutil.iter_modules", "pkgutil.walk_packages"),
)


@dataclass(eq=False)
class Source:
    """One file.

    Attributes:
        module: its tree and the names in it.
        index: its number in the project.
        imported: the files that it imports, as far as it has run.
        failing_imports: the imports at its top of which other files show that they fail.
    """

    module: Module
    index: int
    imported: set[int] = field(default_factory=set)
    failing_imports: frozenset[ast.stmt] = frozenset()

    @property
    def path(self) -> str:
        """The file as it is shown."""
        return self.module.path

    @property
    def packages(self) -> frozenset[str]:
        """The top-level names of what it imports, canonical."""
        return self.module.packages

    @cached_property
    def is_program(self) -> bool:
        """Whether it says what it does as a program."""
        return "__main__" in self.module.text or self.module.cells is not None

    @cached_property
    def is_test(self) -> bool:
        """Whether pytest collects it, by the name of its file."""
        # https://docs.pytest.org/en/stable/explanation/goodpractices.html#test-discovery
        stem = self.path.rpartition("/")[2].removesuffix(".py")
        return stem.startswith("test_") or stem.endswith("_test") or stem == "conftest"

    @property
    def is_prepared(self) -> bool:
        """Whether pytest runs it before the tests beside it and below."""
        return self.path.rpartition("/")[2] == "conftest.py"

    @cached_property
    def loads(self) -> bool:
        """Whether it imports by a name that only the run knows."""
        calls = self._iter_loading_calls()
        return any(call.args and not isinstance(call.args[0], ast.Constant) for call in calls)

    def _iter_loading_calls(self) -> Iterator[ast.Call]:
        for call, _ in self.module.find_calls(LOADERS):
            yield call
        if "__import__" in self.module.text:
            for call in self.module.list_nodes(ast.Call):
                if isinstance(call.func, ast.Name) and call.func.id == "__import__":
                    yield call

    @cached_property
    def failing(self) -> frozenset[ast.stmt]:
        """The statements that end in a NameError, or in an ImportError that the files show."""
        return find_undefined(self.module) | self.failing_imports

    @cached_property
    def has_sessions(self) -> bool:
        """Whether it works with the graphs of TensorFlow 1, in which Keras takes its seeds from the
        graph.
        """
        return bool(self.module.find_calls(TENSORFLOW_1))

    @cached_property
    def has_no_gpu(self) -> bool:
        """Whether the sessions that it makes have none: `tf.ConfigProto(device_count={"GPU": 0})`."""
        calls = self.module.find_calls(("tf.ConfigProto",))
        return bool(calls) and all(_excludes_gpus(call) for call, _ in calls)

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Every function in it, in the order of the text."""
        found: list[ast.FunctionDef | ast.AsyncFunctionDef] = [
            *self.module.list_nodes(ast.FunctionDef),
            *self.module.list_nodes(ast.AsyncFunctionDef),
        ]
        return sorted(found, key=lambda each: each.lineno)


MOST_LINES = 60  # that one message names: it stays readable
MOSTLY = 0.6
"""The share of a package's names that lie in the folder that is looked at: of aster's 68 %."""


def _excludes_gpus(call: ast.Call) -> bool:
    """Return whether a configuration of sessions says that there are no GPUs."""
    for word in call.keywords:
        if word.arg != "device_count" or not isinstance(word.value, ast.Dict):
            continue
        for device, count in zip(word.value.keys, word.value.values, strict=True):
            if isinstance(device, ast.Constant) and device.value == "GPU":
                return isinstance(count, ast.Constant) and count.value == 0
    return False


def describe_more(source: Source, nodes: Sequence[ast.AST]) -> str:
    """Return where the other places of one cause stand, as the end of a message."""
    lines = sorted({getattr(node, "lineno", 0) for node in nodes[1:]})
    if not lines:
        return ""
    if len(lines) > MOST_LINES:
        return f", and {len(nodes) - 1} more below"
    if source.module.cells is not None:
        return f", and {len(nodes) - 1} more ({_list_by_cell(source.module.cells, lines)})"
    word = "line" if len(lines) == 1 else "lines"  # several may stand on one line
    return f", and {len(nodes) - 1} more ({word} {', '.join(map(str, lines))})"


def _list_by_cell(cells: Cells, lines: Iterable[int]) -> str:
    """Return lines of a notebook's code as its reader counts them: `cell 4: 10, 11; cell 7: 3`."""
    by_cell: dict[int, list[str]] = {}
    for line in lines:
        cell, line_of_cell = cells.place(line)
        by_cell.setdefault(cell, []).append(str(line_of_cell))
    return "; ".join(f"cell {cell}: {', '.join(found)}" for cell, found in by_cell.items())


class Sources:
    """All files, and where an import leads."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.all = [Source(module, index) for index, module in enumerate(modules)]
        self._places = Places([module.path for module in modules])
        # An import whose first word is not in any path is of a library: most are. A file that is
        # called as one of Python's modules, or as TensorFlow, does not hide it.
        self._words: set[str] = set()
        self._words.update(*self._places.paths)
        self._words -= sys.stdlib_module_names | {"tensorflow", "tf_keras", "numpy"}
        self._root = self._find_root_package()
        for source in self.all:
            source.failing_imports = frozenset(self._find_failing_imports(source))
            source.module.starred.extend(self._find_starred(source))

    @cached_property
    def names_keras_backend(self) -> bool:
        """Whether a file speaks of the variable that chooses what Keras computes with."""
        return any("KERAS_BACKEND" in each.module.text for each in self.all)

    def _find_starred(self, source: Source) -> Iterator[Module]:
        """Yield the project's own files of which a file imports all names."""
        for statement in source.module.list_nodes(ast.ImportFrom):
            if statement.names[0].name == "*":
                name = "." * statement.level + (statement.module or "")
                place = self.locate(name, source)
                if place is not None and not place[1]:
                    yield place[0].module

    def _find_failing_imports(self, source: Source) -> Iterator[ast.stmt]:
        """Yield the imports of modules beside a file that import from above their package.

        `from yolo3.model import Model` fails where yolo3/model.py says `from ..yolo3 import utils`:
        https://docs.python.org/3/reference/import.html#package-relative-imports
        """
        if source.module.cells is not None:  # after an error, the next cell of a notebook can run
            return
        folder = self._places.folders[source.index]
        for statement in source.module.tree.body:
            if not isinstance(statement, ast.ImportFrom) or statement.level or not statement.module:
                continue
            path = (*folder, *statement.module.split("."))
            for index in self._places.find_files(path, folder):
                if self._places.paths[index] != path:
                    continue
                depth = len(self._places.folders[index]) - len(folder)
                inner = self.all[index].module.tree.body
                if any(isinstance(each, ast.ImportFrom) and each.level > depth for each in inner):
                    yield statement

    def _find_root_package(self) -> str:
        """Return the name under which the files import those of the top folder, or an empty text.

        That is a package whose folder is the one that is looked at, as in google-research/albert
        and seed_rl: most of what is imported from it, two modules or more, lies there. The others
        may be made later, as those that protoc writes in bgshih/aster.
        """
        known: set[tuple[str, ...]] = set()
        for path in self._places.paths:
            known.update(path[:length] for length in range(1, len(path) + 1))
        foreign = self._words | LIBRARIES | sys.stdlib_module_names
        imported: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for source in self.all:
            for name in source.module.imports:
                package, *rest = name.split(".")
                if package and rest and package not in foreign:
                    imported[package].add(tuple(rest))
        for package in sorted(imported):
            names = imported[package]
            # The last word may be of a name in a module.
            here = [name for name in names if name in known or name[:-1] in known]
            # One module may have the name of a file by chance; two or more are a package.
            if len(here) > MOSTLY * len(names) and len(names & known) > 1:
                return package
        return ""

    def _split_name(self, name: str, folder: tuple[str, ...]) -> tuple[str, ...]:
        """Return the parts of an imported name, from the top folder on."""
        parts = split_name(name, folder)
        if parts[0] == self._root and len(parts) > 1 and not name.startswith("."):
            return parts[1:]
        return parts

    def locate(self, name: str, importer: Source) -> tuple[Source, tuple[str, ...]] | None:
        """Return the file in which an imported name is looked up, and what is looked up there."""
        folder = self._places.folders[importer.index]
        parts = self._split_name(name, folder)
        if not name.startswith(".") and parts[0] not in self._words:
            return None
        place = self._places.split(parts, folder)
        if place is None:
            return None
        return self.all[place[0]], place[1]

    def find_below(self, package: Source, name: str) -> Source | None:
        """Return the module of a name in a package, or None."""
        if not package.path.endswith("__init__.py"):
            return None
        path = (*self._places.paths[package.index], name)
        found = self._places.find_files(path, self._places.folders[package.index])
        return next((self.all[at] for at in found if self._places.paths[at] == path), None)

    def list_namespace(self, name: str, importer: Source) -> list[Source]:
        """Return the files of a package without an `__init__`, by the name it is imported under."""
        parts = self._split_name(name, self._places.folders[importer.index])
        return [
            each
            for each, path in zip(self.all, self._places.paths, strict=True)
            if path[:-1][-len(parts) :] == parts
        ]

    def folder(self, source: Source) -> tuple[str, ...]:
        """Return the folder of a file, as imports see it."""
        return self._places.folders[source.index]

    def is_below(self, source: Source, folders: set[tuple[str, ...]]) -> bool:
        """Return whether a file lies in one of some folders, or below."""
        path = self._places.paths[source.index]
        return any(path[: len(folder)] == folder for folder in folders)

    def list_edges(self) -> list[set[int]]:
        """Return which of the files each file imports anywhere."""
        found: list[set[int]] = []
        for source in self.all:
            folder = self._places.folders[source.index]
            imported: set[int] = set()
            for name in source.module.imports:
                imported.update(self._places.find_files(self._split_name(name, folder), folder))
            found.append(imported)
        return found
