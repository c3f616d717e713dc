"""What sorts an order, or forgets it."""

from __future__ import annotations

import ast

from envlock.linter.module import Definition, Module, argument, constant
from envlock.linter.names import ORDERLESS, SORTERS
from envlock.linter.sets import ALGEBRA, is_set

SORTING = ("sort", "sort_values", "sort_index")
"""Methods that sort."""
LISTED = ("tf.data.Dataset.list_files",)
"""Functions that sort what they list, and shuffle it by a seed of their own."""
NO_DATA = (
    "os.path.",
    "shutil.",
    "tf.io.gfile.",
    "tf.summary.",
    "tf.group",
    "logging.",
    "absl.logging.",
    *LISTED,
)
"""Functions whose names begin so make no data of an order."""


def forgets_order(module: Module, call: ast.Call) -> bool:
    """Return whether the result of a call does not depend on the order of what it is given, or is no data."""
    if (
        isinstance(call.func, ast.Name)
        and call.func.id in ORDERLESS
        and module.bindings(call.func) is None
    ):
        if call.func.id == "print":
            return not writes_to_file(call)
        return not (
            call.func.id == "sum"
            and len(call.args) > 1
            and isinstance(call.args[1], ast.List | ast.Name)
        )
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method.startswith(("assert", "issubset", "issuperset")):
        return True
    if isinstance(call.func, ast.Attribute) and method in ("update", *ALGEBRA):
        return is_set(module, call.func.value)
    name = module.name(call.func) or ""
    return name in SORTERS or name.startswith(NO_DATA)


def writes_to_file(call: ast.Call) -> bool:
    """Return whether `print` writes to a file: one of `sys` shows what it is given."""
    file = argument(call, "file")
    return (
        file is not None and not ast.unparse(file).startswith("sys.") and constant(file) is not None
    )


def sorts(module: Module, use: ast.AST) -> bool:
    """Return whether a use of a name sorts it, or asserts that there is one element."""
    around = module.parent(use)
    if isinstance(around, ast.Call) and module.is_builtin(
        around.func, "zip"
    ):  # sorted(zip(numbers, names))
        around = module.parent(around)
    if isinstance(around, ast.Call) and module.is_builtin(around.func, "len"):
        compared = module.parent(around)
        return (
            isinstance(compared, ast.Compare)
            and _is_one(compared)
            and _is_asserted(module, compared)
        )
    if isinstance(around, ast.Attribute):
        if around.attr in SORTING:
            return True
        parent = module.parent(around)  # sorted(table.items())
        around = (
            module.parent(parent)
            if isinstance(parent, ast.Call) and around.attr in ("items", "keys")
            else None
        )
    if isinstance(around, ast.comprehension):  # sorted(f(x) for x in names)
        made = module.parent(around)
        around = module.parent(made) if made is not None else None
    return isinstance(around, ast.Call) and (
        module.is_builtin(around.func, "sorted") or module.name(around.func) in SORTERS
    )


def is_sorted_there(module: Module, call: ast.Call, node: ast.AST) -> bool:
    """Return whether the function that is called only sorts what it is given, or asks how much that is."""
    name = module.name(call.func) or ""
    made = (
        module.project.function(name)
        if module.project is not None and name.startswith("./")
        else None
    )
    own = module.definition(call.func) if made is None else None
    there, function = made or (module, own)
    if not isinstance(function, Definition):
        return False
    places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    places = places[places[:1] in (["self"], ["cls"]) :]
    at = call.args.index(node) if node in call.args else len(places)
    given = node.arg if isinstance(node, ast.keyword) else places[at] if at < len(places) else None
    uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == given]
    around = [there.parent(use) for use in uses]
    return bool(uses) and all(
        isinstance(each, ast.Call) and forgets_order(there, each) for each in around
    )


def sorts_for_good(module: Module, use: ast.AST) -> bool:
    """Return whether a use of a name sorts it also for its other uses: not so `return numpy.unique(rows), rows`."""
    around = module.parent(use)
    made = module.parent(around) if isinstance(around, ast.Call) else None
    returned = isinstance(made, ast.Tuple) and isinstance(module.parent(made), ast.Return)
    return not returned and sorts(module, use)


def _is_one(compared: ast.Compare) -> bool:
    return isinstance(compared.ops[0], ast.Eq) and constant(compared.comparators[0]) == 1


def _is_asserted(module: Module, test: ast.AST) -> bool:
    return isinstance(module.parent(test), ast.Assert)
