"""Seeds: missing, partial, or another in every run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from envlock.determinism.lint.module import Hit, Module, argument, constant, has_star
from envlock.determinism.lint.names import (
    CLOCKS,
    NUMPY_NOT_DRAWN,
    NUMPY_OWN,
    NUMPY_USERS,
    PYTHON_DRAWS,
    SEEDS,
)
from envlock.determinism.lint.program import KERAS, NUMPY, PYTHON, TF
from envlock.determinism.lint.stateful import hands_on, is_tape

FITS = ("fit", "fit_generator", "train_on_batch")
OTHERS = re.compile(r"pipeline|preproc|scaler|encoder|tokenizer|vectorizer|imputer|binarizer|pca$", re.IGNORECASE)
FLOWS = ("flow_from_directory", "flow_from_dataframe")
SEED_ARGUMENTS = ("seed", "random_state", "random_seed")


def and_more(drawn: Sequence[object]) -> str:
    """Return how many more uses there are behind the one that is reported."""
    return f", and {len(drawn) - 1} more below" if len(drawn) > 1 else ""


def partial(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV201: `tf.random.set_seed` and no `random.seed`, where Keras draws from `random`."""
    for call, name in module.calls:
        if SEEDS.get(name) == ("tf",) and not (call.args and constant(call.args[0]) is None):  # that is ENV207's
            message = "this seeds TensorFlow, and nothing seeds Python's random, from which Keras takes its own seeds"
            yield Hit(call, message, needs=frozenset({KERAS}), unless=frozenset({PYTHON}))


def model_without_seed(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV202: a model is trained, and nothing seeds anything."""
    if not module.uses_keras:
        return
    for call in module.nodes(ast.Call):
        if (_fits(call) and not hands_on(module, call)) or is_tape(module, call):
            message = "a Keras model is trained here, and nothing seeds its weights"
            yield Hit(call, message, needs=frozenset({KERAS}), unless=frozenset({TF, PYTHON}))
            return


def _fits(call: ast.Call) -> bool:
    """Return whether this trains a model; scalers and encoders are fitted, too."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in FITS:
        return False
    owner = call.func.value
    return OTHERS.search(getattr(owner, "id", "") or getattr(owner, "attr", "")) is None


def numpy(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV205: numpy's random numbers; the first use of the global generator, and every generator of one's own."""
    for call, name in module.calls:
        if name in NUMPY_OWN and not has_star(call) and _is_unseeded(call):
            yield Hit(call, f"{name} without a seed takes entropy from the operating system")
    drawn = [(call, name) for call, name in module.calls if _draws(call, name)]
    drawn += [(call, flow) for call in module.nodes(ast.Call) if (flow := _flow(module, call)) is not None]
    if drawn:
        call, name = drawn[0]
        message = f"{name} draws from numpy's global generator{and_more(drawn)}, which nothing seeds"
        yield Hit(call, message, unless=frozenset({NUMPY}))


def _draws(call: ast.Call, name: str) -> bool:
    """Return whether a call draws from numpy's global generator."""
    if name in NUMPY_USERS:
        given = argument(call, NUMPY_USERS[name])
        shuffles = constant(argument(call, "shuffle")) is not False
        return shuffles and not has_star(call) and (given is None or constant(given) is None)
    words = name.split(".")
    plain = words[:2] == ["numpy", "random"] and len(words) == 3 and words[2][:1].islower()
    return plain and name not in NUMPY_OWN and words[2] not in NUMPY_NOT_DRAWN


def _flow(module: Module, call: ast.Call) -> str | None:
    """Return the name of a generator of images from a folder, which shuffles unless it is told not to, or None."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in FLOWS or not module.uses_keras:
        return None
    seed, shuffle = argument(call, "seed"), argument(call, "shuffle")
    seeded = seed is not None and constant(seed) is not None
    return None if seeded or constant(shuffle) is False or has_star(call) else call.func.attr


def _is_unseeded(call: ast.Call) -> bool:
    given = argument(call, "seed", 0) or argument(call, "entropy")
    return given is None or constant(given) is None


def python(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV206: Python's random numbers; the first use of the global generator, and every generator of one's own."""
    for call, name in module.calls:
        if name == "random.Random" and not has_star(call) and (not call.args or constant(call.args[0]) is None):
            yield Hit(call, "random.Random() without a seed takes entropy from the operating system")
        if name == "random.SystemRandom":
            yield Hit(call, "random.SystemRandom cannot be seeded", fix="Use random.Random(seed).")
    drawn = [(call, name) for call, name in module.calls if name in PYTHON_DRAWS]
    if drawn:
        call, name = drawn[0]
        message = f"{name} draws from Python's global generator{and_more(drawn)}, which nothing seeds"
        yield Hit(call, message, unless=frozenset({PYTHON}))


def by_chance(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV207: a seed from the clock, the process id or nothing."""
    for call, name in module.calls:
        if name in SEEDS:
            if not call.args and not call.keywords:
                yield Hit(call, f"{name}() without a number seeds from the operating system")
                continue
            if call.args and constant(call.args[0]) is None:
                yield Hit(call, f"{name}(None) seeds from the operating system")
                continue
        for given in _seeds_of(call, name):
            chance = _chance(module, given)
            if chance is not None:
                yield Hit(call, f"the seed comes from {chance}, and is another in every run")
                break


def _seeds_of(call: ast.Call, name: str) -> Iterator[ast.expr]:
    """Yield the arguments of a call that are seeds."""
    if name in SEEDS or name in NUMPY_OWN or name in ("random.Random", "tf.random.Generator.from_seed"):
        yield from call.args[:1]
    yield from (keyword.value for keyword in call.keywords if keyword.arg in SEED_ARGUMENTS)


def _chance(module: Module, node: ast.expr) -> str | None:
    """Return what in an expression, or in what a name in it was given, is another in every run."""
    stack: list[ast.AST] = [node]
    followed = 0
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Call):
            name = module.name(part.func)
            if name in CLOCKS:
                return name
            if module.is_builtin(part.func, "hash") or module.is_builtin(part.func, "id"):
                return f"{ast.unparse(part.func)}()"
        if isinstance(part, ast.Name) and followed < 8:
            values = module.values(part)
            stack.extend(values if len(values) == 1 else [])
            followed += 1
        elif not isinstance(part, ast.Name | ast.Lambda | ast.FunctionDef | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(part))
    return None
