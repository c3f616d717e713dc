"""Whether the first term of a sum is read by something else, too: only then AddN has no fixed order.

AddN adds into the first of its inputs that nothing else holds, which is the first one in every run
unless another operation reads it: none of 6,000 sums differed where the first is used nowhere else;
where all are used, they did (TensorFlow 2.21, 2 cores). Source:
https://github.com/tensorflow/tensorflow/blob/v2.21.0/tensorflow/core/kernels/aggregate_ops.h
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from envlock.linter.module import Module, walk
from envlock.linter.names import UNSHARED_RESULTS

ADDERS = {
    "tf.add_n": 0,
    "tf.math.add_n": 0,
    "tf.raw_ops.AddN": -1,
    "tf.accumulate_n": 0,
    "tf.math.accumulate_n": 0,
}
"""Operations that add up tensors, and the position of these; -1 where they have a name only."""
MINIMIZING = ("minimize", "compute_gradients", "gradients", "gradient")
"""Calls that read no value of what they are given: a gradient begins with ones."""
ASKING = ("len", "add_to_collection", *MINIMIZING)
SHAPES = ("get_shape", "shape", "dtype", "name")
"""What a graph knows of a tensor before it runs."""


def is_first_shared(module: Module, call: ast.AST) -> bool:
    """Return whether something besides a sum is seen to read its first term."""
    if not isinstance(call, ast.Call):  # a decorator, or a function that is handed on
        return False
    named = [word.value for word in call.keywords if word.arg == "inputs"]
    added = [*call.args, *named]
    return bool(added) and _begins_shared(module, added[0])


def is_only_minimized(module: Module, call: ast.AST) -> bool:
    """Return whether a sum is seen to be minimized alone: its gradient does not need its value."""
    total = call
    around = module.get_parent(total)
    while isinstance(around, ast.BinOp) and _keeps_gradient(around, total):
        total, around = around, module.get_parent(around)
    if isinstance(around, ast.Call):
        return _minimizes(around)
    if not isinstance(around, ast.Assign) or len(around.targets) != 1:
        return False
    target = around.targets[0]
    if not isinstance(target, ast.Name):
        return False
    parents = [module.get_parent(each) for each in _list_uses(module, target)]
    return bool(parents) and all(
        isinstance(each, ast.Call) and _minimizes(each) for each in parents
    )


def _keeps_gradient(node: ast.BinOp, part: ast.AST) -> bool:
    """Return whether the gradient of a term does not depend on what the term is."""
    if isinstance(node.op, ast.Add | ast.Sub):
        return True
    # The gradient of a tensor by which it is multiplied would be the sum: numbers have none.
    other = node.right if node.left is part else node.left
    calls = [each for each in walk(other) if isinstance(each, ast.Call)]
    is_scale = all(getattr(each.func, "id", "") in ("float", "len") for each in calls)
    return is_scale and (isinstance(node.op, ast.Mult) or node.left is part)


def _minimizes(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] in MINIMIZING


def _begins_shared(module: Module, added: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
    """Return whether a list, as it is written, begins with what something else reads, too.

    Two names may stand for each other: one that has been `seen` is not followed again.
    """
    if isinstance(added, ast.Name):
        if added.id in seen:
            return False
        seen |= {added.id}
        values = _list_values(module, added)
        return _is_read(module, added) or any(_begins_shared(module, each, seen) for each in values)
    if isinstance(added, ast.List | ast.Tuple):
        return bool(added.elts) and _is_shared(module, added.elts[0])
    if isinstance(added, ast.ListComp | ast.GeneratorExp):
        rounds = added.generators[0]
        if _is_same_name(added.elt, rounds.target):
            return _begins_shared(module, rounds.iter, seen)
        return _is_shared(module, added.elt)
    if isinstance(added, ast.BinOp):  # `[first] + others`
        return _begins_shared(module, added.left, seen)
    if isinstance(added, ast.Call) and isinstance(added.func, ast.Attribute):
        return added.func.attr == "values" and _begins_shared(module, added.func.value, seen)
    return False


def _is_same_name(one: ast.expr, other: ast.expr) -> bool:
    return isinstance(one, ast.Name) and isinstance(other, ast.Name) and one.id == other.id


def _is_shared(module: Module, term: ast.expr) -> bool:
    """Return whether something besides the sum reads a term."""
    # A slice is a tensor of its own. So is what an operation returns, but its gradient may read it;
    # those of sums, differences and products need only what was given to them.
    if isinstance(term, ast.Subscript) and any(isinstance(each, ast.Slice) for each in walk(term)):
        return False
    if isinstance(term, ast.BinOp):
        return not isinstance(term.op, ast.Add | ast.Sub | ast.Mult)
    if isinstance(term, ast.Call):
        called = module.resolve_name(term.func)
        return called is not None and called.startswith("tf.") and called not in UNSHARED_RESULTS
    while isinstance(term, ast.Subscript):
        term = term.value
    return isinstance(term, ast.Name) and _is_read(module, term)


def _list_uses(module: Module, name: ast.Name) -> Iterator[ast.Name]:
    """Yield the other places of a function, or a module's own, at which a name stands for the same."""
    around = module.find_function_around(name)
    ends = _is_replaced(module, name)
    for each in module.list_nodes(ast.Name):
        is_other = each.id == name.id and each is not name
        if ends and each.lineno >= name.lineno:
            continue
        if is_other and module.find_function_around(each) is around:
            yield each


