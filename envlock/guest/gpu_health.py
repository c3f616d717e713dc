"""Ask NVML for the memory errors of this machine's GPUs, which no lockfile holds: they are history,
and no setting.

Sources: https://docs.nvidia.com/deploy/dynamic-page-retirement/ (GPUs before Ampere retire pages)
and https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/ (from Ampere on they remap rows).
"""

from __future__ import annotations

import sys

from envlock.runtime.gpu.child import import_binding
from envlock.runtime.gpu.nvml import ask, is_unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

    from envlock.runtime.gpu.nvml import Binding

UNCORRECTED = 1  # nvml.h: NVML_MEMORY_ERROR_TYPE_UNCORRECTED
SINCE_LOADED = 0  # nvml.h: NVML_VOLATILE_ECC, since the driver was loaded
DOUBLE_BIT = 1  # nvml.h: NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR
FAILED = 3  # of what nvmlDeviceGetRemappedRows returns: corrected, uncorrected, pending, failed
PENDING = 2  # the same list


def collect_health(folder: str) -> Dict[str, object]:
    """Return `{"gpus": [...]}`, one object for each GPU in the order of `nvidia-smi`.

    No GPU where NVML does not answer: what is wrong with it then is a finding of the facts.

    Args:
        folder: one with `pynvml`, for an environment that does not have one; or empty.
    """
    if folder:
        sys.path.append(folder)
    try:
        binding = import_binding()
        binding.nvmlInit()
    except Exception:  # whatever a module of that name, or a broken driver, raises
        return {"gpus": []}
    return {"gpus": list_gpus(binding)}


def list_gpus(nvml: Binding) -> List[Dict[str, object]]:
    """Return the memory errors of each GPU; None for what a GPU does not count."""
    count = ask(nvml, "nvmlDeviceGetCount")
    if is_unavailable(count):
        return []
    gpus = []
    for index in range(count):
        handle = ask(nvml, "nvmlDeviceGetHandleByIndex", index)
        if not is_unavailable(handle):
            gpus.append(_describe_gpu(nvml, index, handle))
    return gpus


def _describe_gpu(nvml: Binding, index: int, handle: object) -> Dict[str, object]:
    pages = _ask(nvml, "nvmlDeviceGetRetiredPages", handle, DOUBLE_BIT)
    pages_pending = _ask(nvml, "nvmlDeviceGetRetiredPagesPendingStatus", handle)
    rows = _ask(nvml, "nvmlDeviceGetRemappedRows", handle)
    if not isinstance(rows, (list, tuple)) or len(rows) <= FAILED:
        rows = None
    retired = len(pages) if pages is not None else None
    return {
        "index": index,
        "name": _ask(nvml, "nvmlDeviceGetName", handle),
        "uncorrected": _ask(nvml, "nvmlDeviceGetTotalEccErrors", handle, UNCORRECTED, SINCE_LOADED),
        "retired_pages": retired,
        "remapped_rows": None if rows is None else rows[1],
        "pending": bool(pages_pending) or bool(rows is not None and rows[PENDING]),
        "remapping_failed": bool(rows is not None and rows[FAILED]),
    }


def _ask(nvml: Binding, function: str, *arguments: object) -> Optional[Any]:
    value = ask(nvml, function, *arguments)
    if is_unavailable(value):
        return None
    return value
