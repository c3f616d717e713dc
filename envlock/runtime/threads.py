"""TensorFlow's thread pools: fixed by its own functions, which say when it is too late."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

SAID = {"TF_NUM_INTRAOP_THREADS": "intra-op", "TF_NUM_INTEROP_THREADS": "inter-op"}


def initialised(tf: Any) -> bool:
    """Return whether TensorFlow has begun to work: from then on it refuses another number of threads.

    That refusal is the only public sign. A TensorFlow without these functions (1.x) begins with its first session, and
    cannot be asked.
    """
    threading = _threading(tf)
    if threading is None:
        return False
    before = threading.get_intra_op_parallelism_threads()
    try:
        threading.set_intra_op_parallelism_threads(before + 1)
    except RuntimeError:
        return True
    threading.set_intra_op_parallelism_threads(before)
    return False


def fix(tf: Any, counts: Dict[str, int]) -> None:
    """Fix the size of the pools, by variable as `additions.THREADS` names them.

    Raises:
        RuntimeError: TensorFlow has begun to work, with another number.
    """
    threading = _threading(tf)
    for name, count in counts.items() if threading is not None else ():
        getattr(threading, f"set_{SAID[name].replace('-', '_')}_parallelism_threads")(count)


def _threading(tf: Any) -> Any:
    return getattr(getattr(tf, "config", None), "threading", None)
