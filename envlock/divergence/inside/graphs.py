"""What envlock asks of TensorFlow's graphs beyond its public interface; where that is not there, the answer is no."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Optional

_DEEPEST = 400  # frames
_DATA = "structured_function.py"
_DEVICES = "multi_device_iterator_ops.py"
"""The files of tf.data in which functions become graphs: those of a pipeline, and those that hand out its elements."""
_HANDING_OUT = ("_init_func", "_next_func", "_remote_", "_finalize_func", "_next_as_optional_func")


def is_function(graph: Any) -> bool:
    """Return whether a graph is that of a function, not one of TensorFlow 1's."""
    return graph is not None and hasattr(graph, "captures") and hasattr(graph, "outer_graph")


def captured(graph: Any, tensor: Any) -> Optional[Any]:
    """Return what a placeholder of a function's graph stands for in the graph around it; None where for nothing."""
    if not is_function(graph):
        return None
    for outer, inner in graph.captures:
        if inner is tensor:
            return outer
    return None


def in_data_function(graph: Any) -> bool:
    """Return whether a function of tf.data's is being made this graph right now."""
    handing_out = str(getattr(graph, "name", "")).startswith(_HANDING_OUT)
    frame: Optional[FrameType] = sys._getframe(1)
    left = _DEEPEST
    while frame is not None and left:
        file = frame.f_code.co_filename
        if file.endswith(_DATA) or (handing_out and file.endswith(_DEVICES)):
            return True
        frame = frame.f_back
        left -= 1
    return False
