"""The graphs of tf.data pipelines as plain values: of one dataset, and of all that a run reads from."""

from __future__ import annotations

from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

    Value = Union[int, float, str, bytes, bool, None]

    from envlock.guest.tracing.source_lines import Places

    Place = Tuple[str, int, str]

RESOURCE, VARIANT = 20, 21
"""Types of constants that are handles of this process, not values."""
INTEGERS = (3, 9)  # int32, int64


def serialized(tf: Any, dataset: Any) -> bytes:
    """Return the graph of a dataset as TensorFlow writes it; no element is read.

    Raises:
        AttributeError, tf.errors.OpError: this TensorFlow does not show it.
    """
    policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    data: bytes = dataset._as_serialized_graph(external_state_policy=policy).numpy()
    return data


def plain(data: bytes, deterministic: Optional[bool]) -> Dict[str, Any]:
    """Return it as dicts and lists; `deterministic` is what the dataset's options say about order."""
    from tensorflow.core.framework import graph_pb2

    parsed = graph_pb2.GraphDef()
    parsed.ParseFromString(data)
    functions = {
        function.signature.name: {
            "nodes": [_node(node) for node in function.node_def],
            "arguments": [argument.name for argument in function.signature.input_arg],
            "returns": [function.ret[argument.name] for argument in function.signature.output_arg],
        }
        for function in parsed.library.function
    }
    main = {"nodes": [_node(node) for node in parsed.node], "arguments": [], "returns": []}
    return {"main": main, "functions": functions, "deterministic": deterministic}


def _node(node: Any) -> Tuple[str, str, Tuple[str, ...], Dict[str, Value], Dict[str, str]]:
    attributes: Dict[str, Value] = {}
    functions: Dict[str, str] = {}
    for name, value in node.attr.items():
        if value.HasField("func"):
            functions[name] = value.func.name
        elif value.HasField("list") and value.list.func:
            functions.update(
                {
                    "{}/{}".format(name, number): each.name
                    for number, each in enumerate(value.list.func)
                }
            )
        else:
            attributes[name] = _value(value)
    return node.name, node.op, tuple(node.input), attributes, functions


def _value(value: Any) -> Value:
    """Return an attribute as a plain value: what is no number or text as its deterministic bytes."""
    kind = value.WhichOneof("value")
    if kind in ("i", "b", "s", "f", "type"):
        simple: Value = getattr(value, kind)
        return simple
    if kind == "tensor":
        return _tensor(value.tensor)
    data: bytes = value.SerializeToString(deterministic=True)
    return data


def _tensor(tensor: Any) -> Value:
    """Return a scalar integer as a number; of a handle only that it is one; all else as its bytes."""
    if tensor.dtype in (RESOURCE, VARIANT):
        return "handle"
    if not tensor.tensor_shape.dim and tensor.dtype in INTEGERS:
        listed = tensor.int_val if tensor.dtype == INTEGERS[0] else tensor.int64_val
        if len(listed) == 1:
            return int(listed[0])
        if tensor.tensor_content:
            return int.from_bytes(tensor.tensor_content, "little", signed=True)
        if not listed:
            return 0
    data: bytes = tensor.SerializeToString(deterministic=True)
    return data


LIMIT = 8
LARGEST = 4 << 20  # bytes of a graph: one that holds its data as a constant says no more


class Datasets:
    """Collects each pipeline that is iterated over, once."""

    def __init__(self, places: Places) -> None:
        """`places` finds the user's lines."""
        self._places = places
        self._graphs: Dict[Tuple[bytes, Optional[bool]], Optional[Place]] = {}

    @contextmanager
    def seen(self, tf: Any, quietly: Callable[[], Any]) -> Iterator[None]:
        """See what iterators are made of; `quietly` gives a context in which our own operations are not traced."""
        owner = tf.data.Dataset
        original = owner.__iter__

        def iterate(dataset: Any) -> Any:
            with quietly():
                self._take(tf, dataset)
            return original(dataset)

        owner.__iter__ = iterate
        try:
            yield
        finally:
            owner.__iter__ = original

    def _take(self, tf: Any, dataset: Any) -> None:
        if len(self._graphs) >= LIMIT or not tf.executing_eagerly():
            return
        try:
            data = serialized(tf, dataset)
            ordered = getattr(dataset.options(), "deterministic", None)
        except Exception:  # private, and there are datasets that cannot be written
            return
        if len(data) <= LARGEST:
            self._graphs.setdefault((data, ordered), self._places.here(3))

    def to_json(self) -> List[Dict[str, Any]]:
        """Return each graph with the line at which it was read, as `pipeline.Graph` has it."""
        return [{"place": place, "graph": plain(*key)} for key, place in self._graphs.items()]
