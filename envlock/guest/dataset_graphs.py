"""The graphs of tf.data pipelines as plain values: of one dataset, and of all datasets that a run
reads.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, ContextManager, Dict, Iterator, List, Optional, Tuple, Union

    from tensorflow import Tensor
    from tensorflow.core.framework.attr_value_pb2 import AttrValue
    from tensorflow.core.framework.node_def_pb2 import NodeDef
    from tensorflow.core.framework.tensor_pb2 import TensorProto
    from tensorflow.data import Dataset

    from envlock.guest.tracing.source_lines import Places

    Value = Union[int, float, str, bytes, bool, None]
    Place = Tuple[str, int, str]
    Node = Tuple[str, str, Tuple[str, ...], Dict[str, Value], Dict[str, str]]

RESOURCE, VARIANT = 20, 21
"""Types of constants that are handles in this process, not values."""
INT32, INT64 = 3, 9
"""Types of constants that are compared by value: TensorFlow serializes the same integer in several
ways.
"""


def serialize_graph(tf: ModuleType, dataset: Dataset) -> bytes:
    """Return the graph of a dataset in TensorFlow's serialization; no element is read.

    Raises:
        AttributeError, tf.errors.OpError: this TensorFlow cannot serialize it.
    """
    policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    data: bytes = dataset._as_serialized_graph(external_state_policy=policy).numpy()
    return data


def has_op_determinism() -> bool:
    """Return whether op determinism is on in this process; False where this TensorFlow does not tell."""
    try:
        config = import_module("tensorflow.python.framework.config")
        return bool(config.is_op_determinism_enabled())
    except (ImportError, AttributeError):  # private, and may go
        return False


def parse_graph(data: bytes, deterministic: Optional[bool]) -> Dict[str, object]:
    """Return a serialized graph as dicts and lists.

    `deterministic` is what the options of the dataset say about order; None if they do not set it.
    """
    graph_pb2 = import_module("tensorflow.core.framework.graph_pb2")
    parsed = graph_pb2.GraphDef()
    parsed.ParseFromString(data)
    functions = {}
    for function in parsed.library.function:
        signature = function.signature
        functions[signature.name] = {
            "nodes": [_parse_node(node) for node in function.node_def],
            "arguments": [argument.name for argument in signature.input_arg],
            "returns": [function.ret[argument.name] for argument in signature.output_arg],
        }
    nodes = [_parse_node(node) for node in parsed.node]
    main = {"nodes": nodes, "arguments": [], "returns": []}
    return {"main": main, "functions": functions, "deterministic": deterministic}


def _parse_node(node: NodeDef) -> Node:
    attributes: Dict[str, Value] = {}
    functions: Dict[str, str] = {}
    for name, value in node.attr.items():
        if value.HasField("func"):
            functions[name] = value.func.name
        elif value.HasField("list") and value.list.func:
            for number, function in enumerate(value.list.func):
                functions["{}/{}".format(name, number)] = function.name
        else:
            attributes[name] = _parse_attribute(value)
    return node.name, node.op, tuple(node.input), attributes, functions


def _parse_attribute(value: AttrValue) -> Value:
    """Return an attribute as a number or a text; any other as its deterministic bytes."""
    kind = value.WhichOneof("value")
    if kind in ("i", "b", "s", "f", "type"):
        simple: Value = getattr(value, kind)
        return simple
    if kind == "tensor":
        return _parse_tensor(value.tensor)
    data: bytes = value.SerializeToString(deterministic=True)
    return data


def _parse_tensor(tensor: TensorProto) -> Value:
    """Return a scalar integer as a number, a handle as the word `handle`, and any other tensor as
    its bytes.
    """
    if tensor.dtype in (RESOURCE, VARIANT):
        return "handle"
    if not tensor.tensor_shape.dim and tensor.dtype in (INT32, INT64):
        values = tensor.int_val if tensor.dtype == INT32 else tensor.int64_val
        if len(values) == 1:
            return int(values[0])
        if tensor.tensor_content:
            return int.from_bytes(tensor.tensor_content, "little", signed=True)
        if not values:
            return 0
    data: bytes = tensor.SerializeToString(deterministic=True)
    return data


LIMIT = 8
"""Pipelines of a run that are kept."""
LARGEST = 4 << 20
"""Bytes of a graph: a larger one contains its data as a constant, which says nothing about its
operations.
"""


class Datasets:
    """Collects each pipeline that is iterated over, once."""

    def __init__(self, places: Places) -> None:
        """`places` finds the user's lines."""
        self.places = places
        self._graphs: Dict[Tuple[bytes, Optional[bool]], Optional[Place]] = {}

    @contextmanager
    def collect(self, tf: ModuleType, pause: Callable[[], ContextManager[None]]) -> Iterator[None]:
        """Collect the pipelines of all iterators that are made inside; under `pause()`, operations
        are not traced.
        """
        owner = tf.data.Dataset
        original = owner.__iter__

        def iterate(dataset: Dataset) -> Iterator[Tensor]:
            with pause():
                self._take(tf, dataset)
            iterator: Iterator[Tensor] = original(dataset)
            return iterator

        owner.__iter__ = iterate
        try:
            yield
        finally:
            owner.__iter__ = original

    def _take(self, tf: ModuleType, dataset: Dataset) -> None:
        if len(self._graphs) >= LIMIT or not tf.executing_eagerly():
            return
        try:
            data = serialize_graph(tf, dataset)
            deterministic = getattr(dataset.options(), "deterministic", None)
        except Exception:  # the method is private, and some datasets cannot be serialized
            return
        if len(data) <= LARGEST:
            # Two of envlock's frames lie between the user's line and this one: this one and
            # `iterate`.
            self._graphs.setdefault((data, deterministic), self.places.find_caller(3))

    def to_json(self) -> List[Dict[str, object]]:
        """Return each graph with the line that read it, in the form of `pipeline.Graph`."""
        return [{"place": place, "graph": parse_graph(*key)} for key, place in self._graphs.items()]
