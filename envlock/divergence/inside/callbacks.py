"""TensorFlow's operation callbacks: the one place that imports this private module of TensorFlow's.

It runs in the user's interpreter: standard library and TensorFlow only, Python 3.8, nothing of this package.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, Tuple

    Callback = Callable[..., None]


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

    It starts TensorFlow's runtime, after which a program can no longer choose threads and devices: call it behind one.

    Raises:
        CallbacksMissing: one of them was not seen.
    """
    seen: List[Tuple[str, bool]] = []

    def callback(
        op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Optional[str] = None, graph: Any = None
    ) -> None:
        seen.append((kind(op_type), graph is not None))

    add(callback)
    try:
        with tf.device("/CPU:0"):
            number = tf.constant(2.0)
            tf.raw_ops.Mul(x=number, y=number)
            tf.function(lambda x: tf.raw_ops.Sub(x=x, y=x)).get_concrete_function(tf.TensorSpec((), tf.float32))
    except Exception as error:
        raise CallbacksMissing("they fail: " + type(error).__name__ + ": " + str(error)) from None
    finally:
        remove(callback)
    missed = [what for what, each in (("eager", ("Mul", False)), ("graph", ("Sub", True))) if each not in seen]
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


def _module() -> Any:
    try:
        from tensorflow.python.framework import op_callbacks
    except ImportError as error:
        raise CallbacksMissing(str(error)) from None
    return op_callbacks
