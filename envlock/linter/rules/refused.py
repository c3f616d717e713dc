"""What a version refuses: the first thing of a file, as nothing after it runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain, islice

from envlock.data.specifiers import matches_version
from envlock.linter.module import Hit, Module, read_literal, walk
from envlock.linter.names import GONE_MODULES, TENSORFLOW_1

OF_ABSENCE = ("AttributeError", "ImportError", "ModuleNotFoundError", "Exception", "BaseException")
FED = ("evaluate", "fit", "predict")
"""Methods of a model that take data."""
FEEDERS = ("max_queue_size", "use_multiprocessing", "workers")
"""Their arguments up to Keras 2, which Keras 3 has moved to the data set; source: https://keras.io/guides/migrating_to_keras_3/"""
GONE = tuple(f"{each}." for each in GONE_MODULES)
EITHER = ("compat", "__version__", "hasattr(", "disable_v2", "VERSION")
"""What stands in a file that runs with TensorFlow 2 although it names what TensorFlow 1 had."""


def find_refused(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV109: Python 2, else what TensorFlow 2 lacks, else what Keras 3 lacks."""
    kinds = [_find_python2(module, tensorflow), _find_old_names(module, tensorflow)]
    if matches_version([">=2.16"], tensorflow):
        kinds.append(_find_gone(module))
    yield from islice(chain(*kinds), 1)


def _find_python2(module: Module, tensorflow: str) -> Iterator[Hit]:
    line = module.python2
    # 2.1 was the last with wheels for Python 2.7: https://github.com/tensorflow/tensorflow/releases/tag/v2.1.0
    if line is not None and matches_version([">=2.2"], tensorflow):
        place = ast.Pass(lineno=line, col_offset=0, end_lineno=line, end_col_offset=0)
        fix = "Port it to Python 3, or check it for its own version (`envlock lint --tf 1.15.5`)."
        message = "this is Python 2: the other findings are those of its translation"
        yield Hit(place, message, fix=fix)


def _find_old_names(module: Module, tensorflow: str) -> Iterator[Hit]:
    """Yield `tf.placeholder`, `tf.Session` and their like."""
    if "tensorflow" not in module.imports or any(word in module.text for word in EITHER):
        return
    # `from .ops import *` may give another `tf`: that of `tensorflow.compat.v1`.
    if any("compat" in each.text for each in module.starred):
        return
    for call, name in module.calls:
        is_gone = name in TENSORFLOW_1 or name.startswith("tf.contrib.")
        if is_gone and not _has_another_way(module, call):
            message = f"{name} is not in TensorFlow {tensorflow}: this program cannot run with it"
            yield Hit(call, message)


def _find_gone(module: Module) -> Iterator[Hit]:
    """Yield modules of Keras that Keras 3 lacks, where they are imported first; else what it refuses."""
    if not module.uses_keras:
        return
    for node in module.list_imports():
        gone = _find_gone_module(node)
        if gone is not None and not _has_another_way(module, node):
            fix = f"Take its names from {GONE_MODULES[gone]}."
            yield Hit(node, f"{gone} is gone with Keras 3", fix=fix)
    for call in module.find_methods(("save_weights",)):
        name = read_literal(call.args[0]) if call.args else ...
        if isinstance(name, str) and not name.endswith(".weights.h5"):
            fix = "Give the file a name that ends in .weights.h5."
            yield Hit(call, "Keras 3 refuses this name of a file of weights", fix=fix)
    for call in module.find_methods(FED):
        word = next((each.arg for each in call.keywords if each.arg in FEEDERS), None)
        if word is not None and not _has_another_way(module, call):
            fix = f"Leave {word} out; a data set takes it where it is made: `keras.utils.PyDataset(workers=1)`."
            yield Hit(call, f"a model of Keras 3 takes no {word}, and raises TypeError", fix=fix)


def _find_gone_module(node: ast.ImportFrom | ast.Import) -> str | None:
    """Return the module of Keras that a statement imports, or imports from, and Keras 3 lacks."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names = [f"{'.' * node.level}{node.module}.{name}" for name in names]
    for name in names:
        # Not by `canonical`: it writes tensorflow.python.keras alike, where the modules still are.
        within = name.removeprefix("tensorflow.") if name.startswith("tensorflow.keras.") else name
        if f"{within}.".startswith(GONE):
            return next(each for each in GONE_MODULES if f"{within}.".startswith(f"{each}."))
    return None


def _has_another_way(module: Module, node: ast.AST) -> bool:
    """Return whether a program expects that something is absent, or asks for a version before it."""
    around = module.get_parent(node)
    while around is not None:
        if isinstance(around, ast.Try) and any(map(_catches_absence, around.handlers)):
            return True
        if isinstance(around, ast.If) and any(word in ast.unparse(around.test) for word in EITHER):
            return True
        around = module.get_parent(around)
    return False


def _catches_absence(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = {node.id for node in walk(handler.type) if isinstance(node, ast.Name)}
    return not caught.isdisjoint(OF_ABSENCE)
