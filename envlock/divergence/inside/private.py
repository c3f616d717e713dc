"""What envlock takes from TensorFlow's private modules beside the operation callbacks; each part may be missing."""

from __future__ import annotations

from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, Optional

    Taker = Callable[[Any, Any, Any], None]


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
    inner = {value.func.name for node in definition.node_def for value in node.attr.values() if value.HasField("func")}
    return any(_compiled(context, each, seen) for each in inner)


def determinism() -> Optional[bool]:
    """Return whether op determinism is on; None where that cannot be told."""
    try:
        from tensorflow.python.framework.config import is_op_determinism_enabled
    except ImportError:
        return None
    return bool(is_op_determinism_enabled())


def global_seed() -> Optional[int]:
    """Return TensorFlow's seed; None where there is none, or it cannot be told."""
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

    Where this TensorFlow is built otherwise nothing is seen, and such a value is told at the operation that uses it.
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
