"""The one place that imports TensorFlow's private modules: callbacks, graphs and more; each may be missing."""

from __future__ import annotations

import sys
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, List, Optional, Tuple

    Taker = Callable[[Any, Any, Any], None]

    Callback = Callable[..., None]
    from types import FrameType


def is_compiled(function: str) -> bool:
    """Return whether XLA compiles a function of this name, or one that it calls; False where that cannot be told."""
    try:
        from tensorflow.python.eager import context

        return _compiled(context.context(), function, set())
    except Exception:
        return False


def _compiled(context: Any, name: str, seen: Any) -> bool:
    if name in seen:
        return False
    seen.add(name)
    definition = context.get_function_def(name)
    if definition is None:
        return False
    if definition.attr["_XlaMustCompile"].b:
        return True
    inner = {
        value.func.name
        for node in definition.node_def
        for value in node.attr.values()
        if value.HasField("func")
    }
    return any(_compiled(context, each, seen) for each in inner)


def determinism() -> Optional[bool]:
    """Return whether op determinism is on; None where that cannot be told."""
    try:
        from tensorflow.python.framework.config import is_op_determinism_enabled
    except ImportError:
        return None
    return bool(is_op_determinism_enabled())


def global_seed() -> Optional[int]:
    """Return TensorFlow's seed; None where there is none, or it cannot be read."""
    try:
        from tensorflow.python.eager import context

        seed = context.global_seed()
    except Exception:
        return None
    return None if seed is None else int(seed)


def forget_seed() -> None:
    """Let TensorFlow have no seed, as when it is imported; where that cannot be done the last one stays."""
    try:
        from tensorflow.python.eager import context

        if context.global_seed() is not None:
            context.set_global_seed(None)
    except Exception:
        return


def held_type(handle: Any) -> Optional[Any]:
    """Return the type of what a variable holds, told by its handle; None where that is not known."""
    try:
        from tensorflow.python.ops.handle_data_util import get_resource_handle_data

        data = get_resource_handle_data(handle)
    except (ImportError, AttributeError, TypeError):
        return None
    if data is None or not data.is_set or not data.shape_and_type:
        return None
    return data.shape_and_type[0].dtype


@contextmanager
def python_functions(taker: Taker) -> Iterator[None]:
    """Let `taker(function, inputs, outputs)` see what `tf.numpy_function` gives in eager mode, which is no operation.

    Where this TensorFlow is built otherwise nothing is seen: the operation that uses such a value is reported instead.
    """
    try:
        from tensorflow.python.eager import context
        from tensorflow.python.ops import script_ops

        original = script_ops.py_func_common
    except (ImportError, AttributeError):
        yield
        return

    def seen(func: Any, inp: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(func, inp, *args, **kwargs)
        if context.executing_eagerly():
            taker(func, inp, result)
        return result

    script_ops.py_func_common = seen
    try:
        yield
    finally:
        script_ops.py_func_common = original


class CallbacksMissing(Exception):  # noqa: N818 (it says what is the matter)
    """This TensorFlow has no operation callbacks, or they do not do what they must."""


def add(callback: Callback) -> None:
    """Let `callback(op_type, inputs, attrs, outputs, op_name, graph)` see each operation of this thread."""
    _module().add_op_callback(callback)


def remove(callback: Callback) -> None:
    """Take a callback away."""
    _module().remove_op_callback(callback)


def probe(tf: Any) -> None:
    """Try both kinds, an eager operation and one that is put into a graph.

    It starts TensorFlow's runtime, after which a program can no longer choose threads and devices: call it after one.

    Raises:
        CallbacksMissing: one of them was not seen.
    """
    seen: List[Tuple[str, bool]] = []

    def callback(
        op_type: Any,
        inputs: Any,
        attrs: Any,
        outputs: Any,
        op_name: Optional[str] = None,
        graph: Any = None,
    ) -> None:
        seen.append((kind(op_type), graph is not None))

    add(callback)
    try:
        with tf.device("/CPU:0"):
            number = tf.constant(2.0)
            tf.raw_ops.Mul(x=number, y=number)
            tf.function(lambda x: tf.raw_ops.Sub(x=x, y=x)).get_concrete_function(
                tf.TensorSpec((), tf.float32)
            )
    except Exception as error:
        raise CallbacksMissing("they fail: " + type(error).__name__ + ": " + str(error)) from None
    finally:
        remove(callback)
    missed = [
        what
        for what, each in (("eager", ("Mul", False)), ("graph", ("Sub", True)))
        if each not in seen
    ]
    if missed:
        raise CallbacksMissing("they do not see " + " and ".join(missed) + " operations")


def blindness(tf: Any) -> Optional[str]:
    """Return why operations cannot be seen; None where they can, or there is no TensorFlow."""
    try:
        if tf is not None:
            probe(tf)
    except CallbacksMissing as error:
        return str(error)
    return None


def kind(op_type: Any) -> str:
    """Return an operation's type as text: the fast path gives bytes."""
    return op_type.decode() if isinstance(op_type, bytes) else str(op_type)


def definition(kind: str) -> Any:
    """Return what TensorFlow knows of a type of operation, as an OpDef; None where it knows none, or does not tell."""
    try:
        from tensorflow.python.framework import op_def_registry

        return op_def_registry.get(kind)
    except (ImportError, AttributeError):
        return None


def handle_types() -> Any:
    """Return the numbers, in an OpDef, of the types that hold no numbers: a resource, a variant."""
    from tensorflow.core.framework import types_pb2

    return types_pb2.DT_RESOURCE, types_pb2.DT_VARIANT


def _module() -> Any:
    try:
        from tensorflow.python.framework import op_callbacks
    except ImportError as error:
        raise CallbacksMissing(str(error)) from None
    return op_callbacks


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
