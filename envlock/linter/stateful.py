"""What functions do: whether one draws random numbers or leaves the graph, and which calls train."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from envlock.linter.module import DEPTH, Definition, Module, argument, constant
from envlock.linter.names import (
    GENERATOR_METHODS,
    GENERATORS,
    NUMPY_NOT_DRAWN,
    PYTHON_DRAWS,
    PYTHON_FUNCTIONS,
    RANDOM_LAYERS,
    RANDOM_OPS,
    TRAINING_NAMES,
)
from envlock.linter.scopes import Function


@dataclass(frozen=True)
class Draw:
    """Something stateful in a function.

    Attributes:
        kind: `op`, `generator` (an object of TensorFlow), `layer`, `python` (drawn in Python) or `opaque`.
    """

    kind: str
    name: str
    node: ast.AST


def draws(module: Module, function: Function) -> list[Draw]:
    """Return everything stateful that a function of this file does, also through functions it calls."""
    found: list[Draw] = []
    seen: set[ast.AST] = set()
    stack: list[Function] = [function]
    while stack and len(seen) < DEPTH * 4:
        current = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        own, handed = module.done_by.get(current) or _done_by(module, current)
        found.extend(own)
        stack.extend(handed)
    return found


def _done_by(module: Module, function: Function) -> tuple[list[Draw], list[Function]]:
    """Return what a function draws itself or by other files, and the functions here that it calls or hands on."""
    found: list[Draw] = []
    called: list[Function] = []
    for call in _calls(function):
        draw = _draw(module, call)
        if draw is not None:
            found.append(draw)
            continue
        handed = [
            each
            for each in (call.func, *call.args)
            if isinstance(each, ast.Name | ast.Attribute | ast.Lambda)
        ]
        called.extend(each for each in map(module.definition, handed) if each is not None)
        found.extend(each for one in handed for each in _elsewhere(module, one))
    module.done_by[function] = found, called
    return found, called


def drawn_by(module: Module, node: ast.AST) -> list[Draw]:
    """Return everything stateful that calling an expression does: a function by its name, a partial, an object."""
    name = module.name(node) if isinstance(node, ast.Name | ast.Attribute) else None
    if name in RANDOM_OPS:
        return [Draw("op", str(name), node)]
    function = module.definition(node)
    if function is not None:
        return draws(module, function)
    if isinstance(node, ast.Call):
        return _elsewhere(module, node.func) or [
            each for given in node.args[:1] for each in drawn_by(module, given)
        ]
    return _elsewhere(module, node)


def _elsewhere(module: Module, node: ast.AST) -> list[Draw]:
    """Return what a function, a method or an object of another file of the project draws."""
    if module.project is None or not isinstance(node, ast.Name | ast.Attribute):
        return []
    found: list[Draw] = list(module.project.draws(module.name(node)))
    owner, method = (node.value, f".{node.attr}") if isinstance(node, ast.Attribute) else (node, "")
    for value in module.values(owner):
        if isinstance(value, ast.Call):
            found.extend(module.project.draws(f"{module.name(value.func)}{method}"))
    for value in module.values(node) if method else ():  # an object in self that is called
        if isinstance(value, ast.Call):
            found.extend(module.project.draws(module.name(value.func)))
    return found


def _calls(function: Function) -> Iterator[ast.Call]:
    body = function.body if isinstance(function.body, list) else [function.body]
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                yield node


def _draw(module: Module, call: ast.Call) -> Draw | None:
    name = module.name(call.func) or ""
    if name in RANDOM_OPS:
        return Draw("op", name, call)
    if name in PYTHON_DRAWS or _is_numpy(name):
        return Draw("python", name, call)
    if name in PYTHON_FUNCTIONS:
        return _python(module, call, name)
    layer = random_layer(module, call.func)
    return Draw("layer", layer, call) if layer is not None else _of_generator(module, call)


def _of_generator(module: Module, call: ast.Call) -> Draw | None:
    """Return what a method of a generator object draws, of TensorFlow, NumPy or Python."""
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr not in GENERATOR_METHODS:
        return None
    made = [method.value, *module.values(method.value)]
    for each in made:
        name = module.name(each.func) if isinstance(each, ast.Call) else None
        if name in GENERATORS:
            kind = "python" if str(name).startswith(("numpy.", "random.")) else "generator"
            return Draw(kind, f"{method.attr} of a {name}", call)
    return None


def _is_numpy(name: str) -> bool:
    words = name.split(".")
    return words[:2] == ["numpy", "random"] and len(words) == 3 and words[2] not in NUMPY_NOT_DRAWN


def _python(module: Module, call: ast.Call, name: str) -> Draw | None:
    """Return what a py_function does; nothing where it can be seen that it draws nothing."""
    given = argument(call, "func", PYTHON_FUNCTIONS[name])
    inner = module.definition(given) if given is not None else None
    if inner is None:
        known = (module.name(given) or "") if given is not None else ""
        elsewhere = drawn_by(module, given) if given is not None and known.startswith("./") else []
        if elsewhere:
            return Draw("python", f"{name} with {elsewhere[0].name}", call)
        harmless = known.startswith(("numpy.", "./")) and not _is_numpy(known)
        return None if harmless else Draw("opaque", name, call)
    inside = draws(module, inner)
    return Draw("python", f"{name} with {inside[0].name}", call) if inside else None


def random_layer(module: Module, node: ast.AST) -> str | None:
    """Return the random layer that calling this expression runs: one, or a Sequential that holds one."""
    stack: list[ast.AST] = [node]
    seen: set[ast.AST] = set()
    while stack and len(seen) < DEPTH:
        part = stack.pop()
        if part in seen:
            continue
        seen.add(part)
        if isinstance(part, ast.Name | ast.Attribute):
            stack.extend(module.values(part))
        elif isinstance(part, ast.Call):
            name = module.name(part.func)
            if name in RANDOM_LAYERS:
                return name
            if name in ("keras.Sequential", "keras.models.Sequential"):
                stack.extend(part.args)
        elif isinstance(part, ast.List | ast.Tuple):
            stack.extend(part.elts)
    return None


OTHERS = re.compile(
    r"pipeline|preproc|scaler|encoder|tokenizer|vectorizer|imputer|binarizer|pca$", re.IGNORECASE
)
"""What is fitted and is no model, by its name."""
OTHER_MODELS = frozenset(
    {"jax", "flax", "haiku", "torch", "sklearn", "xgboost", "lightning", "pytorch_lightning"}
)
"""Packages with models of their own, or that train those of others."""
STEPS = ("apply_gradients", "minimize", "assign", "assign_add", "assign_sub")


def is_of_model(call: ast.Call) -> bool:
    """Return whether a method such as `fit` belongs to a model; scalers and encoders are fitted, too."""
    if not isinstance(call.func, ast.Attribute):
        return False
    owner = call.func.value
    return OTHERS.search(getattr(owner, "id", "") or getattr(owner, "attr", "")) is None


def is_of_keras(module: Module, call: ast.Call) -> bool:
    """Return whether a method such as `fit` belongs to a model of Keras, or to one that the project makes."""
    if not isinstance(call.func, ast.Attribute) or not is_of_model(call):
        return False
    name = module.name(call.func) or ""
    if (
        name.startswith("./") and name.partition(".")[2].count(".") == 1
    ):  # a function at the top of another file
        return False
    made = list(_named_makers(module, call.func.value))
    if any(each.startswith("sklearn.") or each.endswith("ImageDataGenerator") for each in made):
        return False
    project, owner = (
        module.project,
        module.class_around(call) if _is_self(call.func.value) else None,
    )
    if owner is not None and is_of_others(module, owner):
        return False
    if project is not None and any(
        each[:2] == "./" and project.is_of_others(each) for each in made
    ):
        return False
    if any(
        isinstance(each, ast.ClassDef) and is_of_others(module, each)
        for each in _classes(module, call.func.value)
    ):
        return False
    return module.uses_keras or (
        OTHER_MODELS.isdisjoint(module.packages) and any(each[:2] == "./" for each in made)
    )


def is_of_others(module: Module, owner: ast.ClassDef) -> bool:
    """Return whether a class is of another package's kind, as a transformer of scikit-learn, which is fitted, too."""
    return any((module.name(base) or "").partition(".")[0] in OTHER_MODELS for base in owner.bases)


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _classes(module: Module, owner: ast.expr) -> Iterator[ast.AST]:
    """Yield the classes of this file of which an object may be."""
    for made in _makers(module, owner):
        if isinstance(made.func, ast.Name):
            yield from (
                each.node for each in module.bindings(made.func) or [] if each.kind == "class"
            )


