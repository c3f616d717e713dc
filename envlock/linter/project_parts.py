"""In which part of a project a finding lies: its code, its tests, or code that nothing in it calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from pathlib import PurePath

from envlock.linter.interpreter.programs import Programs
from envlock.linter.interpreter.source_files import Source

TESTS = "tests"
UNCALLED = "uncalled"
PARTS = ("", TESTS, UNCALLED)
"""In the order in which a report shows them."""
TEST_FOLDERS = frozenset({"test", "tests", "testing"})
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
        self.names: dict[Source, set[str]] = {}
        self.mains = [each for each in sources if not each.is_test and _does_something(each)]

    def find_part(self, source: Source, node: ast.AST) -> str:
        """Return the part in which a place lies."""
        if source.is_test or not TEST_FOLDERS.isdisjoint(PurePath(source.path).parts[:-1]):
            return TESTS
        if self.installed is None or source.path in self.installed or not self.mains:
            return ""
        around = list(_list_functions(source, node))
        if not around or not self.programs.called.isdisjoint(around):
            return ""
        return "" if self.is_named(source, around[-1]) else UNCALLED

    def is_named(self, source: Source, function: ast.AST) -> bool:
        """Return whether a file that belongs to one program with this one names the function, or its class.

        Names are enough: a table or `getattr` may call what no run has shown.
        """
        name = getattr(function, "name", "")
        words = {name}
        owner = source.module.parent(function)
        if isinstance(owner, ast.ClassDef):
            words.add(owner.name)
            if name.startswith("__"):  # Python calls it
                words.discard(name)
        for main in self.mains:
            is_used = source.index in self.programs.reached.get(main, ())
            if is_used and words <= self.list_names(main):
                return True
        return False

    def list_names(self, main: Source) -> set[str]:
        """Return the names and attributes that a program and what it imports read."""
        if main not in self.names:
            found: set[str] = set()
            for index in self.programs.reached[main]:
                module = self.programs.sources.all[index].module
                found |= module.read_names
                found.update(module.attributes)
            self.names[main] = found
        return self.names[main]


def _does_something(source: Source) -> bool:
    """Return whether a file does something when it is started."""
    if source.is_program:
        return True
    for each in source.module.tree.body:
        is_text = isinstance(getattr(each, "value", None), ast.Constant)
        if not isinstance(each, DEFINITIONS) and not is_text:
            return True
    return False


def _list_functions(source: Source, node: ast.AST) -> Iterator[ast.AST]:
    """Yield the functions around a place, from the inside."""
    around = source.module.function_around(node)
    while around is not None:
        if not isinstance(around, ast.Lambda):
            yield around
        around = source.module.function_around(around)
