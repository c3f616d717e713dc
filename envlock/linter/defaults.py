"""What an expression is where nobody asks for anything else: a constant, a name of one, or a flag with its default."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any

from envlock.linter.module import DEPTH, FILES, Definition, Module, argument, constant, has_star

DEFINERS = ("DEFINE_integer", "DEFINE_bool", "DEFINE_boolean", "DEFINE_float", "DEFINE_string")
ACTIONS = {"store_true": False, "store_false": True}
"""The defaults of flags without a value."""

ALL = 64
"""Files that are asked for calls where each one counts."""
COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}


def default(module: Module, node: ast.AST | None, *, parameters: bool = False) -> object:
    """Return the constant that an expression is by default; `...` where this file does not say.

    Args:
        module: the file.
        node: the expression; None gives `...`.
        parameters: a parameter is what the function gives it, although callers may give it something else.
    """
    for _ in range(DEPTH):
        if isinstance(node, ast.Attribute):
            return _flags(module).get(node.attr, ...)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found = default(module, node.operand, parameters=parameters)
            return ... if found is ... else not found
        if isinstance(
            node, ast.BinOp
        ):  # with None it fails, so that what is around it asks for None first
            sides = [constant_or_flag(module, side) for side in (node.left, node.right)]
            return None if None in sides else ...
        if not isinstance(node, ast.Name):
            return constant(node)
        bindings = module.bindings(node) or []
        if len(bindings) == 1 and bindings[0].kind == "parameter" and parameters:
            return constant(given_by_default(module, node))
        if len(bindings) != 1 or bindings[0].kind != "value":
            return ...
        node = bindings[0].node
    return ...


def constant_or_flag(module: Module, node: ast.AST) -> object:
    """Return the constant that a name or a flag is by default; `...` for all else."""
    return default(module, node) if isinstance(node, ast.Name | ast.Attribute) else constant(node)


def given_by_default(module: Module, node: ast.Name) -> ast.expr | None:
    """Return what a parameter is where no caller gives it, or None where each must."""
    function = module.function_around(node)
    while function is not None:
        arguments = function.args
        plain = [*arguments.posonlyargs, *arguments.args]
        pairs = [
            *zip(plain[::-1], arguments.defaults[::-1], strict=False),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        if any(each.arg == node.id for each in (*plain, *arguments.kwonlyargs)):
            return next((value for each, value in pairs if each.arg == node.id), None)
        function = module.function_around(function)
    return None


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


def is_optional(module: Module, node: ast.expr) -> bool:
    """Return whether a seed has no value by default: by its flag, or as a parameter that a call here leaves out."""
    if default(module, node) is None:
        return True
    kept = module.values(node) if isinstance(node, ast.Attribute) else []
    if len(kept) == 1 and isinstance(kept[0], ast.Name):  # self.seed = seed
        return is_optional(module, kept[0])
    function = module.function_around(node) if isinstance(node, ast.Name) else None
    if not isinstance(node, ast.Name) or not isinstance(function, Definition):
        return False
    given = given_by_default(module, node)
    if (
        given is None
        or constant(given) is not None
        or [each.kind for each in module.bindings(node) or []] != ["parameter"]
    ):
        return False
    owner = module.class_around(function) if function.name == "__init__" else None
    named = (function.name, "Fire", "run", *([owner.name] if owner is not None else []))
    if any(_leaves_out(module, call, function, node.id) for call in module.worded(named)):
        return True
    elsewhere = [
        _gives_nothing(other, call, function, node.id)
        for other, call in _calls_elsewhere(module, function)
    ]
    return bool(elsewhere) and all(elsewhere)


def _leaves_out(module: Module, call: ast.Call, function: Definition, name: str) -> bool:
    """Return whether a call starts a function without giving it one of its parameters, `fire.Fire(function)` too."""
    if any(module.definition(each) is function for each in call.args if isinstance(each, ast.Name)):
        return len(call.args) == 1
    owner = module.class_around(function) if function.name == "__init__" else None
    bindings = (module.bindings(call.func) or []) if isinstance(call.func, ast.Name) else []
    made = owner is not None and bool(bindings) and bindings[-1].node is owner
    called = made or module.definition(call.func) is function
    return called and not has_star(call) and argument(call, name, _place(function, name)) is None


def _place(function: Definition, name: str) -> int | None:
    """Return the position of a parameter, `self` not counted."""
    places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return places.index(name) - (places[0] in ("self", "cls")) if name in places else None


def _calls_elsewhere(
    module: Module, function: Definition, limit: int = FILES
) -> Iterator[tuple[Module, ast.Call]]:
    """Yield the calls in other files, `limit` at most, of a function, or of the class that it makes objects of."""
    owner = module.class_around(function) if function.name == "__init__" else function
    if module.project is not None and owner is not None and module.parent(owner) is module.tree:
        yield from module.project.calls(module.path, owner.name, limit)


def _gives_nothing(module: Module, call: ast.Call, function: Definition, name: str) -> bool:
    """Return whether a call leaves a parameter out, or gives it a flag whose default is none."""
    given = argument(call, name, _place(function, name))
    handed = isinstance(given, ast.Name) and default(module, given, parameters=True) is None
    return not has_star(call) and (given is None or handed or default(module, given) is None)


def handed_to_worker(module: Module, node: ast.Name) -> list[ast.AST]:
    """Return what a parameter is given where workers start its function: `Process(target=work, args=(rows, seed))`."""
    function = module.function_around(node)
    if not isinstance(function, Definition) or [
        each.kind for each in module.bindings(node) or []
    ] != ["parameter"]:
        return []
    place, found = _place(function, node.id), list[ast.AST]()
    for call in module.worded(("Process", "Thread")):
        target, given = argument(call, "target", 1), argument(call, "args", 3)
        if (
            target is not None
            and module.definition(target) is function
            and isinstance(given, ast.Tuple | ast.List)
        ):
            found.extend(given.elts[place : place + 1] if place is not None else ())
    return found


def is_off(module: Module, call: ast.Call) -> bool:
    """Return whether a call stands in a branch that is not taken by default."""
    inside: ast.AST = call
    for around in module.ancestors(call):
        if isinstance(around, ast.If):
            taken = truth(module, around.test)
            if (inside in around.body and taken is False) or (
                inside in around.orelse and taken is True
            ):
                return True
        inside = around
    return False


def is_never_asked_for(module: Module, node: ast.AST) -> bool:
    """Return whether a node runs only where a parameter is given that every caller leaves out: `if shuffled:`."""
    inside = node
    for around in module.ancestors(node):
        if isinstance(around, ast.If):
            taken = _without_parameters(module, around.test)
            if (inside in around.body and taken is False) or (
                inside in around.orelse and taken is True
            ):
                return True
        body = getattr(around, "body", None)
        before = body[: body.index(inside)] if isinstance(body, list) and inside in body else []
        left = (
            each
            for each in before
            if isinstance(each, ast.If) and isinstance(each.body[-1], ast.Return)
        )
        if any(_without_parameters(module, each.test) is True for each in left):
            return True
        inside = around
    return False


def _without_parameters(module: Module, test: ast.expr) -> object:
    """Return whether a test of parameters that no caller gives is true; `...` for all other tests."""
    names = [each for each in ast.walk(test) if isinstance(each, ast.Name)]
    alone = bool(names) and all(_is_given_by_nobody(module, each) for each in names)
    return truth(module, test, parameters=True) if alone else ...


def _is_given_by_nobody(module: Module, node: ast.Name) -> bool:
    function = module.function_around(node)
    bound = [each.kind for each in module.bindings(node) or []]
    if (
        not isinstance(function, Definition)
        or bound != ["parameter"]
        or given_by_default(module, node) is None
    ):
        return False
    here = [
        each for each in module.worded((function.name,)) if module.definition(each.func) is function
    ]
    calls = [*here, *(call for _, call in _calls_elsewhere(module, function, ALL))]
    place = _place(function, node.id)
    return bool(calls) and all(
        not has_star(call) and argument(call, node.id, place) is None for call in calls
    )


def truth(module: Module, test: ast.expr, *, parameters: bool = False) -> object:
    """Return whether a test is true by default; `...` where this file does not say; parameters as for `default`."""
    if isinstance(test, ast.BoolOp):
        parts = [_plain_truth(module, part, parameters=parameters) for part in test.values]
        decided = isinstance(
            test.op, ast.Or
        )  # one true part decides an `or`, one false part an `and`
        return decided if decided in parts else ... if ... in parts else not decided
    return _plain_truth(module, test, parameters=parameters)


def _plain_truth(module: Module, test: ast.expr, *, parameters: bool) -> object:
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        compare = COMPARED.get(type(test.ops[0]))
        sides = [
            default(module, side, parameters=parameters)
            for side in (test.left, test.comparators[0])
        ]
        try:
            return ... if compare is None or ... in sides else bool(compare(*sides))
        except TypeError:
            return ...
    found = default(module, test, parameters=parameters)
    return ... if found is ... else bool(found)
