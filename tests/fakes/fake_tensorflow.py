"""What `activate()` asks of TensorFlow, and no more: copied to be the package `tensorflow` of a test's environment.

It keeps a list of what was called, and of the variables as they were when it was imported. As in TensorFlow, threads
cannot be changed once it has started computing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

CALLS: list[tuple[Any, ...]] = []
AT_IMPORT = dict(os.environ)


class _Threading:
    def __init__(self) -> None:
        self.counts = {"intra": 0, "inter": 0}
        self.begun = False

    def _set(self, which: str, number: int) -> None:
        if self.counts[which] != number and self.begun:
            raise RuntimeError(f"{which.title()} op parallelism cannot be modified after initialization.")
        self.counts[which] = number

    def get_intra_op_parallelism_threads(self) -> int:
        return self.counts["intra"]

    def get_inter_op_parallelism_threads(self) -> int:
        return self.counts["inter"]

    def set_intra_op_parallelism_threads(self, number: int) -> None:
        self._set("intra", number)

    def set_inter_op_parallelism_threads(self, number: int) -> None:
        self._set("inter", number)


def _calls(name: str) -> Callable[..., None]:
    return lambda *values: CALLS.append((name, *values))


config = SimpleNamespace(
    threading=_Threading(), experimental=SimpleNamespace(enable_op_determinism=_calls("enable_op_determinism"))
)
keras = SimpleNamespace(utils=SimpleNamespace(set_random_seed=_calls("set_random_seed")))
random = SimpleNamespace(set_seed=_calls("set_seed"))
set_random_seed = _calls("set_random_seed of 1.x")


def work() -> None:
    config.threading.begun = True
