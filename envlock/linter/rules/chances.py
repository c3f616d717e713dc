"""Seeds that are by chance: of the clock, drawn, or None."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from envlock.linter.defaults import is_off, is_optional
from envlock.linter.module import Definition, Hit, Module, argument, constant
from envlock.linter.names import CLOCKS, NUMPY_OWN, SAMPLERS, SEEDS
from envlock.linter.program import drawn_from
from envlock.linter.rules.seeds import beside_data
from envlock.linter.sets import looks_like_number

SEEDED_BY_HAND = frozenset(
    {"random.Random", "tf.random.Generator.from_seed", "jax.random.PRNGKey", "jax.random.key"}
)
IS_SEED = re.compile(r"(^|_)seeds?$|^random_state$", re.IGNORECASE)
FLAGS = re.compile(r"add_argument|DEFINE_(integer|int|string)|option")


def by_chance(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV207: a seed from the clock, the process id or nothing."""
    yield from _not_by_default(module)
    for call, name in module.called(SEEDS):
        if not call.args and not call.keywords:
            yield from beside_data(
                module, Hit(call, f"{name}() without a number seeds from the operating system")
            )
        elif call.args and constant(call.args[0]) is None:
            yield Hit(call, f"{name}(None) seeds from the operating system")
        elif call.args and drawn_from(module, call.args[0]) is not None:
            generator = f"seeds-{drawn_from(module, call.args[0])}"
            yield Hit(
                call,
                "the seed is itself drawn, by what nothing seeds",
                unless=frozenset({generator}),
            )
    if module.named.keys().isdisjoint(CLOCKS) and not module.worded(("hash", "id")):
        return
    for call in module.nodes(ast.Call):
        for given in _seeds_of(module, call, module.name(call.func) or ""):
            chance = _chance(module, given)
            if chance is not None:
                yield Hit(call, f"the seed comes from {chance}, and differs from run to run")
                break


def _not_by_default(module: Module) -> Iterator[Hit]:
    """Yield what seeds only where somebody asks for it, by a flag or an argument."""
    for call, _ in module.called((*SEEDS, *NUMPY_OWN, "random.Random")):
        if call.args and constant(call.args[0]) is not None and is_optional(module, call.args[0]):
            yield Hit(
                call, "the seed has no value unless one is given: by default nothing is seeded"
            )
        elif module.name(call.func) in SEEDS and is_off(module, call):
            yield Hit(call, "this runs only where it is asked for: by default nothing is seeded")


def _seeds_of(module: Module, call: ast.Call, name: str) -> Iterator[ast.expr]:
    """Yield the arguments of a call that are seeds: of generators, datasets and flags, and of parameters called so."""
    if name in SEEDS or name in NUMPY_OWN or name in SEEDED_BY_HAND:
        yield from call.args[:1]
    yield from (
        keyword.value for keyword in call.keywords if keyword.arg and IS_SEED.search(keyword.arg)
    )
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    place = 1 if method == "shuffle" else SAMPLERS.get(name)
    if place is not None and len(call.args) > place:
        yield call.args[place]
    if (
        FLAGS.fullmatch(method)
        and call.args
        and IS_SEED.search(str(constant(call.args[0])).strip("-").replace("-", "_"))
    ):
        default = argument(call, "default", 1)
        yield from [default] if default is not None else []
    function = (
        module.definition(call.func) if call.args and isinstance(call.func, ast.Name) else None
    )
    if isinstance(function, Definition):
        pairs = zip(function.args.args, call.args, strict=False)
        yield from (given for parameter, given in pairs if IS_SEED.search(parameter.arg))


def _chance(module: Module, node: ast.expr) -> str | None:
    """Return what in an expression, or in one of the values that a name in it is given, is another in every run."""
    stack: list[ast.AST] = [node]
    seen: set[ast.AST] = set()
    while stack and len(seen) < 64:
        part = stack.pop()
        if part in seen:
            continue
        seen.add(part)
        if isinstance(part, ast.Call):
            name = module.name(part.func)
            if name in CLOCKS:
                return name
            if _is_address(module, part):
                return f"{ast.unparse(part.func)}()"
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Load):
            stack.extend(_values(module, part))
        if not isinstance(part, ast.Name | ast.Lambda | ast.FunctionDef | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(part))
    return None


def _is_address(module: Module, call: ast.Call) -> bool:
    """Return whether this is hash() of what is no number, or id()."""
    salted = module.is_builtin(call.func, "hash") and not any(
        looks_like_number(module, each) for each in call.args
    )
    return salted or module.is_builtin(call.func, "id")


def _values(module: Module, node: ast.Name | ast.Attribute) -> list[ast.AST]:
    """Return what a name is given; for `args.seed`, what is assigned to it in this file."""
    found = module.values(node)
    if found or isinstance(node, ast.Name) or not IS_SEED.search(node.attr):
        return found
    written = ast.unparse(node)
    pairs = [
        (target, assign.value) for assign in module.nodes(ast.Assign) for target in assign.targets
    ]
    return [
        value
        for target, value in pairs
        if isinstance(target, ast.Attribute)
        and target.attr == node.attr
        and ast.unparse(target) == written
    ]
