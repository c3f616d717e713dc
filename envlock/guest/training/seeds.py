"""Set every seed that a run draws from: Python's, numpy's, TensorFlow's, Keras's."""

from __future__ import annotations

import importlib.abc
import sys
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Iterator, List, Optional, Sequence


def seed_all(seed: int) -> None:
    """Set the seeds of what is imported now, and those of the rest as soon as the script imports it.

    Nothing is imported for it: a script may have variables to set before TensorFlow is.
    """
    import random

    random.seed(seed)
    seeding: dict[str, Callable[[Any], None]] = {
        "numpy": lambda module: module.random.seed(seed % 2**32),
        "tensorflow": lambda module: _set_tensorflow(module, seed),
        "keras": lambda module: _set_keras(module, seed),
        "tf_keras": lambda module: _set_keras(module, seed),
    }
    _Later.waiting = {name: action for name, action in seeding.items() if name not in sys.modules}
    if not any(isinstance(finder, _Later) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Later())
    for name in [name for name in seeding if name in sys.modules]:
        seeding[name](sys.modules[name])


@contextmanager
def watched(entries: Callable[[], int]) -> Iterator[List[int]]:
    """Give a list that takes what `entries` says whenever the program calls `keras.utils.set_random_seed`.

    That calls `random.seed` in every Keras, under whatever name the program has imported it.
    """
    import random

    original, calls = random.seed, []

    def seed(*args: Any, **kwargs: Any) -> None:
        if sys._getframe(1).f_code.co_name == "set_random_seed":
            calls.append(entries())
        original(*args, **kwargs)

    random.seed = seed
    try:
        yield calls
    finally:
        random.seed = original


def _set_tensorflow(tensorflow: Any, seed: int) -> None:
    """TensorFlow 1 has its own name for it, and needs it once per graph."""
    setter = getattr(tensorflow.random, "set_seed", None) or tensorflow.compat.v1.set_random_seed
    setter(seed)


def _set_keras(keras: Any, seed: int) -> None:
    """Keras sets all the others as well; its generator for layers without a seed starts anew."""
    setter = getattr(keras.utils, "set_random_seed", None)
    if setter is not None:  # before Keras 2.7 there is none, nor a generator of its own
        setter(seed)


class _Later(importlib.abc.MetaPathFinder):
    """Lets an action follow the first import of a module."""

    waiting: dict[str, Callable[[Any], None]] = {}  # noqa: RUF012 (of the class: there is one)

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Any:
        """Return the module's own spec, with the action after its execution."""
        action = self.waiting.pop(name, None)
        if action is None:
            return None
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            execute = spec.loader.exec_module

            def execute_and_act(module: ModuleType) -> None:
                execute(module)
                action(module)

            spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec
