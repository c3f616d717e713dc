"""Which calls train: a gradient alone does not, nor does a method that hands on to the one it stands for."""

from __future__ import annotations

import ast

from envlock.determinism.lint.module import Module
from envlock.determinism.lint.names import TRAINING_NAMES

STEPS = ("apply_gradients", "minimize", "assign", "assign_add", "assign_sub")


def is_tape(module: Module, call: ast.Call) -> bool:
    """Return whether this records a gradient, in a file that also takes steps along gradients."""
    return module.name(call.func) in TRAINING_NAMES and any(map(_is_step, module.nodes(ast.Call)))


def _is_step(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    owner = getattr(call.func.value, "id", "") or getattr(call.func.value, "attr", "")
    return call.func.attr in STEPS or (call.func.attr == "apply" and "opt" in owner.lower())  # Keras 3: optimizer.apply


def hands_on(module: Module, call: ast.Call) -> bool:
    """Return whether a method only calls the method of its name on what it wraps: `super().fit()` in `fit`."""
    around = module.function_around(call)
    if not isinstance(call.func, ast.Attribute) or getattr(around, "name", None) != call.func.attr:
        return False
    root: ast.AST = call.func.value
    while isinstance(root, ast.Attribute):
        root = root.value
    if isinstance(root, ast.Call):
        return module.is_builtin(root.func, "super")
    return isinstance(root, ast.Name) and root.id == "self"