def is_made_of_keras(module: Module, call: ast.Call) -> bool:
    """Return whether the model of a method such as `fit` is made by another file, which uses Keras."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    names = _named_makers(module, owner)
    return module.project is not None and any(
        each[:2] == "./" and module.project.uses_keras(each) for each in names
    )


def _named_makers(module: Module, owner: ast.expr) -> Iterator[str]:
    """Yield the names of what makes an object, and of the class that a parameter is said to be of."""
    yield from (module.name(each.func) or "" for each in _makers(module, owner))
    for binding in (module.bindings(owner) or []) if isinstance(owner, ast.Name) else []:
        annotation = (
            getattr(binding.node, "annotation", None) if binding.kind == "parameter" else None
        )
        yield from [module.name(annotation) or ""] if annotation is not None else []


def _makers(module: Module, owner: ast.expr) -> Iterator[ast.Call]:
    """Yield what makes an object, or the one that holds it: `self.net` of `self.net.model`."""
    yield from [owner] if isinstance(owner, ast.Call) else []
    for each in (owner, owner.value) if isinstance(owner, ast.Attribute) else (owner,):
        yield from (made for made in module.values(each) if isinstance(made, ast.Call))


def is_tape(module: Module, call: ast.Call) -> bool:
    """Return whether this records a gradient, in a file that also takes steps along gradients: in a test, beside it."""
    if module.name(call.func) not in TRAINING_NAMES:
        return False
    steps = [each for each in module.worded((*STEPS, "apply")) if _is_step(each)]
    around = _test_around(module, call)
    return any(around is None or around in module.ancestors(each) for each in steps)


def _test_around(module: Module, node: ast.AST) -> ast.AST | None:
    """Return the outermost function around what stands in a test, or None."""
    functions = [each for each in module.ancestors(node) if isinstance(each, Definition)]
    names = (PurePath(module.path).stem, *(each.name for each in functions))
    is_test = any(name.startswith("test") or name.endswith("_test") for name in names)
    return functions[-1] if functions and is_test else None


def _is_step(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    owner = getattr(call.func.value, "id", "") or getattr(call.func.value, "attr", "")
    if call.func.attr == "assign":  # weight.assign(weight - rate * gradient): anything else sets it
        return any(
            isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add | ast.Sub)
            for each in call.args
        )
    if call.func.attr.startswith("assign_"):  # a counter goes up by one
        return all(type(constant(each)) is not int for each in call.args)
    return call.func.attr in STEPS or (
        call.func.attr == "apply" and "opt" in owner.lower()
    )  # Keras 3: optimizer.apply


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
