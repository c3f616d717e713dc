"""Set every seed of a run: those of Python, NumPy, TensorFlow and Keras."""

from __future__ import annotations

import importlib.abc
import random
import sys
from contextlib import contextmanager
from importlib.util import find_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Callable, Dict, Iterator, List, Optional, Sequence

    Action = Callable[[ModuleType], None]


def set_all_seeds(seed: int) -> None:
    """Set the seeds of imported packages now, and those of the others as soon as the script imports
    them.

    Nothing is imported for this: a script may have to set variables before TensorFlow is imported.
    """
    random.seed(seed)
    actions: Dict[str, Action] = {
        "numpy": lambda module: module.random.seed(seed % 2**32),
        "tensorflow": lambda module: _set_tensorflow(module, seed),
        "keras": lambda module: _set_keras(module, seed),
        "tf_keras": lambda module: _set_keras(module, seed),
    }
    imported = [name for name in actions if name in sys.modules]
    _AfterImport.actions = {name: actions[name] for name in actions if name not in imported}
    if not any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterImport())
    for name in imported:
        actions[name](sys.modules[name])


@contextmanager
def watch_seeding(entries: Callable[[], int]) -> Iterator[List[int]]:
    """Yield a list to which the result of `entries` is added whenever the program calls
    `keras.utils.set_random_seed`.

    That function calls `random.seed` in every Keras, under whatever name the program has imported
    it.
    """
    original = random.seed
    calls: List[int] = []

    def set_seed(*args: object, **kwargs: object) -> None:
        if sys._getframe(1).f_code.co_name == "set_random_seed":
            calls.append(entries())
        original(*args, **kwargs)  # type: ignore[arg-type]

    random.seed = set_seed
    try:
        yield calls
    finally:
        random.seed = original


def _set_tensorflow(tensorflow: ModuleType, seed: int) -> None:
    """Set the seed of the graph; in TensorFlow 1 the function has another name, and must be called
    for each graph.
    """
    setter = getattr(tensorflow.random, "set_seed", None) or tensorflow.compat.v1.set_random_seed
    setter(seed)


def _set_keras(keras: ModuleType, seed: int) -> None:
    """Let Keras set all seeds: its generator for layers without a seed starts again."""
    setter = getattr(keras.utils, "set_random_seed", None)
    if setter is not None:  # before Keras 2.7 there is neither this function nor a generator
        setter(seed)


class _AfterImport(importlib.abc.MetaPathFinder):
    """Runs an action after the first import of a module."""

    actions: Dict[str, Action] = {}  # noqa: RUF012 (of the class: there is one)

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        """Return the module's own spec, with the action after its execution."""
        action = self.actions.pop(name, None)
        if action is None:
            return None
        return make_spec(name, action)


def make_spec(name: str, action: Action) -> Optional[ModuleSpec]:
    """Return the spec of a module that calls `action` with the module after its execution.

    For a finder on `sys.meta_path`, which asks the other finders and is asked for this module only
    once.
    """
    spec = find_spec(name)
    if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
        execute = spec.loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            action(module)

        spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
    return spec
