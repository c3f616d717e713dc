"""The files of a project as its programs see them: who imports whom, who calls whom, what is started.

Calls are known by names alone: a function is called where code that is linked to it by imports speaks
of its name. What a framework calls is called where its class is spoken of.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath

from envlock.linter.module import UNSURE, Module, get_last_word, walk
from envlock.linter.names import DATA, FRAMEWORK_METHODS, LIBRARIES, canonical
from envlock.linter.places import Places, split_name

TESTS = "tests"
UNCALLED = "uncalled"
PARTS = ("", UNSURE, TESTS, UNCALLED)
"""In the order in which a report shows them."""
TEST_FOLDERS = frozenset({"test", "tests", "testing"})
IMPORTS = (ast.Import, ast.ImportFrom)
DEFINITIONS = (*IMPORTS, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
PLAIN_DECORATORS = frozenset(
    {
        "abstractmethod",
        "abstractproperty",
        "cached_property",
        "classmethod",
        "contextmanager",
        "deprecated",
        "function",
        "jit",
        "lru_cache",
        "property",
        "setter",
        "staticmethod",
        "wraps",
    }
)
"""Decorators that call nothing of themselves."""
MOSTLY = 0.6
"""The share of a package's names that lie in the folder that is looked at: of aster's 68 %."""

DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Word = str | tuple[int, str]
"""A name, of any file or of one file by its number."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False)
class Scope:
    """A function or method, or the code of a file outside of all functions.

    Attributes:
        file: where it stands.
        node: the function, or None.
        owner: the class that it is a method of, or None.
    """

    file: File
    node: Function | None
    owner: ast.ClassDef | None = None

    def __post_init__(self) -> None:
        self.name = self.node.name if self.node is not None else ""


@dataclass(eq=False)
class File:
    """One file: its module, its functions, and the files that it imports.

    Attributes:
        module: its tree and the names in it.
        index: its number in the project.
        imported: the files that it imports itself.
    """

    module: Module
    index: int
    imported: set[int] = field(default_factory=set)

    @property
    def path(self) -> str:
        """The file as it is shown."""
        return self.module.path

    @cached_property
    def top(self) -> Scope:
        """The code outside of all functions."""
        return Scope(self, None)

    @cached_property
    def scopes(self) -> list[Scope]:
        """Every function, in the order of the text, with the class that it is a method of."""
        module = self.module
        owners = {
            id(each): owner
            for owner in module.list_nodes(ast.ClassDef)
            for each in owner.body
            if isinstance(each, Function)
        }
        nodes: list[Function] = [
            *module.list_nodes(ast.FunctionDef),
            *module.list_nodes(ast.AsyncFunctionDef),
        ]
        nodes.sort(key=lambda each: each.lineno)
        return [Scope(self, each, owners.get(id(each))) for each in nodes]

    def find_scope(self, node: ast.AST) -> Scope:
        """Return the innermost function around a place."""
        return self._scope_at[getattr(node, "lineno", 0)]

    @cached_property
    def _scope_at(self) -> list[Scope]:
        """The innermost function around each line."""
        last = max((each.end_lineno or 0 for each in self.module.tree.body), default=0)
        found = [self.top] * (last + 1)
        for each in self.scopes:
            if each.node is not None:
                end = (each.node.end_lineno or each.node.lineno) + 1
                found[each.node.lineno : end] = [each] * (end - each.node.lineno)
        return found

    @cached_property
    def said(self) -> dict[Scope, set[Word]]:
        """The names of which each function, and the code outside of all, speaks."""
        module, scope_at = self.module, self._scope_at
        own = {each.name for each in module.tree.body if isinstance(each, DEFINED)}
        found: dict[Scope, set[Word]] = {each: set() for each in (self.top, *self.scopes)}
        # A class that is made from another one does not call it yet.
        bases = {base for each in module.list_nodes(ast.ClassDef) for base in each.bases}
        names = [each for each in module.list_nodes(ast.Name) if each not in bases]
        for scope, word in {(scope_at[each.lineno], each.id) for each in names}:
            # A name that the file defines is its own, whatever other files call so.
            found[scope].add((self.index, word) if word in own else word)
            # `from core.mmd import MMD_GAN as GAN`: who says GAN, speaks of MMD_GAN.
            if word in module.origins:
                found[scope].add(module.origins[word].rpartition(".")[2])
        foreign = module.foreign_names
        for attribute in module.list_nodes(ast.Attribute):
            if attribute not in bases and not _is_foreign(foreign, attribute):
                found[scope_at[attribute.lineno]].add(attribute.attr)
        return found

    @cached_property
    def is_test(self) -> bool:
        """Whether pytest collects it: it is named so, and has tests."""
        # https://docs.pytest.org/en/stable/explanation/goodpractices.html#test-discovery
        path = PurePath(self.path)
        stem = path.stem
        if stem == "conftest" or not TEST_FOLDERS.isdisjoint(path.parts[:-1]):
            return True
        named = stem.startswith("test_") or stem.endswith("_test")
        return named and any(
            (each.node is not None and each.name.startswith("test"))
            or (each.owner is not None and each.owner.name.startswith("Test"))
            for each in self.scopes
        )

    @cached_property
    def is_started(self) -> bool:
        """Whether it does something when it is started."""
        if self.module.cells is not None or "__main__" in self.module.text:
            return True
        for each in self.module.tree.body:
            value = getattr(each, "value", None)
            if isinstance(each, DEFINITIONS) or isinstance(value, ast.Constant):
                continue
            if isinstance(each, ast.Assign | ast.AnnAssign) and not isinstance(value, ast.Call):
                continue
            if isinstance(each, ast.Try | ast.If) and not any(
                isinstance(node, ast.Call) for node in walk(each)
            ):
                continue
            return True
        return False


