"""Which expressions are datasets of tf.data, as far as the file shows it."""

from __future__ import annotations

import ast

from envlock.linter.module import DEPTH, Definition, Module
from envlock.linter.names import DATASETS

ONLY_DATASETS = frozenset(
    {"prefetch", "interleave", "flat_map", "padded_batch", "with_options", "ragged_batch"}
)
"""Methods that nothing else in this field has."""
ANY_DATASET = ONLY_DATASETS | {
    *(
        "map",
        "batch",
        "shuffle",
        "repeat",
        "cache",
        "filter",
        "take",
        "skip",
        "zip",
        "concatenate",
        "shard",
        "unbatch",
    ),
    *(
        "window",
        "enumerate",
        "apply",
        "rebatch",
        "snapshot",
        "group_by_window",
        "bucket_by_sequence_length",
        "rejection_resample",
    ),
}
TELLING = frozenset(
    {"num_parallel_calls", "reshuffle_each_iteration", "drop_remainder", "buffer_size"}
)
"""Arguments that only methods of datasets take."""


def is_dataset(module: Module, node: ast.AST | None) -> bool:
    """Return whether an expression is certainly a dataset: how it was made, or what is done to it, says so."""
    return _made(module, node, set()) if node is not None else False


def is_chained(module: Module, call: ast.Call) -> bool:
    """Return whether the method call stands in a chain that only a dataset can have, or on a dataset."""
    if not isinstance(call.func, ast.Attribute):
        return False
    if _telling(call) or is_dataset(module, call.func.value):
        return True
    node: ast.AST = call
    passed = _words_before(call.func.value) | {call.func.attr}
    for around in module.ancestors(call):
        if isinstance(around, ast.Attribute) and around.value is node:
            if around.attr in ONLY_DATASETS or (around.attr == "batch" and passed & ANY_DATASET):
                return True
            passed |= {around.attr}
        elif not (isinstance(around, ast.Call) and around.func is node):
            break
        elif _telling(around):
            return True
        node = around
    return False


def _words_before(node: ast.AST) -> frozenset[str]:
    """Return the methods that are called on the way to an expression, as `map` in `x.map(f)`."""
    words = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        words.append(node.func.attr)
        node = node.func.value
    return frozenset(words)


def _telling(call: ast.Call) -> bool:
    return any(keyword.arg in TELLING for keyword in call.keywords) and isinstance(
        call.func, ast.Attribute
    )


def _made(module: Module, start: ast.AST, seen: set[ast.AST]) -> bool:
    """Return whether one of the ways in which an expression gets its value makes a dataset."""
    stack = [start]
    while stack and len(seen) < DEPTH * 4:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, ast.Call):
            found = _call(module, node)
            if isinstance(found, bool):
                return True
            stack.extend(found)
        elif isinstance(node, ast.IfExp):
            stack.extend((node.body, node.orelse))
        elif isinstance(node, ast.Name | ast.Attribute):
            if _annotated(module, node):
                return True
            stack.extend(module.values(node))
    return False


def _call(module: Module, call: ast.Call) -> bool | list[ast.AST]:
    """Return True where a call makes a dataset, else the expressions that decide."""
    name = module.name(call.func) or ""
    if name.startswith("tf.data.Dataset.") or name in DATASETS:
        return True
    if isinstance(call.func, ast.Attribute) and call.func.attr in ANY_DATASET:
        if call.func.attr in ONLY_DATASETS or _telling(call):
            return True
        return [call.func.value]
    function = module.definition(call.func)
    if isinstance(function, Definition):
        return [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Return) and node.value is not None
        ]
    return []


def _annotated(module: Module, node: ast.AST) -> bool:
    """Return whether a parameter says that it is a dataset."""
    if not isinstance(node, ast.Name):
        return False
    for binding in module.bindings(node) or []:
        annotation = (
            getattr(binding.node, "annotation", None) if binding.kind == "parameter" else None
        )
        if annotation is not None and module.name(annotation) == "tf.data.Dataset":
            return True
    return False