def _is_replaced(module: Module, name: ast.Name) -> bool:
    """Return whether a statement gives a name that it reads another value: `loss = add_n(loss)`."""
    statement: ast.AST | None = name
    while statement is not None and not isinstance(statement, ast.stmt):
        statement = module.get_parent(statement)
    if not isinstance(name.ctx, ast.Load) or not isinstance(statement, ast.Assign):
        return False
    return any(isinstance(each, ast.Name) and each.id == name.id for each in statement.targets)


def _list_values(module: Module, name: ast.Name) -> Iterator[ast.expr]:
    """Yield the lists that a name stands for, as they are written; one of each term added later."""
    for each in _list_uses(module, name):
        parent = module.get_parent(each)
        if isinstance(parent, ast.Assign) and parent.targets == [each]:
            yield parent.value
        elif isinstance(parent, ast.Attribute) and parent.attr == "append":
            appended = module.get_parent(parent)
            if isinstance(appended, ast.Call) and appended.args:
                yield ast.List(elts=[appended.args[0]])


def _is_read(module: Module, name: ast.Name) -> bool:
    """Return whether a name is read for more than to add, to count or to train, or to ask whether
    it is empty.
    """
    for each in _list_uses(module, name):
        parent = module.get_parent(each)
        if not isinstance(each.ctx, ast.Load) or isinstance(parent, ast.If):
            continue
        if isinstance(parent, ast.IfExp) and parent.test is each:
            continue
        if isinstance(parent, ast.Compare) and isinstance(parent.ops[0], ast.Is | ast.IsNot):
            continue
        if _is_filtered(module, each) or _has_shapes_asked(module, each):
            continue
        if isinstance(parent, ast.Attribute) and parent.attr == "append":
            continue
        if isinstance(parent, ast.Call) and _asks_only(module, parent):
            continue
        if not _are_alternatives(module, each, name):
            return True
    return False


def _is_filtered(module: Module, name: ast.Name) -> bool:
    """Return whether a list is given the elements that it had: `terms = [x for x in terms if x is not None]`."""
    rounds = module.get_parent(name)
    if not isinstance(rounds, ast.comprehension) or rounds.iter is not name:
        return False
    made = module.get_parent(rounds)
    if not isinstance(made, ast.ListComp) or len(made.generators) > 1:
        return False
    around = module.get_parent(made)
    if not isinstance(around, ast.Assign):
        return False
    element = made.elt
    if isinstance(element, ast.IfExp):  # a constant in place of None
        element = element.body
    return _is_same_name(around.targets[0], name) and _is_same_name(element, rounds.target)


def _has_shapes_asked(module: Module, name: ast.Name) -> bool:
    """Return whether a loop asks its terms for their shapes only."""
    loop = module.get_parent(name)
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return False
    for each in _list_uses(module, loop.target):
        if not loop.lineno <= each.lineno <= (loop.end_lineno or loop.lineno):
            continue
        asked = module.get_parent(each)
        if not isinstance(asked, ast.Attribute) or asked.attr not in SHAPES:
            return False
    return True


def _asks_only(module: Module, call: ast.Call) -> bool:
    if module.resolve_name(call.func) in ADDERS:
        return True
    return ast.unparse(call.func).rpartition(".")[2] in ASKING


def _are_alternatives(module: Module, one: ast.AST, other: ast.AST) -> bool:
    """Return whether two expressions lie in the two branches of one `if`."""
    branches = dict(_list_branches(module, one))
    return any(branches.get(node, side) != side for node, side in _list_branches(module, other))


def _list_branches(module: Module, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield each `if` around an expression, and in which branch that lies."""
    around = module.get_parent(node)
    while around is not None:
        if isinstance(around, ast.If) and node is not around.test:
            side = "orelse" if node in around.orelse else "body"
            yield around, side
        node, around = around, module.get_parent(around)
