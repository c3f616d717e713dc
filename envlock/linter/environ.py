"""Where code sets environment variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from envlock.linter.module import Module, read_literal

CALLS = ("os.environ.setdefault", "os.environ.update", "os.putenv")
"""What sets a variable, beside an assignment."""


@dataclass(frozen=True)
class Setting:
    """A variable set by code; `value` is the text it gets, `...` where that is computed."""

    node: ast.stmt | ast.expr
    name: str
    value: object


def list_settings(module: Module) -> Iterator[Setting]:
    """Yield every variable that the code sets in its own environment, under a name that stands
    there.
    """
    # Most files set none: their nodes need not be looked at.
    if "environ" not in module.text and "putenv" not in module.text:
        return
    for assign in module.list_nodes(ast.Assign):
        for target in assign.targets:
            yield from _read_subscript(module, assign, target, assign.value)
    for call, name in module.find_calls(CALLS):
        if name == "os.environ.update":
            yield from _read_update(call)
        elif len(call.args) >= 2:
            yield from _read_setting(call, call.args[0], call.args[1])


def _read_subscript(
    module: Module, assign: ast.Assign, target: ast.AST, value: ast.AST
) -> Iterator[Setting]:
    if isinstance(target, ast.Subscript) and module.resolve_name(target.value) == "os.environ":
        yield from _read_setting(assign, target.slice, value)


def _read_update(call: ast.Call) -> Iterator[Setting]:
    for item in call.args:
        if isinstance(item, ast.Dict):
            yield from _read_dict(call, item)
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield Setting(call, keyword.arg, read_literal(keyword.value))


def _read_dict(node: ast.stmt | ast.expr, literal: ast.Dict) -> Iterator[Setting]:
    for key, value in zip(literal.keys, literal.values, strict=True):
        if key is not None:  # it is None for `**more`
            yield from _read_setting(node, key, value)


def _read_setting(node: ast.stmt | ast.expr, key: ast.AST, value: ast.AST) -> Iterator[Setting]:
    name = read_literal(key)
    if isinstance(name, str):
        yield Setting(node, name, read_literal(value))
