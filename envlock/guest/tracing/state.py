"""The settings that a run reads in its process."""

from __future__ import annotations

import os

from envlock.guest.tracing import private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Dict, Optional


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
