"""What a run changes and reads in a process: variables and seed, put back before each run, and settings."""

from __future__ import annotations

import gc
import os
from contextlib import suppress

from envlock.guest.tracing import private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple


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


_INTER, _INTRA = "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"


def of(tf: Any) -> Dict[str, Any]:
    """Return threads, op determinism, the kinds of devices and whether XLA is on for all."""
    threading = tf.config.threading
    found: Dict[str, Any] = {
        "threads.intra_op": _threads(threading.get_intra_op_parallelism_threads(), _INTRA),
        "threads.inter_op": _threads(threading.get_inter_op_parallelism_threads(), _INTER),
        "op_determinism": private.determinism(),
        "xla": str(tf.config.optimizer.get_jit() or "off"),
    }
    for device in tf.config.list_logical_devices():
        name = "devices." + device.device_type
        found[name] = found.get(name, 0) + 1
    return found


def _threads(asked: int, variable: str) -> Optional[int]:
    """Return how many threads there are: as asked for, as the variable says, else one for each CPU we may use."""
    if asked:
        return asked
    try:
        return int(os.environ.get(variable, "")) or len(os.sched_getaffinity(0))
    except ValueError:
        return len(os.sched_getaffinity(0))
