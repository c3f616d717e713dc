"""The only module that uses TensorFlow's private modules: callbacks, graphs and more; any of them
may be missing.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module

from envlock.guest.training.contract import Misuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Iterator, List, Optional, Sequence, Set, Tuple, Union

    from numpy import generic
    from numpy.typing import NDArray
    from tensorflow import Graph
    from tensorflow.core.framework.op_def_pb2 import OpDef
    from tensorflow.core.framework.tensor_pb2 import TensorProto

    Callback = Callable[..., None]
    Attributes = Optional[Sequence[object]]
    """A flat sequence: name, value, name, value."""
    PythonFunctionTaker = Callable[[object, Sequence[object], object], None]


def import_tensorflow() -> ModuleType:
    """Return TensorFlow.

    Raises:
        Misuse: it cannot be imported.
    """
    try:
        return import_module("tensorflow")
    except ImportError as error:
        raise Misuse("TensorFlow cannot be imported: " + str(error)) from None


def is_compiled(function: str) -> bool:
    """Return whether XLA compiles a function of this name, or one that it calls.

    False if unknown.
    """
    try:
        context = import_module("tensorflow.python.eager.context")
        return _calls_compiled(context.context(), function, set())
    except Exception:
        return False


def _calls_compiled(context: ModuleType, name: str, visited: Set[str]) -> bool:
    """Return whether XLA compiles the function or one that it calls.

    `visited` ends the search in a recursion.
    """
    if name in visited:
        return False
    visited.add(name)
    definition = context.get_function_def(name)
    if definition is None:
        return False
    if definition.attr["_XlaMustCompile"].b:
        return True
    for node in definition.node_def:
        for value in node.attr.values():
            if value.HasField("func") and _calls_compiled(context, value.func.name, visited):
                return True
    return False


def make_array(tensor: TensorProto) -> NDArray[generic]:
    """Return the values of a constant in a graph."""
    array: NDArray[generic] = import_module("tensorflow").make_ndarray(tensor)
    return array


def read_determinism() -> Optional[bool]:
    """Return whether op determinism is on; None if this TensorFlow does not tell."""
    try:
        config = import_module("tensorflow.python.framework.config")
        return bool(config.is_op_determinism_enabled())
    except (ImportError, AttributeError):
        return None


def forget_seed() -> None:
    """Remove TensorFlow's seed, as after the import; if that is not possible, the last one is kept."""
    try:
        context = import_module("tensorflow.python.eager.context")
        if context.global_seed() is not None:
            context.set_global_seed(None)
    except Exception:
        return


@contextmanager
def watch_python_functions(taker: PythonFunctionTaker) -> Iterator[None]:
    """Call `taker(function, inputs, outputs)` for each `tf.numpy_function` in eager mode, which is
    not an operation.

    If this TensorFlow is different, nothing is observed: the operation that uses such a value is
    reported instead.
    """
    try:
        context = import_module("tensorflow.python.eager.context")
        script_ops = import_module("tensorflow.python.ops.script_ops")
        original = script_ops.py_func_common
    except (ImportError, AttributeError):
        yield
        return

    def call_and_show(
        func: object, inp: Sequence[object], *args: object, **kwargs: object
    ) -> object:
        result: object = original(func, inp, *args, **kwargs)
        if context.executing_eagerly():
            taker(func, inp, result)
        return result

    script_ops.py_func_common = call_and_show  # type: ignore[attr-defined]
    try:
        yield
    finally:
        script_ops.py_func_common = original  # type: ignore[attr-defined]


class CallbacksMissing(Exception):  # noqa: N818 (it names the problem)
    """This TensorFlow has no operation callbacks, or they do not work as required."""


def add_callback(callback: Callback) -> None:
    """Let `callback(op_type, inputs, attrs, outputs, op_name, graph)` see each operation of this
    thread.
    """
    _import_callbacks().add_op_callback(callback)


def remove_callback(callback: Callback) -> None:
    """Remove a callback of this thread."""
    _import_callbacks().remove_op_callback(callback)


def _import_callbacks() -> ModuleType:
    try:
        return import_module("tensorflow.python.framework.op_callbacks")
    except ImportError as error:
        raise CallbacksMissing(str(error)) from None


def check_callbacks(tf: ModuleType) -> None:
    """Try both kinds of callbacks: of an eager operation, and of one that is added to a graph.

    This starts TensorFlow's runtime, after which a program can no longer set threads and devices:
    call it after a program.

    Raises:
        CallbacksMissing: one of them was not called.
    """
    seen: List[Tuple[str, bool]] = []

    def take(
        op_type: Union[bytes, str],
        inputs: object,
        attrs: object,
        outputs: object,
        op_name: Optional[str] = None,
        graph: Optional[Graph] = None,
    ) -> None:
        seen.append((decode_kind(op_type), graph is not None))

    add_callback(take)
    try:
        with tf.device("/CPU:0"):
            number = tf.constant(2.0)
            tf.raw_ops.Mul(x=number, y=number)
            function = tf.function(lambda x: tf.raw_ops.Sub(x=x, y=x))
            function.get_concrete_function(tf.TensorSpec((), tf.float32))
    except Exception as error:
        raise CallbacksMissing("they fail: " + type(error).__name__ + ": " + str(error)) from None
    finally:
        remove_callback(take)
    missed = []
    if ("Mul", False) not in seen:
        missed.append("eager")
    if ("Sub", True) not in seen:
        missed.append("graph")
    if missed:
        raise CallbacksMissing("they do not see " + " and ".join(missed) + " operations")


def find_blindness(tf: Optional[ModuleType]) -> Optional[str]:
    """Return why operations cannot be observed; None if they can, or TensorFlow is not installed."""
    try:
        if tf is not None:
            check_callbacks(tf)
    except CallbacksMissing as error:
        return str(error)
    return None


def decode_kind(op_type: Union[bytes, str]) -> str:
    """Return an operation's type as text: TensorFlow's fast path gives bytes."""
    if isinstance(op_type, bytes):
        return op_type.decode()
    return str(op_type)


def find_definition(kind: str) -> Optional[OpDef]:
    """Return the OpDef of a type of operation; None if TensorFlow has none, or does not show it."""
    try:
        return import_module("tensorflow.python.framework.op_def_registry").get(kind)
    except (ImportError, AttributeError):
        return None


def gives_handles(definition: OpDef) -> bool:
    """Return whether an operation gives nothing but handles, which have no numbers: a dataset, an
    iterator, a variable.
    """
    types_pb2 = import_module("tensorflow.core.framework.types_pb2")
    types = {argument.type for argument in definition.output_arg}
    return bool(types) and types <= {types_pb2.DT_RESOURCE, types_pb2.DT_VARIANT}


def list_attributes(attrs: Attributes) -> List[Tuple[str, object]]:
    """Return the names and values of an operation's attributes."""
    return list(zip(attrs[::2], attrs[1::2])) if attrs else []  # type: ignore[arg-type]
