"""Switches that are not switched."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from envlock.data.determinism import holds
from envlock.determinism.lint.environ import assignments
from envlock.determinism.lint.module import Hit, Module
from envlock.determinism.lint.names import OLD_PATCHES, SETTERS, SWITCH, TRAINING_METHODS
from envlock.determinism.lint.program import SWITCHED
from envlock.determinism.lint.stateful import hands_on, is_tape
from envlock.runtime.recipe import recipe_for


def not_called(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV101: `tf.config.experimental.enable_op_determinism` as a statement."""
    for statement in module.nodes(ast.Expr):
        name = module.name(statement.value)
        if name in SETTERS:
            yield Hit(statement, f"{name} is named and not called: this does nothing")


def assigned(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV102: `tf.random.set_seed = 1`."""
    statements: list[tuple[ast.stmt, list[ast.expr], ast.expr | None]] = []
    statements += [(each, each.targets, each.value) for each in module.nodes(ast.Assign)]
    statements += [(each, [each.target], each.value) for each in module.nodes(ast.AugAssign)]
    statements += [(each, [each.target], each.value) for each in module.nodes(ast.AnnAssign)]
    for statement, targets, value in statements:
        for target in targets:
            name = module.name(target) if isinstance(target, ast.Attribute) else None
            if name in SETTERS and value is not None and not _is_function(module, value):
                yield Hit(statement, f"this replaces the function {name} and sets nothing")


def _is_function(module: Module, value: ast.expr) -> bool:
    """Return whether a function is put in another's place on purpose, as tests do."""
    if isinstance(value, ast.Call):
        return not (isinstance(value.func, ast.Name) and value.func.id in ("int", "str", "bool"))
    return module.definition(value) is not None or module.name(value) is not None


def of_another_version(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV107: the API before 2.8, NVIDIA's patch after 2.7, TF_CUDNN_DETERMINISTIC alone after 2.0."""
    fix = recipe(tensorflow)
    for call, name in module.calls:
        if name == SWITCH and holds(["<2.8"], tensorflow):
            yield Hit(call, f"{SWITCH} came with TensorFlow 2.8; this is {tensorflow}", fix=fix)
        elif name in OLD_PATCHES and holds([">=2.8"], tensorflow):
            message = f"{name} was made for TensorFlow up to 2.7; this is {tensorflow}"
            yield Hit(call, message, "warning" if name == OLD_PATCHES[0] else None, fix)
    if holds([">=2.1"], tensorflow):
        for setting in assignments(module):
            if setting.name == "TF_CUDNN_DETERMINISTIC":
                message = f"in TensorFlow {tensorflow} TF_CUDNN_DETERMINISTIC alone leaves all but cuDNN as it was"
                yield Hit(setting.node, message, "warning", fix, unless=frozenset({SWITCHED}))


def no_switch(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV108: a file that trains, in programs that turn op determinism on nowhere."""
    if not {"tf", "keras"} & module.packages:
        return
    for call in module.nodes(ast.Call):
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        trains = method in TRAINING_METHODS and module.uses_keras and not hands_on(module, call)
        if trains or is_tape(module, call):
            message = "training starts here, and nothing turns op determinism on"
            yield Hit(call, message, fix=recipe(tensorflow), unless=frozenset({SWITCHED}))
            return


def recipe(version: str) -> str:
    """Return what turns op determinism on in a TensorFlow version, as one sentence."""
    row = recipe_for(version)
    if row is None:
        return f"TensorFlow {version} is not a version whose switch is known."
    sets = " ".join(f"{name}={value}" for name, value in row.set.items())
    steps = [f"set {sets} before the process starts"] if sets else []
    patches = [patch["call"] for patch in row.patches[:1]]
    steps += [f"call {call}" for call in (*row.calls, *patches)]
    return f"In TensorFlow {version}: {', and '.join(steps) or 'there is no switch'}."
