"""What in a running TensorFlow can change bits, told when the run is over: only then has the program set it."""

from __future__ import annotations

import os

from envlock.divergence.inside import private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

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
