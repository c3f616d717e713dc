"""`envlock.lint_dataset(ds)`: the only file that asks TensorFlow; it is imported when the function is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from envlock.determinism.pipeline import Body, DatasetFinding, Graph, Node, Value, digest, findings, texts
from envlock.runtime.errors import UsageError

RESOURCE, VARIANT = 20, 21
"""Types of constants that are handles of this process, not values."""


@dataclass(frozen=True)
class DatasetReport:
    """What is known of a pipeline.

    Attributes:
        findings: errors first.
        digest: the same for pipelines of the same operations, settings and constants, in every process of one
            TensorFlow. What Python functions in it do does not enter.
    """

    findings: list[DatasetFinding]
    digest: str

    @property
    def repeatable(self) -> bool:
        """Whether nothing is found that makes elements or their order differ from run to run."""
        return all(finding.severity != "error" for finding in self.findings)

    def __str__(self) -> str:
        lines = texts(self.findings) or ["nothing found"]
        return "\n".join([*lines, f"digest {self.digest}"])


def lint_dataset(dataset: Any) -> DatasetReport:
    """Return what makes a tf.data.Dataset give other elements, or another order, from run to run.

    Its graph is looked at; no element is read. Seeds are part of the graph, so set them before the dataset is made.

    Raises:
        UsageError: it is no tf.data.Dataset, or this TensorFlow does not show its graph.
    """
    try:
        import tensorflow as tf
        from tensorflow.core.framework import graph_pb2
    except ImportError:
        raise UsageError("lint_dataset needs TensorFlow, which is not installed here") from None
    if not isinstance(dataset, tf.data.Dataset):
        hint = "pass the dataset itself, before it is distributed or iterated over"
        raise UsageError(f"lint_dataset wants a tf.data.Dataset, not {type(dataset).__name__}", hint=hint)
    try:
        policy = tf.data.experimental.ExternalStatePolicy.IGNORE
        serialized = dataset._as_serialized_graph(external_state_policy=policy).numpy()
    except (AttributeError, tf.errors.OpError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise UsageError(f"TensorFlow {tf.__version__} does not show the graph of this dataset: {reason}") from None
    parsed = graph_pb2.GraphDef()
    parsed.ParseFromString(serialized)
    graph = _graph(parsed, getattr(dataset.options(), "deterministic", None))
    return DatasetReport(findings(graph, switched_on=_switched_on()), digest(graph))


def _switched_on() -> bool:
    try:
        from tensorflow.python.framework.config import is_op_determinism_enabled
    except ImportError:  # private, and may go
        return False
    return bool(is_op_determinism_enabled())


def _graph(parsed: Any, deterministic: bool | None) -> Graph:
    functions = {
        function.signature.name: Body(
            tuple(_node(node) for node in function.node_def),
            tuple(argument.name for argument in function.signature.input_arg),
            tuple(function.ret[argument.name] for argument in function.signature.output_arg),
        )
        for function in parsed.library.function
    }
    return Graph(Body(tuple(_node(node) for node in parsed.node)), functions, deterministic)


def _node(node: Any) -> Node:
    attributes: dict[str, Value] = {}
    functions: dict[str, str] = {}
    for name, value in node.attr.items():
        if value.HasField("func"):
            functions[name] = value.func.name
        elif value.HasField("list") and value.list.func:
            functions.update({f"{name}/{number}": each.name for number, each in enumerate(value.list.func)})
        else:
            attributes[name] = _value(node.op, value)
    return Node(node.name, node.op, tuple(node.input), attributes, functions)


def _value(op: str, value: Any) -> Value:
    """Return an attribute as a plain value: what is no number or text as its deterministic bytes."""
    kind = value.WhichOneof("value")
    if kind in ("i", "b", "s", "f", "type"):
        plain: Value = getattr(value, kind)
        return plain
    if kind == "tensor":
        return _tensor(value.tensor)
    data: bytes = value.SerializeToString(deterministic=True)
    return data


def _tensor(tensor: Any) -> Value:
    """Return a scalar integer as a number; of a handle only that it is one; all else as its bytes."""
    if tensor.dtype in (RESOURCE, VARIANT):
        return "handle"
    if not tensor.tensor_shape.dim and tensor.dtype in (3, 9):  # int32, int64
        listed = tensor.int_val if tensor.dtype == 3 else tensor.int64_val
        if len(listed) == 1:
            return int(listed[0])
        if tensor.tensor_content:
            return int.from_bytes(tensor.tensor_content, "little", signed=True)
        if not listed:
            return 0
    data: bytes = tensor.SerializeToString(deterministic=True)
    return data
