"""What code is for, as the names around it say: a training never sees what only evaluates, reports or shows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

from envlock.determinism.lint.module import Definition, Module
from envlock.determinism.lint.names import ASIDE_WORDS, SHOWING_WORDS, TRAINING_WORDS

WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def words(name: str) -> Iterator[str]:
    """Yield the words of a name in lower case: of `logDir_2` they are `log` and `dir`."""
    return (word.lower() for word in WORD.findall(name))


def is_aside(module: Module, node: ast.AST) -> bool:
    """Return whether the names in the statement and of the functions around a node say that no training sees it.

    The name of the file decides where those say nothing.
    """
    near = {word for name in _names_around(module, node) for word in words(name)}
    told = near if near & (ASIDE_WORDS | TRAINING_WORDS) else set(words(PurePath(module.path).stem)) - {"model"}
    return not told & TRAINING_WORDS and bool(told & ASIDE_WORDS)


def only_shows(module: Module, node: ast.AST) -> bool:
    """Return whether the function around a node is called so that what it draws is only shown."""
    function = module.function_around(node)
    return not SHOWING_WORDS.isdisjoint(words(getattr(function, "name", "")))


def _names_around(module: Module, node: ast.AST) -> Iterator[str]:
    """Yield the names and texts in the statement of a node, less the body of a loop, and of what is around it."""
    statement = node if isinstance(node, ast.stmt) else None
    for around in module.ancestors(node):
        if isinstance(around, Definition | ast.ClassDef):
            yield around.name
        elif isinstance(around, ast.stmt) and statement is None:
            statement = around
    head = [statement.target, statement.iter] if isinstance(statement, ast.For | ast.AsyncFor) else [statement or node]
    for part in head:
        for each in ast.walk(part):
            if isinstance(each, ast.Name):
                yield each.id
            elif isinstance(each, ast.Attribute):
                yield each.attr
            elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value
