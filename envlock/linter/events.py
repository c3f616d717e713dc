"""Events: what code does that can make numbers differ, and where.

Nothing is run and no value is followed. A call is what its name says, by the rows of
lint_names.toml; what a name stands for is read off the assignments to it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from envlock.linter import names as tables
from envlock.linter.project import File, Scope

PYTHON, NUMPY, TENSORFLOW, KERAS, OWN = "python", "numpy", "tf", "keras", "own"
"""Generators that a seed reaches; what draws from a generator of its own is reached by none."""


@dataclass(eq=False)
class Event:
    """Something that the code does.

    Attributes:
        kind: what, such as `draw`, `seed`, `train` or `list`.
        of: the generator, or what else it is about.
        name: the library's name for it, as the rules write it.
        node: the place.
        scope: the function around it.
    """

    kind: str
    of: str
    name: str
    node: ast.AST
    scope: Scope

    @property
    def file(self) -> File:
        """The file of the place."""
        return self.scope.file

    @property
    def line(self) -> int:
        """The line at which a call of a chain stands: that of its own name."""
        return find_line(self.node)

    @property
    def lines(self) -> set[int]:
        """The lines to name: also that at which a chain of calls begins."""
        return {self.line, getattr(self.node, "lineno", self.line)}


def is_shown(event: Event) -> bool:
    """Return whether what a call gives goes into what is only printed or plotted."""
    module = event.file.module
    parent = module.get_parent(event.node)
    while parent is not None and not isinstance(parent, ast.stmt):
        if isinstance(parent, ast.Call) and parent is not event.node:
            function = parent.func
            if isinstance(function, ast.Name) and function.id == "print":
                return True
            if isinstance(function, ast.Attribute) and function.attr in tables.SHOWING_METHODS:
                return True
            name = module.resolve_name(function)
            if name is not None and name.startswith(tables.SHOWERS):
                return True
        parent = module.get_parent(parent)
    return False


def find_line(node: ast.AST) -> int:
    """Return the line of a call's own name, which in a chain is not that of its first word."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.end_lineno or node.lineno
    return getattr(node, "lineno", 1)
