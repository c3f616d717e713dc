"""Orders that nobody promised: of folders, of sets, of hashes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from envlock.determinism.lint.module import Hit, Module, argument
from envlock.determinism.lint.names import LISTING_METHODS, LISTINGS, NUMPY_OWN, SEEDS
from envlock.determinism.lint.scopes import Function

ORDERLESS = frozenset({"sorted", "len", "set", "frozenset", "max", "min", "sum", "any", "all", "bool", "print", "next"})
"""Built-in functions whose result does not depend on the order (or that do not let it into data)."""
SORTERS = frozenset({"natsort.natsorted", "natsort.os_sorted", "numpy.sort", "numpy.unique", "collections.Counter"})
KEEPERS = frozenset({"append", "extend", "write", "insert", "put", "writerow", "add_example", "add"})
SALTED = ", which differs from process to process for strings and for objects hashed by address"
NUMBERS = re.compile(r"(^|_)(ids?|idx|index|indexes|indices|num|nums|numbers|sizes|lengths)$", re.IGNORECASE)
DATA = ("tf", "keras", "numpy", "pandas", "torch", "sklearn", "datasets", "jax")


def files(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV303: os.listdir, glob or iterdir, unsorted, into data."""
    if not set(DATA) & module.packages:
        return
    for call in module.nodes(ast.Call):
        name = _listing(module, call)
        if name is not None and name != "os.walk" and _flows_into_data(module, call):
            yield Hit(call, f"{name} lists files in the order of the file system")


def _listing(module: Module, call: ast.Call) -> str | None:
    name = module.name(call.func)
    if name in LISTINGS:
        return name
    if isinstance(call.func, ast.Attribute) and call.func.attr in LISTING_METHODS and name is None:
        paths = any(each == "pathlib" or each.startswith("pathlib.") for each in module.imports)
        return f"Path.{call.func.attr}" if paths else None
    return None


