"""Sums whose order nobody promised: AddN of three or more tensors."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from envlock.data.determinism import holds
from envlock.linter.module import Hit, Module, argument, constant
from envlock.linter.names import TENSORFLOW_1
from envlock.linter.scopes import Function

ADDERS = {
    "tf.add_n": 0,
    "tf.math.add_n": 0,
    "tf.raw_ops.AddN": None,
    "tf.accumulate_n": 0,
    "tf.math.accumulate_n": 0,
}


def add_n(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV402: AddN of three or more."""
    graphs = not module.named.keys().isdisjoint(TENSORFLOW_1)
    measured = holds([">=2.5"], tensorflow)
    for call, name in module.called(ADDERS):
        if (
            module.function_around(call) is None and not graphs
        ):  # outside of graphs it adds in the order given
            continue
        given = argument(call, "inputs", ADDERS[name])
        many = None if given is None else _count(module, given)
        if (many is not None and many < 3) or (not measured and _is_given(module, given)):
            continue
        if isinstance(given, ast.ListComp) and _is_counted(module, given.elt):
            continue
        if isinstance(given, ast.List | ast.Tuple) and many is not None:
            yield Hit(call, f"{name} adds {many} tensors in any order")
        elif not _is_asserted(module, call):
            yield Hit(call, f"{name} adds three or more tensors in any order")


def _is_counted(module: Module, each: ast.expr) -> bool:
    """Return whether each of what is added is a size: whole numbers add up alike in any order."""
    return isinstance(each, ast.Call) and module.name(each.func) in (
        "tf.size",
        "tf.shape",
        "tf.rank",
    )


def _is_given(module: Module, given: ast.expr | None) -> bool:
    """Return whether callers decide how many there are."""
    bindings = module.bindings(given) if isinstance(given, ast.Name) else None
    return bool(bindings) and all(each.kind == "parameter" for each in bindings or [])


def _count(module: Module, given: ast.expr) -> int | None:
    """Return how many tensors there are at most: as written, or as put one by one into a list that began so."""
    if isinstance(given, ast.List | ast.Tuple):
        return (
            None if any(isinstance(item, ast.Starred) for item in given.elts) else len(given.elts)
        )
    table = _table(given)
    if table is not None:
        return _count_keys(module, table)
    values = module.values(given) if isinstance(given, ast.Name) else []
    around = module.function_around(given) or module.tree
    if len(values) != 1 or len(module.bindings(given) or []) != 1:  # type: ignore[arg-type]
        return None
    if not isinstance(values[0], ast.List) or any(
        isinstance(item, ast.Starred) for item in values[0].elts
    ):
        return None
    uses = [
        node
        for node in ast.walk(around)
        if isinstance(node, ast.Name) and node.id == getattr(given, "id", "")
    ]
    read = [use for use in uses if isinstance(use.ctx, ast.Load) and use is not given]
    more = [use for use in read if not isinstance(module.parent(use), ast.Assert)]
    if all(_is_one_more(module, use, around) for use in more):
        return len(values[0].elts) + len(more)
    return None


def _table(given: ast.expr) -> ast.Name | None:
    """Return the dict whose values are added: `[loss for loss in losses.values()]`, `list(losses.values())`."""
    if (
        isinstance(given, ast.ListComp)
        and len(given.generators) == 1
        and isinstance(given.elt, ast.Name)
    ):
        given = given.generators[0].iter
    elif (
        isinstance(given, ast.Call)
        and isinstance(given.func, ast.Name)
        and given.func.id == "list"
        and given.args
    ):
        given = given.args[0]
    values = given.func if isinstance(given, ast.Call) else None
    owner = values.value if isinstance(values, ast.Attribute) and values.attr == "values" else None
    return owner if isinstance(owner, ast.Name) else None


def _count_keys(module: Module, table: ast.Name) -> int | None:
    """Return how many keys a dict has that begins empty and gets only keys that are written out."""
    values, around = module.values(table), module.function_around(table) or module.tree
    if len(module.bindings(table) or []) != 1 or not all(
        isinstance(each, ast.Dict) and not each.keys for each in values
    ):
        return None
    keys: set[object] = set()
    for use in ast.walk(around):
        if isinstance(use, ast.Name) and use.id == table.id and isinstance(use.ctx, ast.Load):
            parent = module.parent(use)
            if getattr(parent, "attr", "values") not in ("values", "items", "keys"):
                return None
            if isinstance(parent, ast.Subscript) and constant(parent.slice) is not ...:
                keys.add(constant(parent.slice))
            elif not isinstance(parent, ast.Attribute | ast.Return) and not _is_handed_back(
                module, parent
            ):
                return None
    return len(keys)


def _is_one_more(module: Module, use: ast.Name, around: ast.AST) -> bool:
    """Return whether a use of a list puts one thing into it, once: `terms.append(x)` outside of loops."""
    method = module.parent(use)
    call = (
        module.parent(method)
        if isinstance(method, ast.Attribute) and method.attr == "append"
        else None
    )
    if not isinstance(call, ast.Call) or call.func is not method:
        return False
    inside = itertools.takewhile(lambda node: node is not around, module.ancestors(call))
    return not any(
        isinstance(node, ast.For | ast.While | ast.comprehension | Function) for node in inside
    )


def _is_asserted(module: Module, call: ast.Call) -> bool:
    """Return whether a test looks at the sum at once: then it is no part of a graph."""
    parent = module.parent(call)
    method = (
        parent.func.attr
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute)
        else ""
    )
    return method.startswith("assert")


def _is_handed_back(module: Module, around: ast.AST | None) -> bool:
    return isinstance(around, ast.Tuple) and isinstance(module.parent(around), ast.Return)
