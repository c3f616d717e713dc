"""What an expression is where nobody asks for anything else: a constant, a name of one, or a flag with its default."""

from __future__ import annotations

import ast

from envlock.determinism.lint.module import DEPTH, Module, argument, constant

DEFINERS = ("DEFINE_integer", "DEFINE_bool", "DEFINE_boolean", "DEFINE_float", "DEFINE_string")
ACTIONS = {"store_true": False, "store_false": True}
"""The defaults of flags without a value."""


def default(module: Module, node: ast.AST | None) -> object:
    """Return the constant that an expression is by default; `...` where this file does not say."""
    for _ in range(DEPTH):
        if isinstance(node, ast.Attribute):
            return _flags(module).get(node.attr, ...)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found = constant(node.operand) if constant(node.operand) is not ... else default(module, node.operand)
            return ... if found is ... else not found
        if not isinstance(node, ast.Name):
            return constant(node)
        bindings = module.bindings(node) or []
        if len(bindings) != 1 or bindings[0].kind != "value":
            return ...
        node = bindings[0].node
    return ...


def _flags(module: Module) -> dict[str, object]:
    """Return the flags that a file defines, with their defaults; `...` for one that is defined twice or demanded."""
    found: dict[str, object] = {}
    for call in module.worded(("add_argument", *DEFINERS)):
        names = [str(constant(each)) for each in call.args if isinstance(constant(each), str)]
        if getattr(call.func, "attr", getattr(call.func, "id", "")) in DEFINERS:
            name, value = "".join(names[:1]), constant(argument(call, "default", 1))
        else:
            name = str(constant(argument(call, "dest")))
            long = [each for each in names if each.startswith("--")] or names
            name = name if name != "Ellipsis" else "".join(long[:1]).lstrip("-").replace("-", "_")
            value = _of_argument(call)
        found[name] = ... if name in found and found[name] != value else value
    return found


def _of_argument(call: ast.Call) -> object:
    given = argument(call, "default")
    if given is not None:
        return constant(given)
    positional = bool(call.args) and not str(constant(call.args[0])).startswith("-")
    if positional or constant(argument(call, "required")) is True:
        return ...
    return ACTIONS.get(str(constant(argument(call, "action"))))
