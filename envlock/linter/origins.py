"""What names and attributes of a file can stand for: what the text assigns to them, not values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from envlock.linter import names as tables
from envlock.linter.arguments import has_parameter
from envlock.linter.module import get_last_word, walk
from envlock.linter.project import File, Project

STEPS = 3
"""Assignments through which a seed is followed."""


class Origins:
    """The assignments of one file."""

    def __init__(self, project: Project, file: File) -> None:
        self.project = project
        self.file = file
        self.module = file.module

    def list_given(self, value: ast.expr) -> list[ast.expr]:
        """Return what is assigned to a name or an attribute; of anything else, itself."""
        if isinstance(value, ast.Name):
            return self.list_values(value)
        if isinstance(value, ast.Attribute):
            return self._attributes.get(value.attr, [])
        return [value]

    def list_values(self, name: ast.Name) -> list[ast.expr]:
        """Return what is assigned to a name in its own function, or else in the file."""
        scope = self.file.find_scope(name)
        mine: list[ast.expr] = []
        others: list[ast.expr] = []
        for each in self._assignments.get(name.id, ()):
            (mine if self.file.find_scope(each) is scope else others).append(each.value)
        # A parameter hides a name of the file, and what callers give it stands elsewhere.
        is_own = scope.node is not None and has_parameter(scope.node, name.id)
        return mine or ([] if is_own else others)

    def list_makers(self, value: ast.expr) -> Iterator[str]:
        """Yield the names of the calls that something is assigned from."""
        for each in self.list_given(value):
            if isinstance(each, ast.Call):
                yield self.project.resolve(self.file, each.func) or ""

    @cached_property
    def _assignments(self) -> dict[str, list[ast.Assign]]:
        found: dict[str, list[ast.Assign]] = {}
        for each in self.module.list_nodes(ast.Assign):
            for target in each.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(each)
        return found

    @cached_property
    def _attributes(self) -> dict[str, list[ast.expr]]:
        """What is assigned to each attribute, on whatever object."""
        found: dict[str, list[ast.expr]] = {}
        for each in self.module.list_nodes(ast.Assign):
            for target in each.targets:
                if isinstance(target, ast.Attribute):
                    found.setdefault(target.attr, []).append(each.value)
        return found

    # What a method is called on

    def is_foreign(self, value: ast.expr) -> bool:
        """Return whether something is made by a library that is neither TensorFlow nor Keras."""
        names = list(self.list_makers(value))
        given = (value, *self.list_given(value))
        plain = [each for each in given if isinstance(each, ast.Name)]
        names += [self.project.resolve(self.file, each) or "" for each in plain]
        return any(name.partition(".")[0] in tables.FOREIGN for name in names)

    def is_own(self, call: ast.Call, value: ast.expr, word: str) -> bool:
        """Return whether a method is the project's own, of a class that the text shows."""
        owner = self.file.find_scope(call).owner
        if isinstance(value, ast.Name) and self.project.is_module(self.file, value.id):
            return True
        if isinstance(value, ast.Name) and value.id == "self" and owner is not None:
            classes = [owner.name]
        else:
            given = self.list_given(value)
            classes = [get_last_word(each.func) for each in given if isinstance(each, ast.Call)]
            classes.append(get_last_word(value))  # `Tagger.load(path)`
        return any(word in self.project.methods.get(each, ()) for each in classes)

    # Seeds

    def find_chance(self, given: ast.expr, own: str = "-", steps: int = STEPS) -> str:
        """Return why a seed differs from run to run: `none`, `clock`, or an empty text.

        Args:
            given: the seed.
            own: how the names of what draws from the generator begin that it seeds.
            steps: the assignments to go through.
        """
        if isinstance(given, ast.Constant):
            return "none" if given.value is None else ""
        if any(self._is_chance(node, own) for node in walk(given)):
            return "clock"
        if not steps or not isinstance(given, ast.Name | ast.Attribute):
            return ""
        values = self.list_given(given)
        problems = {self.find_chance(each, own, steps - 1) for each in values}
        if "clock" in problems:
            return "clock"
        if problems == {"none"}:
            return "none"
        return ""

    def _is_chance(self, node: ast.AST, own: str) -> bool:
        """Return whether a call reads a clock or an identity, or draws from what it is to seed."""
        if not isinstance(node, ast.Call):
            return False
        name = self.project.resolve(self.file, node.func)
        if name is not None:
            return name in tables.CLOCKS or name.startswith(own)
        return get_last_word(node.func) == "id" and "id" not in self.module.own_names
