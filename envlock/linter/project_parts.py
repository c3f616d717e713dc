"""In which part of a project a finding lies: its code, its tests, or code that nothing in it calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from pathlib import PurePath

from envlock.linter.interpreter.programs import Programs
from envlock.linter.interpreter.source_files import Source
from envlock.linter.module import UNSURE, Module, walk
from envlock.linter.undefined_names import is_after_error

TESTS = "tests"
UNCALLED = "uncalled"
PARTS = ("", UNSURE, TESTS, UNCALLED)
"""In the order in which a report shows them."""
TEST_FOLDERS = frozenset({"test", "tests", "testing"})
LOOK_UPS = frozenset({"eval", "getattr", "globals", "locals", "vars"})
DEFINITIONS = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
)
"""Statements that do nothing but define; a text alone says what a file is for."""


class Parts:
    """The parts of a project whose programs have run."""

    def __init__(self, programs: Programs, installed: Set[str] | None) -> None:
        """Read what the programs have called.

        Args:
            programs: the run.
            installed: the files of packages that others can install, and call as they like; None
                where that is unknown, so that any function may be called.
        """
        self.programs = programs
        self.installed = installed
        sources = programs.sources.all
        self.imported: dict[Source, set[int]] = {}
        self.quoted: dict[Source, set[str]] = {}
        self.called_by_named: dict[tuple[Source, str], bool] = {}
        self.mains = [each for each in sources if not each.is_test and _does_something(each)]
        self.started: set[Source] = set()  # those, and what they import
        for main in self.mains:
            self.started.update(sources[index] for index in programs.reached.get(main, ()))

    def find_part(self, source: Source, node: ast.AST) -> str:
        """Return the part in which a place lies."""
        if source.is_test or not TEST_FOLDERS.isdisjoint(PurePath(source.path).parts[:-1]):
            return TESTS
        if is_after_error(source.module, source.failing, node):
            return UNCALLED
        # Where nothing is started, as in a folder of modules, any function may be called from
        # outside.
        if self.installed is None or source.path in self.installed or not self.mains:
            return ""
        # Before the functions around are asked for: the place may lie outside of all.
        met_by = self.programs.ledger.met_by.get(node)
        if met_by and self.started.isdisjoint(met_by):
            return UNCALLED
        around = list(_list_functions(source, node))
        if not around or not self.programs.called.isdisjoint(around):
            return ""
        if self.is_named(source, around[-1]):
            return ""
        return UNCALLED

    def is_named(self, source: Source, function: ast.AST) -> bool:
        """Return whether a program with a file names one of its functions, or the class of a method.

        Names are enough: a table or `getattr` may call what no run has shown.
        """
        name = getattr(function, "name", "")
        owner = source.module.get_parent(function)
        if not isinstance(owner, ast.ClassDef):
            passed = _list_names_outside(source.module, function, called=False)
            return self.is_read(source, name, passed) or self.is_called_by_named(source, name)
        read = _list_names_outside(source.module, owner, called=True)
        if not self.is_read(source, owner.name, read):
            return False
        # Python calls the others; who calls an object's methods need not import its class.
        return name.startswith("__") or self.is_spoken(source, name)

    def is_read(self, source: Source, name: str, own: Set[str]) -> bool:
        """Return whether a program with a file reads one of its names: among those that the file
        itself reads, or in a file that imports it.
        """
        for main in self.list_mains(source):
            for each in self.list_files(main):
                if each is source:
                    is_read = name in own
                else:
                    is_read = _has_name(each, name) and source.index in self.list_imported(each)
                if is_read:
                    return True
            if self.looks_up(main) and name in self.list_quoted(main):
                return True
        return False

    def is_spoken(self, source: Source, name: str) -> bool:
        """Return whether a program that a file is part of has a name or a text anywhere."""
        for main in self.list_mains(source):
            if name in self.list_quoted(main):
                return True
            if any(_has_name(each, name) for each in self.list_files(main)):
                return True
        return False

    def list_mains(self, source: Source) -> list[Source]:
        """Return the programs that a file is part of."""
        reached = self.programs.reached
        return [main for main in self.mains if source.index in reached.get(main, ())]

    def list_files(self, main: Source) -> list[Source]:
        """Return the files of a program."""
        return [self.programs.sources.all[index] for index in self.programs.reached[main]]

    def list_imported(self, source: Source) -> set[int]:
        """Return the files that a file imports, itself or by others; looked up once."""
        if source not in self.imported:
            self.imported[source] = self.programs.list_imported(source)
        return self.imported[source]

    def list_quoted(self, main: Source) -> Set[str]:
        """Return the words in quotes of a program, which a look-up by name may take."""
        if main not in self.quoted:
            found: set[str] = set()
            for each in self.list_files(main):
                found |= each.module.quoted_words
            self.quoted[main] = found
        return self.quoted[main]

    def looks_up(self, main: Source) -> bool:
        """Return whether a program looks functions up by their names."""
        return any(
            not LOOK_UPS.isdisjoint(each.module.read_names) for each in self.list_files(main)
        )

    def is_called_by_named(self, source: Source, name: str) -> bool:
        """Return whether a function of the same file calls it, and may run although no program did.

        A function that has run would have called this one, too.
        """
        asked = (source, name)
        if asked not in self.called_by_named:
            # Functions that only call each other are called by no other.
            self.called_by_named[asked] = False
            callers: set[ast.AST] = set()
            for call in source.module.list_nodes(ast.Call):
                if isinstance(call.func, ast.Name) and call.func.id == name:
                    callers.update(list(_list_functions(source, call))[-1:])
            unseen = callers - self.programs.called
            self.called_by_named[asked] = any(self.is_named(source, each) for each in unseen)
        return self.called_by_named[asked]


def _has_name(source: Source, name: str) -> bool:
    """Return whether a file reads a name, or an attribute with this name."""
    return name in source.module.read_names or name in source.module.own_attributes


def _list_names_outside(module: Module, definition: ast.AST, *, called: bool) -> Set[str]:
    """Return the names that a file reads outside of a function or a class; those that are only
    called as well if asked.
    """
    inside = set(walk(definition))
    callees = {each.func for each in module.list_nodes(ast.Call)}
    found: set[str] = set()
    for name in module.list_nodes(ast.Name):
        if not isinstance(name.ctx, ast.Load) or name in inside:
            continue
        if called or name not in callees:
            found.add(name.id)
    return found


def _does_something(source: Source) -> bool:
    """Return whether a file does something when it is started, and comes to its end."""
    if not source.failing.isdisjoint(source.module.tree.body):
        return False
    if source.is_program:
        return True
    for each in source.module.tree.body:
        is_text = isinstance(getattr(each, "value", None), ast.Constant)
        if not isinstance(each, DEFINITIONS) and not is_text:
            return True
    return False


def _list_functions(source: Source, node: ast.AST) -> Iterator[ast.AST]:
    """Yield the functions around a place, from the inside."""
    around = source.module.find_function_around(node)
    while around is not None:
        if not isinstance(around, ast.Lambda):
            yield around
        around = source.module.find_function_around(around)