def sets(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV304: list(set(...)), enumerate(set(...)), a loop over a set that fills something."""
    if not set(DATA) & module.packages:
        return
    for call in module.nodes(ast.Call):
        if _is_any(module, call.func, ("set", "frozenset")) and call.args and not _holds_numbers(call.args[0]):
            around = module.parent(call)
            if isinstance(around, ast.Call) and _is_any(module, around.func, ("list", "tuple", "enumerate")):
                if _flows_into_data(module, around) and not _become_numbers(module, around):
                    yield Hit(call, f"a set is turned into a sequence{SALTED}")
            elif isinstance(around, ast.For | ast.comprehension) and _flows_into_data(module, call):
                yield Hit(call, f"a set is iterated over{SALTED}")


def _holds_numbers(node: ast.AST) -> bool:
    """Return whether what a set is made of looks like numbers, which are hashed alike everywhere."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        return True
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
        return isinstance(node.elt, ast.Call) and getattr(node.elt.func, "id", "") in ("int", "float", "len", "round")
    if isinstance(node, ast.Call):
        mapped = getattr(node.args[0], "id", "") in ("int", "float") if node.args else False
        return getattr(node.func, "id", "") == "range" or (getattr(node.func, "id", "") == "map" and mapped)
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return NUMBERS.search(name) is not None


def _become_numbers(module: Module, ordered: ast.AST) -> bool:
    """Return whether a list is made an array of whole numbers at once: then it held such."""
    around = module.parent(ordered)
    if not isinstance(around, ast.Call) or module.name(around.func) not in ("numpy.array", "numpy.asarray"):
        return False
    kind = argument(around, "dtype", 1)
    return kind is not None and "int" in ast.unparse(kind)


def _is_any(module: Module, node: ast.AST, names: tuple[str, ...]) -> bool:
    return any(module.is_builtin(node, name) for name in names)


def _flows_into_data(module: Module, start: ast.AST, followed: frozenset[ast.AST] = frozenset()) -> bool:
    """Return whether the order of an expression can reach data: nothing around it sorts, counts or only asks.

    `followed` holds the assignments that led here: `files = [f for f in files if f]` leads to itself.
    """
    node = start
    for around in module.ancestors(start):
        if isinstance(around, ast.Call) and node is not around.func and _forgets_order(module, around):
            return False
        if isinstance(around, _ONLY_ASK):
            return False
        if isinstance(around, ast.For | ast.AsyncFor):
            return _keeps(around)
        if isinstance(around, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            return around not in followed and not _sorted_later(module, around, followed | {around})
        if isinstance(around, ast.stmt | ast.Lambda):
            return isinstance(around, ast.Return)
        node = around
    return False


_ONLY_ASK = (ast.Compare, ast.Subscript, ast.SetComp, ast.Assert, ast.BoolOp, ast.Expr, ast.If, ast.While)


def _forgets_order(module: Module, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id in ORDERLESS and module.bindings(call.func) is None:
        return True
    name = module.name(call.func) or ""
    return name in SORTERS or name.startswith(("os.path.", "shutil.", "tf.io.gfile.", "logging."))


def _keeps(loop: ast.For | ast.AsyncFor) -> bool:
    """Return whether a loop puts something somewhere for each element."""
    for statement in loop.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Yield | ast.YieldFrom):
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEEPERS:
                return True
    return False


def _sorted_later(
    module: Module, assign: ast.Assign | ast.AnnAssign | ast.NamedExpr, followed: frozenset[ast.AST]
) -> bool:
    """Return whether what was assigned is sorted, or only counted or looked into, wherever its name is used."""
    targets = assign.targets if isinstance(assign, ast.Assign) else [assign.target]
    if len(targets) != 1 or not isinstance(targets[0], ast.Name | ast.Attribute):
        return True  # taken apart: nothing can be said
    name = _dotted(targets[0])
    function = module.function_around(assign)
    uses = [use for use in module.nodes(type(targets[0])) if _is_use(module, use, name, function)]
    if any(_sorts(module, use) for use in uses):
        return True
    return not any(_passes_on(module, use, followed) for use in uses)


def _dotted(node: ast.AST) -> tuple[str, ...] | None:
    """Return the words of `name` or `self.name.other`, the last first; None for anything else."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return (*words, node.id) if isinstance(node, ast.Name) else None


def _is_use(module: Module, use: ast.AST, name: tuple[str, ...] | None, function: Function | None) -> bool:
    if not isinstance(use, ast.Name | ast.Attribute) or not isinstance(use.ctx, ast.Load):
        return False
    if (use.id if isinstance(use, ast.Name) else use.attr) != (name or ("",))[0] or _dotted(use) != name:
        return False
    return isinstance(use, ast.Attribute) or function is None or module.function_around(use) is function


def _sorts(module: Module, use: ast.AST) -> bool:
    around = module.parent(use)
    if isinstance(around, ast.Attribute) and around.attr == "sort":
        return True
    return isinstance(around, ast.Call) and (
        module.is_builtin(around.func, "sorted") or module.name(around.func) in SORTERS
    )


def _passes_on(module: Module, use: ast.AST, followed: frozenset[ast.AST]) -> bool:
    """Return whether a use of the name lets the order into data: it is passed on, returned, or kept item by item."""
    around = module.parent(use)
    if isinstance(around, ast.Call):
        return not _forgets_order(module, around)
    if isinstance(around, ast.For):
        return around.iter is use and _keeps(around)
    if isinstance(around, ast.comprehension | ast.BinOp):
        return _flows_into_data(module, around, followed)
    return isinstance(around, ast.Return | ast.Assign | ast.keyword | ast.Yield | ast.Tuple | ast.List)


def salted_hash(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV305: `hash(name) % buckets`, `seed(hash(name))`."""
    for call in module.nodes(ast.Call):
        if not module.is_builtin(call.func, "hash") or not call.args or _is_number(call.args[0]):
            continue
        if _is_own_hash(module, call):
            continue
        for around in module.ancestors(call):
            reduced = isinstance(around, ast.BinOp) and isinstance(around.op, ast.Mod | ast.BitAnd)
            name = module.name(around.func) if isinstance(around, ast.Call) else None
            if reduced or name in SEEDS or name in NUMPY_OWN:
                yield Hit(call, "hash() of a string differs from process to process")
                break
            if isinstance(around, ast.stmt):
                break


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _is_own_hash(module: Module, call: ast.Call) -> bool:
    function = module.function_around(call)
    return getattr(function, "name", "") in ("__hash__", "__eq__")
