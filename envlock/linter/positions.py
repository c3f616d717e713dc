"""What an order is followed as, and what tells a place in it: counters, lengths, numbered pairs, the first element."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from envlock.linter.names import KEEPERS

SEQUENCE, KEYS, TABLE = "sequence", "keys", "table"
NUMBERING = ("enumerate", "zip")
"""Functions that give elements their numbers, or others beside them."""
JOINERS = frozenset({"concatenate", "concat", "vstack", "hstack", "append"})
"""Functions that join arrays and tables."""
Loop = ast.For | ast.AsyncFor | ast.While


@dataclass
class Order:
    """What is followed: its kind, and whether its elements have been numbered on the way."""

    kind: str
    numbered: bool = False

    def iterated(self) -> None:
        """Make the order of a dict's keys that of a sequence."""
        self.kind = SEQUENCE if self.kind == KEYS else self.kind


def is_first(subscript: ast.Subscript) -> bool:
    """Return whether one element is taken where there is mostly one only: `[0]`, `[-1]`."""
    return ast.unparse(subscript.slice) in ("0", "-1")


def dotted(node: ast.AST, otherwise: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the words of `name` or `self.name.other`, the last first; something else for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (*parts, node.id) if isinstance(node, ast.Name) else otherwise


def counter(loop: Loop) -> tuple[str, ...]:
    """Return the name that counts the rounds of a loop over `enumerate`, or what no name is."""
    over, target = getattr(loop, "iter", None), getattr(loop, "target", None)
    counts = isinstance(over, ast.Call) and getattr(over.func, "id", "") == "enumerate"
    return dotted(target.elts[0]) if counts and isinstance(target, ast.Tuple) else ("",)


def is_length(call: ast.Call, loop: Loop) -> bool:
    """Return whether this is `len(table)` of what the loop fills."""
    if getattr(call.func, "id", "") != "len" or not call.args:
        return False
    measured = ast.dump(call.args[0])
    filled = [
        node
        for node in ast.walk(loop)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    ]
    methods = [
        node.func
        for node in ast.walk(loop)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    kept = [each.value for each in methods if each.attr in (*KEEPERS, "setdefault")]
    return any(
        ast.dump(each).replace("Store()", "Load()") == measured
        for each in [*(f.value for f in filled), *kept]
    )


def pairs_are_numbered(call: ast.Call) -> bool:
    return any(isinstance(each, ast.GeneratorExp) and _uses_numbering(each) for each in call.args)


def _uses_numbering(made: ast.GeneratorExp) -> bool:
    first = made.generators[0].iter
    return isinstance(first, ast.Call) and getattr(first.func, "id", "") in NUMBERING


def is_renewed(loop: Loop, last: ast.AST | None, name: str) -> bool:
    """Return whether each round of a loop gives a name a new value before it is read, and before a statement."""
    for statement in loop.body:
        if statement is last or any(
            getattr(each, "id", "") == name for each in ast.walk(statement)
        ):
            return statement is not last and assigns(statement, name)
    return False


def assigns(statement: ast.stmt, name: str) -> bool:
    """Return whether a statement gives a name a new value that is not made of the old one."""
    if not isinstance(statement, ast.Assign):
        return False
    targets = [part for each in statement.targets for part in getattr(each, "elts", [each])]
    if not any(getattr(each, "id", "") == name for each in targets):
        return False
    return not any(
        isinstance(each, ast.Name) and each.id == name for each in ast.walk(statement.value)
    )


def is_joined_on(assign: ast.Assign, loop: Loop) -> bool:
    """Return whether each round of a loop joins something to what those before made: `rows = concat([rows, x])`."""
    target = assign.targets[0]
    joins = [
        each
        for each in ast.walk(assign.value)
        if isinstance(each, ast.Call) and _last(each.func) in JOINERS
    ]
    given = {
        getattr(each, "id", "") for join in joins for part in join.args for each in ast.walk(part)
    }
    return (
        isinstance(target, ast.Name)
        and target.id in given
        and not is_renewed(loop, None, target.id)
    )


def _last(node: ast.expr) -> str:
    return getattr(node, "attr", "") or getattr(node, "id", "")
