"""Which expressions are sets whose order differs from process to process, as far as the file shows it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from envlock.linter.module import DEPTH, Definition, Module

NUMBERS = re.compile(
    r"(^|_)(ids?|idxs?|index|indexes|indices|nums?|numbers|sizes|lengths|steps?|epochs?|ranks?|seed)$",
    re.IGNORECASE,
)
SAID = ("Set[", "set[", "Set)", "Set,", "Set:", "Set =", "set)", "set,", ": set", "frozenset")
"""What stands in a file that says that something is a set, or hands the function on."""
COUNTERS = frozenset({"int", "float", "len", "round", "ord", "abs", "sum", "id"})
"""Built-in functions that return numbers."""
ALGEBRA = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})
"""Methods of sets that return sets."""
ANNOTATIONS = re.compile(
    r"(typing\.|t\.|collections\.abc\.)?([sS]et|[fF]rozen[sS]et|AbstractSet|MutableSet)(\[(?!int|float).*\])?$"
)


def may_hold_sets(module: Module) -> bool:
    """Return whether there is anything in a file that can be a set: most have nothing, and are spared the search."""
    if module.worded(("set", "frozenset")) or any(map(module.nodes, (ast.Set, ast.SetComp))):
        return True
    if any(word in module.text for word in SAID):
        return True
    return any(_view(side) for node in module.nodes(ast.BinOp) for side in (node.left, node.right))


def is_set(module: Module, node: ast.AST) -> bool:
    """Return whether an expression is a set, and nothing says that it holds numbers, which hash alike everywhere."""
    return _kind(module, node, set()) == "set"


def is_set_of_any(module: Module, node: ast.AST) -> bool:
    """Return whether an expression is a set, of numbers or of anything else."""
    return _kind(module, node, set()) is not None


def _kind(module: Module, node: ast.AST, seen: set[ast.AST]) -> str | None:
    """Return `set`, `numbers` for a set of numbers, or None for what is no set or not known."""
    if node in seen or len(seen) > DEPTH * 4:
        return None
    seen.add(node)
    if isinstance(node, ast.Set):
        return "numbers" if all(looks_like_number(module, item) for item in node.elts) else "set"
    if isinstance(node, ast.SetComp):
        return "numbers" if looks_like_number(module, node.elt) else "set"
    if isinstance(node, ast.Call):
        return _of_call(module, node, seen)
    if isinstance(node, ast.BinOp) and isinstance(
        node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor
    ):
        return _of_both(module, [node.left, node.right], seen)
    if isinstance(node, ast.IfExp):
        return _of_both(module, [node.body, node.orelse], seen)
    if isinstance(node, ast.Name | ast.Attribute):
        return _of_name(module, node, seen)
    return None


def _of_both(module: Module, parts: list[ast.expr], seen: set[ast.AST]) -> str | None:
    """Return what an operation on two makes: views of dicts count as sets here."""
    kinds = [_view(part) or _kind(module, part, seen) for part in parts]
    return "numbers" if "numbers" in kinds else "set" if "set" in kinds else None


def _view(node: ast.expr) -> str | None:
    is_view = (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("keys", "items")
    )
    return "set" if is_view else None


def _of_call(module: Module, call: ast.Call, seen: set[ast.AST]) -> str | None:
    if module.is_builtin(call.func, "set") or module.is_builtin(call.func, "frozenset"):
        return "numbers" if call.args and _holds_numbers(module, call.args[0]) else "set"
    if isinstance(call.func, ast.Attribute) and call.func.attr in ALGEBRA:
        return _kind(module, call.func.value, seen)
    function = module.definition(call.func)
    if isinstance(function, Definition) and not isinstance(call.func, ast.Call):
        returned = [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Return) and node.value is not None
        ]
        kinds = {_kind(module, value, seen) for value in returned[:4]}
        return kinds.pop() if len(kinds) == 1 else None
    return None


def _of_name(module: Module, node: ast.Name | ast.Attribute, seen: set[ast.AST]) -> str | None:
    """Return what a name holds: what it was given last before this place, else what it is given everywhere."""
    if isinstance(node, ast.Name) and _is_annotated(module, node):
        return "set"
    values = _given(module, node)
    kinds = {_kind(module, value, seen) for value in values}
    if len(kinds) != 1 or kinds == {None}:
        return "numbers" if "numbers" in kinds and None not in kinds else None
    if kinds == {"set"} and any(looks_like_number(module, each) for each in _added(module, node)):
        return "numbers"
    return kinds.pop()


def _given(module: Module, node: ast.Name | ast.Attribute) -> list[ast.AST]:
    if isinstance(node, ast.Attribute):
        values = [value for value in module.values(node) if not _is_none(value)]
        here = module.function_around(node) if len(values) > 1 else None
        near = [
            each
            for each in values
            if _ends_before(each, node) and module.function_around(each) is here
        ]
        return near[-1:] or values
    bindings = [
        each for each in module.bindings(node) or [] if each.kind != "other"
    ]  # `|=` and `del` leave a set a set
    if not any(each.kind == "value" for each in bindings):
        return []
    if len(bindings) > 1:
        here = module.function_around(node)
        before = [each for each in bindings if _ends_before(each.node, node)]
        bindings = [each for each in before if module.function_around(each.node) is here][
            -1:
        ] or bindings
    if any(each.kind != "value" for each in bindings):
        return []
    return [each.node for each in bindings if not _is_none(each.node)]


def _ends_before(value: ast.AST, use: ast.AST) -> bool:
    end = (getattr(value, "end_lineno", 0), getattr(value, "end_col_offset", 0))
    return end <= (getattr(use, "lineno", 0), getattr(use, "col_offset", 0))


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_annotated(module: Module, node: ast.Name) -> bool:
    bindings = module.bindings(node) or []
    annotations = [
        getattr(each.node, "annotation", None) for each in bindings if each.kind == "parameter"
    ]
    return len(bindings) == 1 and any(
        each is not None and ANNOTATIONS.match(ast.unparse(each)) for each in annotations
    )


def _added(module: Module, node: ast.Name | ast.Attribute) -> Iterator[ast.expr]:
    """Yield what `name.add(...)` puts into a set."""
    for call, method in module.methods(("add",)):
        if call.args and _is_same(method.value, node):
            yield call.args[0]


def _is_same(one: ast.AST, other: ast.AST) -> bool:
    if isinstance(one, ast.Name) and isinstance(other, ast.Name):
        return one.id == other.id
    return (
        isinstance(one, ast.Attribute)
        and isinstance(other, ast.Attribute)
        and one.attr == other.attr
    )


def _holds_numbers(module: Module, node: ast.AST) -> bool:
    """Return whether what a set is made of looks like numbers."""
    if isinstance(node, ast.Subscript) and isinstance(
        node.slice, ast.Tuple
    ):  # a column of a matrix
        return True
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
        return looks_like_number(module, node.elt)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return bool(node.elts) and all(looks_like_number(module, item) for item in node.elts)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", "")
        mapped = getattr(node.args[0], "id", "") in COUNTERS if node.args else False
        return (
            name == "range"
            or (name == "map" and mapped)
            or (name in ("list", "tuple") and _first(module, node))
        )
    return _is_named_so(node)


def _first(module: Module, call: ast.Call) -> bool:
    return bool(call.args) and _holds_numbers(module, call.args[0])


def looks_like_number(module: Module, node: ast.AST) -> bool:
    """Return whether one value looks like a number (or a tuple of such), by how it is made or what it is called."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    if isinstance(node, ast.Tuple):
        return all(looks_like_number(module, item) for item in node.elts)
    if isinstance(node, ast.UnaryOp):
        return looks_like_number(module, node.operand)
    if isinstance(node, ast.BinOp):
        textual = isinstance(node.op, ast.Add | ast.Mod)  # of strings, too
        sides = [looks_like_number(module, side) for side in (node.left, node.right)]
        return (
            any(sides)
            if not textual
            else all(sides) or (isinstance(node.op, ast.Add) and any(sides))
        )
    if isinstance(node, ast.Call):
        called = node.func
        return getattr(called, "id", "") in COUNTERS or (
            isinstance(called, ast.Attribute) and _is_named_so(called)
        )
    return _is_named_so(node) or (isinstance(node, ast.Name) and _counts(module, node))


def _counts(module: Module, node: ast.Name) -> bool:
    """Return whether a name runs through a range or a set of numbers, counts in `enumerate`, or is a tuple of such."""
    bindings = module.bindings(node) or []
    for binding in bindings:
        if binding.kind == "element" and _holds_numbers(module, binding.node):
            return True
        if binding.kind == "other" and _is_counter(module, node, binding.node):
            return True
    pairs = [
        binding.node
        for binding in bindings
        if binding.kind == "value" and isinstance(binding.node, ast.Tuple)
    ]
    return (
        bool(pairs)
        and len(pairs) == len(bindings)
        and all(looks_like_number(module, each) for each in pairs)
    )


def _is_counter(module: Module, node: ast.Name, iterated: ast.AST) -> bool:
    """Return whether a name is the first of two that a loop over `enumerate` gives values."""
    if not isinstance(iterated, ast.Call) or not module.is_builtin(iterated.func, "enumerate"):
        return False
    loop = module.parent(iterated)
    target = loop.target if isinstance(loop, ast.For | ast.comprehension) else None
    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else None
    return isinstance(first, ast.Name) and first.id == node.id


def _is_named_so(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return NUMBERS.search(name) is not None