class Project:
    """All files, and what leads from one to another."""

    def __init__(self, modules: Sequence[Module], installed: Set[str] | None = None) -> None:
        """Read who imports whom.

        Args:
            modules: the files.
            installed: the files of packages that others can install, and call as they like; None
                where that is unknown, so that any function may be called.
        """
        self.files = [File(module, index) for index, module in enumerate(modules)]
        self.installed = installed
        self._places = Places([module.path for module in modules])
        # An import whose first word is not in any path is of a library: most are. A file that is
        # called as one of Python's modules, or as TensorFlow, does not hide it.
        self._words: set[str] = set()
        self._words.update(*self._places.paths)
        self._words -= sys.stdlib_module_names | {"tensorflow", "tf_keras", "numpy"}
        self._root = self._find_root_package()
        for file in self.files:
            folder = self._places.folders[file.index]
            for name in file.module.imports:
                parts = self._split_name(name, folder)
                file.imported.update(self._places.find_files(parts, folder))
            file.imported.discard(file.index)
            file.module.starred.extend(self._list_starred(file))
        self.with_keras = {each.index for each in self.files if each.module.uses_keras}
        self.with_tensorflow = {each.index for each in self.files if "tf" in each.module.packages}
        self._reach: dict[int, frozenset[int]] = {}
        self._called: dict[int | None, Set[Scope]] = {}
        self._names: dict[tuple[int, str], str | None] = {}

    # Imports

    def _find_root_package(self) -> str:
        """Return the name under which the files import those of the top folder, or an empty text.

        That is a package whose folder is the one that is looked at, as in google-research/albert
        and seed_rl: most of what is imported from it, two modules or more, lies there.
        """
        known: set[tuple[str, ...]] = set()
        for path in self._places.paths:
            known.update(path[:length] for length in range(1, len(path) + 1))
        foreign = self._words | LIBRARIES | sys.stdlib_module_names
        imported: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for file in self.files:
            for name in file.module.imports:
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

    def locate(self, name: str, importer: File) -> tuple[File, tuple[str, ...]] | None:
        """Return the file in which an imported name is looked up, and what is looked up there."""
        folder = self._places.folders[importer.index]
        parts = self._split_name(name, folder)
        if not name.startswith(".") and parts[0] not in self._words:
            return None
        place = self._places.split(parts, folder)
        return None if place is None else (self.files[place[0]], place[1])

    def is_module(self, file: File, word: str) -> bool:
        """Return whether a name is that of a file of the project: `import tools`."""
        place = self.locate(file.module.origins.get(word, word), file)
        return word in file.module.imported_names and place is not None and not place[1]

    def _list_starred(self, file: File) -> Iterator[Module]:
        """Yield the project's own files of which a file imports all names."""
        for statement in file.module.list_nodes(ast.ImportFrom):
            if statement.names[0].name == "*":
                place = self.locate("." * statement.level + (statement.module or ""), file)
                if place is not None and not place[1]:
                    yield place[0].module

    def list_reach(self, file: File) -> frozenset[int]:
        """Return the files that a file imports, directly or not, and itself."""
        if file.index not in self._reach:
            seen, waiting = {file.index}, [file.index]
            while waiting:
                index = waiting.pop()
                if index in self._reach:
                    seen |= self._reach[index]
                    continue
                fresh = self.files[index].imported - seen
                seen |= fresh
                waiting += fresh
            self._reach[file.index] = frozenset(seen)
        return self._reach[file.index]

    # Names

    def resolve(self, file: File, node: ast.AST) -> str | None:
        """Return the canonical name of what an expression stands for, also through other files."""
        words: list[str] = []
        start = node
        while isinstance(start, ast.Attribute):
            words.append(start.attr)
            start = start.value
        if not isinstance(start, ast.Name):
            return None
        through = self._follow(file, start.id)
        if through is not None:
            return canonical(".".join([through, *reversed(words)]))
        return file.module.resolve_name(node)

    def _follow(self, file: File, word: str) -> str | None:
        """Return what a name stands for that a file has from another one of the project."""
        key = file.index, word
        if key not in self._names:
            self._names[key] = None  # a circle of stars leads nowhere
            self._names[key] = self._look_up(file, word)
        return self._names[key]

    def _look_up(self, file: File, word: str) -> str | None:
        if word in file.module.own_names:
            return None
        plain = ast.Name(word, ast.Load())
        for other in file.module.starred:
            found = other.resolve_name(plain) or self._follow(self._by_module[id(other)], word)
            if found is not None:
                return found
        origin = file.module.origins.get(word)
        place = self.locate(origin, file) if origin is not None else None
        if place is None or len(place[1]) != 1:
            return None
        return self.resolve(place[0], ast.Name(place[1][0], ast.Load()))

    @cached_property
    def _by_module(self) -> dict[int, File]:
        return {id(each.module): each for each in self.files}

    @cached_property
    def methods(self) -> dict[str, set[str]]:
        """The methods that the classes of a name define themselves."""
        found: dict[str, set[str]] = defaultdict(set)
        for file in self.files:
            for scope in file.scopes:
                if scope.owner is not None:
                    found[scope.owner.name].add(scope.name)
        return found

    # Programs

    @cached_property
    def mains(self) -> list[File]:
        """The files that are started: they say so, or do something and no other file imports them."""
        imported = {index for each in self.files for index in each.imported}
        return [
            each
            for each in self.files
            if not each.is_test
            and each.is_started
            and (
                each.index not in imported
                or each.module.cells is not None
                or "__main__" in each.module.text
            )
        ]

    @cached_property
    def _mains_of(self) -> dict[int, list[File]]:
        found: dict[int, list[File]] = defaultdict(list)
        for main in self.mains:
            for index in self.list_reach(main):
                found[index].append(main)
        return found

    def list_programs(self, scope: Scope) -> list[File]:
        """Return the programs that run some code; where none does, its file stands for one."""
        if scope.file.is_test:
            return [scope.file]
        mains = self._mains_of.get(scope.file.index, [])
        if scope.node is not None:
            mains = [each for each in mains if scope in self.find_called(each)] or mains
        return mains or [scope.file]

    def find_part(self, scope: Scope) -> str:
        """Return the part of the project in which some code lies."""
        file = scope.file
        if file.is_test:
            return TESTS
        # Where nothing is started, as in a folder of modules, any function may be called from
        # outside.
        if self.installed is None or file.path in self.installed or not self.mains:
            return ""
        mains = self._mains_of.get(file.index, [])
        if scope.node is not None:
            mains = [each for each in mains if scope in self.find_called(each)]
        return "" if mains else UNCALLED

    def find_worth(self, file: File) -> str:
        """Return the part of what no program with data runs: its order may not matter."""
        for main in self._mains_of.get(file.index, [file]):
            for index in self.list_reach(main):
                if not DATA.isdisjoint(self.files[index].module.packages):
                    return ""
        return UNSURE

    # Calls

    def find_called(self, program: File) -> Set[Scope]:
        """Return the code that a program runs; of what is started nowhere, what runs as it is imported."""
        is_started = program in self.mains
        key = program.index if is_started else None
        if key not in self._called:
            reached = [self.files[index] for index in self.list_reach(program)]
            self._called[key] = self._follow_calls(reached if is_started else self.files)
        return self._called[key]

    def _follow_calls(self, files: Sequence[File]) -> Set[Scope]:
        """Return the functions of some files to which their code outside of functions comes."""
        waiting: list[Scope] = []
        spoken: dict[Word, list[Scope]] = defaultdict(list)
        for file in files:
            waiting += [file.top, *filter(_is_handed_over, file.scopes)]
            for scope in file.scopes:
                for name in self._list_words_for(scope):
                    spoken[name].append(scope)
                    spoken[file.index, name].append(scope)
        called = set(waiting)
        while waiting:
            scope = waiting.pop()
            for word in spoken.keys() & scope.file.said[scope]:
                fresh = [each for each in spoken.pop(word) if each not in called]
                called.update(fresh)
                waiting += fresh
        return called

    def _list_words_for(self, scope: Scope) -> set[str]:
        """Return the names by which code speaks of a function, or of the class whose methods a
        framework calls.
        """
        owner = scope.owner
        if owner is not None and (
            scope.name.startswith(("__", "on_", "visit_", "test"))
            or (owner.bases and scope.name in FRAMEWORK_METHODS)
        ):
            return self._list_heirs(owner.name)
        return {scope.name}

    def _list_heirs(self, name: str) -> set[str]:
        found, waiting = {name}, [name]
        while waiting:
            fresh = self._heirs.get(waiting.pop(), set()) - found
            found |= fresh
            waiting += fresh
        return found

    @cached_property
    def _heirs(self) -> dict[str, set[str]]:
        """The classes that are made from each class, by their names."""
        found: dict[str, set[str]] = defaultdict(set)
        for file in self.files:
            for each in file.module.list_nodes(ast.ClassDef):
                for base in each.bases:
                    word = get_last_word(base)
                    if word:
                        found[word].add(each.name)
        return found


def _is_handed_over(scope: Scope) -> bool:
    """Return whether a library calls a function: that of `tf.app.run`, or one that it decorates."""
    if scope.node is None:
        return False
    if scope.name == "main" and scope.owner is None and "app.run(" in scope.file.module.text:
        return True
    return any(
        get_last_word(each.func if isinstance(each, ast.Call) else each) not in PLAIN_DECORATORS
        for each in scope.node.decorator_list
    )


def _is_foreign(foreign: Set[str], node: ast.Attribute) -> bool:
    """Return whether a name is of a library: `np.random.seed` speaks of no `seed` of the project."""
    start = node.value
    while type(start) is ast.Attribute:
        start = start.value
    return type(start) is ast.Name and start.id in foreign
