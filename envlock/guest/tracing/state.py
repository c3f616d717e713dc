"""The state that a run changes and reads in a process: variables and seed, which are restored
before each run, and settings.
"""

from __future__ import annotations

import gc
import os
from contextlib import suppress

from envlock.guest.tracing import private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Dict, List, Optional, Tuple

    from tensorflow import Tensor, Variable


class State:
    """The values of all live variables, and TensorFlow's seed."""

    def __init__(self, tf: ModuleType) -> None:
        """Read the values."""
        self._tf = tf
        self._seed = private.read_global_seed()
        self._variables: List[Tuple[Variable, Tensor]] = []
        for candidate in gc.get_objects():
            if isinstance(candidate, tf.Variable):
                with suppress(Exception):  # not initialised, or of a graph
                    self._variables.append((candidate, tf.identity(candidate)))

    def put_back(self) -> None:
        """Restore the value of every variable that is still alive, and reset TensorFlow's seed."""
        for variable, value in self._variables:
            variable.assign(value)
        if self._seed is not None:
            self._tf.random.set_seed(self._seed)


_INTER, _INTRA = "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"


def read_conditions(tf: ModuleType) -> Dict[str, object]:
    """Return threads, op determinism, the number of devices of each kind, and whether XLA is on
    globally.
    """
    threading = tf.config.threading
    conditions = {
        "threads.intra_op": _count_threads(threading.get_intra_op_parallelism_threads(), _INTRA),
        "threads.inter_op": _count_threads(threading.get_inter_op_parallelism_threads(), _INTER),
        "op_determinism": private.read_determinism(),
        "xla": str(tf.config.optimizer.get_jit() or "off"),
    }
    devices: Dict[str, int] = {}
    for device in tf.config.list_logical_devices():
        name = "devices." + device.device_type
        devices[name] = devices.get(name, 0) + 1
    return {**conditions, **devices}


def _count_threads(setting: int, variable: str) -> Optional[int]:
    """Return the number of threads: the setting, else the variable, else one for each CPU of this
    process.
    """
    if setting:
        return setting
    try:
        return int(os.environ.get(variable, "")) or len(os.sched_getaffinity(0))
    except ValueError:
        return len(os.sched_getaffinity(0))
