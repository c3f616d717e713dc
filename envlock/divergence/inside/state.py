"""What a process holds that a run changes: TensorFlow's variables and seed. Kept, and put back before each run."""

from __future__ import annotations

import gc
from contextlib import suppress

from envlock.divergence.inside import private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Tuple


class State:
    """The values of all variables that are alive, and TensorFlow's seed."""

    def __init__(self, tf: Any) -> None:
        """Take them."""
        self._tf = tf
        self._seed: Optional[int] = private.global_seed()
        self._variables: List[Tuple[Any, Any]] = []
        for each in gc.get_objects():
            if isinstance(each, tf.Variable):
                with suppress(Exception):  # not initialised, or of a graph
                    self._variables.append((each, tf.identity(each)))

    def put_back(self) -> None:
        """Give every variable that lives still what it held, and let TensorFlow's seed begin anew."""
        for variable, value in self._variables:
            variable.assign(value)
        if self._seed is not None:
            self._tf.random.set_seed(self._seed)
