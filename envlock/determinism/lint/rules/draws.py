"""Random operations of TensorFlow that nothing seeds, or nothing can."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from envlock.determinism.lint.datasets import is_chained
from envlock.determinism.lint.module import Hit, Module, argument, constant, has_star
from envlock.determinism.lint.names import NEED_OP_SEED, OWN_ENTROPY, RANDOM_OPS
from envlock.determinism.lint.program import TF
from envlock.determinism.lint.rules.seeds import and_more

SAMPLERS = {
    "tf.data.Dataset.random": 0,
    "tf.data.Dataset.sample_from_datasets": 2,
    "tf.data.experimental.sample_from_datasets": 2,
    "tf.data.experimental.RandomDataset": 0,
    "tf.data.experimental.shuffle_and_repeat": 2,
    "tf.data.experimental.make_csv_dataset": None,
}
"""What makes a dataset by chance, and the position of its seed."""


def dataset(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV203: shuffle, list_files and samplers without a seed."""
    if not {"tf", "keras"} & module.packages:
        return
    for call in module.nodes(ast.Call):
        found = None if has_star(call) else _unseeded(module, call)
        if found is not None:
            yield Hit(call, found, unless=frozenset({TF}))


def _unseeded(module: Module, call: ast.Call) -> str | None:
    """Return what a call that makes or shuffles a dataset leaves to chance, or None."""
    name = module.name(call.func) or ""
    if name in SAMPLERS:
        ordered = constant(argument(call, "shuffle")) is False
        return f"{name} without a seed" if _is_unseeded(call, SAMPLERS[name]) and not ordered else None
    if name == "tf.data.Dataset.list_files":
        ordered = constant(argument(call, "shuffle", 1)) is False or not _is_unseeded(call, 2)
        return None if ordered else f"{name} shuffles unless it is told not to, and nothing seeds it"
    shuffles = isinstance(call.func, ast.Attribute) and call.func.attr == "shuffle" and _is_unseeded(call, 1)
    return "the dataset is shuffled without a seed" if shuffles and is_chained(module, call) else None


def operation(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV204: the first random operation in a file without a seed of its own or a global one."""
    drawn = [(c, n) for c, n in module.calls if n in RANDOM_OPS - NEED_OP_SEED.keys() and _is_unseeded(c, None)]
    drawn = [(call, name) for call, name in drawn if not has_star(call)]
    if drawn:
        call, name = drawn[0]
        message = f"{name} draws from TensorFlow's generator{and_more(drawn)}, which nothing seeds"
        yield Hit(call, message, unless=frozenset({TF}))


def own_entropy(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV208: what the global seed does not reach."""
    given = any(name == "tf.random.set_global_generator" for _, name in module.calls)
    for call, name in module.calls:
        seed = argument(call, "seed", NEED_OP_SEED.get(name))
        if name in OWN_ENTROPY and not (given and name == "tf.random.get_global_generator"):
            message = f"{name} takes entropy from the operating system, whatever is seeded"
            yield Hit(call, message, fix=OWN_ENTROPY[name])
        elif name in NEED_OP_SEED and not has_star(call) and (seed is None or constant(seed) in (None, 0)):
            yield Hit(call, f"{name} passes over the global seed", fix="Pass it a seed that is not 0.")


def _is_unseeded(call: ast.Call, position: int | None) -> bool:
    given = argument(call, "seed", position)
    return given is None or constant(given) is None
