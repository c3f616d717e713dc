"""Statements that a program never gets past, because they read a name that nothing defines.

Old research code has many: a misspelt `FALSE`, a constant that was renamed. What follows does not run,
so that nothing there makes a result differ. The names themselves are for other linters (pyflakes' F821).
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from envlock.linter.module import Module

# Those that Python 2 had, and those that are there while a program, a notebook or a profiler runs.
KNOWN = frozenset(
    [
        *dir(builtins),
        *("apply", "basestring", "buffer", "cmp", "coerce", "execfile", "file", "intern", "long"),
        *("raw_input", "reduce", "reload", "unichr", "unicode", "xrange"),
        *("__class__", "__file__", "__path__", "WindowsError", "display", "get_ipython", "profile"),
    ]
)
DEFINES = re.compile(
    r"\bexec|__builtin|builtins|(globals|locals|vars)\(\)(\[|\.(update|setdefault|__))"
)
"""How a file can define names that its text does not show."""
HEADS = (ast.Assign, ast.AugAssign, ast.Expr, ast.For, ast.If, ast.Return, ast.While, ast.With)
"""Statements whose expressions are evaluated when they run: annotations, for example, may not be."""
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
MAYBE = (
    *(ast.BoolOp, ast.IfExp, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
"""Expressions of which a part may not be evaluated."""


def find_undefined(module: Module) -> frozenset[ast.stmt]:
    """Return the statements of a file that end in a NameError whenever they run."""
    if module.cells is not None:
        return frozenset()
    if any(each.names[0].name == "*" for each in module.list_nodes(ast.ImportFrom)):
        return frozenset()
    defined = KNOWN.union(_list_defined(module))
    found: set[ast.stmt] = set()
    for name in module.list_nodes(ast.Name):
        if isinstance(name.ctx, ast.Load) and name.id not in defined:
            statement = _find_statement(module, name)
            if statement is not None:
                found.add(statement)
    # Most files name nothing undefined: only the others are searched for how they define it.
    if found and DEFINES.search(module.text):
        return frozenset()
    return frozenset(found)


def is_after_error(module: Module, failing: frozenset[ast.stmt], node: ast.AST) -> bool:
    """Return whether a failing statement ends the program, or its function, before it comes to a
    place.
    """
    if not failing:
        return False
    inside = node
    around = module.get_parent(inside)
    while around is not None:
        if not failing.isdisjoint(_list_before(around, inside)):
            return True
        # A function is called after its file has run, or not at all.
        if isinstance(around, ast.Module) and isinstance(inside, DEFINITIONS):
            return not failing.isdisjoint(around.body)
        inside, around = around, module.get_parent(around)
    return False


def _list_before(around: ast.AST, inside: ast.AST) -> list[ast.stmt]:
    """Return the statements of a block that run before one of them."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(around, field, None)
        if isinstance(block, list) and inside in block:
            return block[: block.index(inside)]
    return []


def _list_defined(module: Module) -> Iterator[str]:
    """Yield every name that a file binds anywhere."""
    for name in module.list_nodes(ast.Name):
        if not isinstance(name.ctx, ast.Load):
            yield name.id
    for alias in module.list_nodes(ast.alias):
        yield alias.asname or alias.name.partition(".")[0]
    for parameter in module.list_nodes(ast.arg):
        yield parameter.arg
    for kind in (*DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar):
        for each in module.list_nodes(kind):
            yield getattr(each, "name", None) or ""
    for mapping in module.list_nodes(ast.MatchMapping):
        yield mapping.rest or ""


def _find_statement(module: Module, name: ast.Name) -> ast.stmt | None:
    """Return the statement that certainly evaluates a name, unless something catches its error."""
    node: ast.AST | None = name
    while node is not None and not isinstance(node, ast.stmt):
        if isinstance(node, MAYBE):
            return None
        node = module.get_parent(node)
    around: ast.AST | None = node
    while around is not None:
        if isinstance(around, ast.Try):
            return None
        around = module.get_parent(around)
    if isinstance(node, HEADS):
        return node
    return None
