"""In which part of a project a finding lies: its code, its tests, or code that nothing in it calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from pathlib import PurePath

from envlock.linter.interpreter.programs import Programs
from envlock.linter.interpreter.source_files import Source
from envlock.linter.undefined_names import is_after_error

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
        self.names: dict[tuple[Source, Source | None], set[str]] = {}
        self.called_by_named: dict[tuple[Source, str], bool] = {}
        self.mains = [each for each in sources if not each.is_test and _does_something(each)]
        self.started: set[Source] = set()  # those, and what they import
        for main in self.mains:
            self.started.update(sources[index] for index in programs.reached.get(main, ()))

    def find_part(self, source: Source, node: ast.AST) -> str:
        """Return the part in which a place lies."""
        if source.is_test or not TEST_FOLDERS.isdisjoint(PurePath(source.path).parts[:-1]):
            return TESTS
        if is_after_error(source.module, source.undefined, node):
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
        """Return whether a file that belongs to one program with this one names the function, or
        its class.

        Names are enough: a table or `getattr` may call what no run has shown.
        """
        name = getattr(function, "name", "")
        owner = source.module.get_parent(function)
        if isinstance(owner, ast.ClassDef):
            words = {owner.name}
            if not name.startswith("__"):  # Python calls it
                words.add(name)
            return self.is_read(source, words, None)
        return self.is_read(source, {name}, source) or self.is_called_by_named(source, name)

    def is_read(self, source: Source, words: Set[str], own: Source | None) -> bool:
        """Return whether a program that a file is part of reads some names; those that `own` only
        calls do not count.
        """
        for main in self.mains:
            files = self.programs.reached.get(main, ())
            if source.index in files and words <= self.list_names(main, own):
                return True
        return False

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

    def list_names(self, main: Source, own: Source | None) -> set[str]:
        """Return the names, attributes and words in quotes of a program and what it imports.

        Of the file `own`, the names that it only calls are left out.
        """
        if (main, own) not in self.names:
            found: set[str] = set()
            for index in self.programs.reached[main]:
                each = self.programs.sources.all[index]
                module = each.module
                if each is own:
                    found |= module.passed_names
                else:
                    found |= module.read_names
                found |= module.own_attributes
                found |= module.quoted_words
            self.names[main, own] = found
        return self.names[main, own]


def _does_something(source: Source) -> bool:
    """Return whether a file does something when it is started, and comes to its end."""
    if not source.undefined.isdisjoint(source.module.tree.body):
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
