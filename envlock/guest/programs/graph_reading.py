"""The graph of a function as JSON values: its nodes with all that decides what they compute."""

from __future__ import annotations

import hashlib

from envlock.guest.tracing import private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Protocol, Sequence, TypedDict, Union

    from numpy import generic
    from numpy.typing import NDArray
    from tensorflow import Tensor
    from tensorflow.core.framework.function_pb2 import FunctionDef
    from tensorflow.core.framework.node_def_pb2 import NodeDef

    class Concrete(Protocol):
        @property
        def name(self) -> Union[bytes, str]: ...

        @property
        def captured_inputs(self) -> Sequence[Tensor]: ...

    class Node(TypedDict):
        name: str
        op: str
        inputs: List[str]
        device: str
        attributes: Dict[str, str]
        calls: Dict[str, List[str]]
        size: int

    class Body(TypedDict):
        inputs: List[str]
        types: List[str]
        nodes: List[Node]
        outputs: List[str]
        control: List[str]
        compiled: bool


# Their values are made again in each process, or name Python's objects; they decide nothing.
_NAMES = frozenset(
    [
        *("_gradient_op_type", "_class", "_user_specified_name", "_output_shapes", "token"),
        *("_construction_context", "shared_name", "container", "cache_container"),
    ]
)
MUST_COMPILE = "_XlaMustCompile"


def read_definitions(name: str, found: Dict[str, object]) -> None:
    """Add the body of a function to `found`, and those of all that it calls."""
    pending = [name]
    while pending:
        each = pending.pop()
        if each in found:
            continue
        definition = private.find_function(each)
        if definition is None:
            found[each] = None
            continue
        body = _read_body(definition)
        found[each] = body
        for node in body["nodes"]:
            for called in node["calls"].values():
                pending += called


def read_captures(concrete: Concrete) -> List[str]:
    """Return what each tensor is that a function takes from around it: a resource, or the digest of a value."""
    found = []
    for tensor in concrete.captured_inputs:
        name = getattr(getattr(tensor, "dtype", None), "name", "unknown")
        if name in ("resource", "variant") or not hasattr(tensor, "numpy"):
            found.append(name)
        else:
            found.append(digest_array(tensor.numpy()))
    return found


def _read_body(definition: FunctionDef) -> Body:
    signature = definition.signature
    return {
        "inputs": [argument.name for argument in signature.input_arg],
        "types": [str(argument.type) for argument in signature.input_arg],
        "nodes": [_read_node(node) for node in definition.node_def],
        "outputs": [definition.ret[argument.name] for argument in signature.output_arg],
        "control": sorted(definition.control_ret.values()),
        "compiled": bool(definition.attr[MUST_COMPILE].b),
    }


def _read_node(node: NodeDef) -> Node:
    attributes: Dict[str, str] = {}
    calls: Dict[str, List[str]] = {}
    size = 0
    for name, value in sorted(node.attr.items()):
        if name in _NAMES:
            continue
        kind = value.WhichOneof("value")
        if kind == "func":
            calls[name] = [value.func.name]
        elif kind == "list" and value.list.func:
            calls[name] = [function.name for function in value.list.func]
        elif kind == "tensor":
            array = private.make_array(value.tensor)
            size = int(array.size)
            attributes[name] = digest_array(array)
        elif name == "config_proto":
            attributes[name] = private.describe_rewriting(value.s)
        elif kind == "s":
            attributes[name] = value.s.decode("utf-8", "backslashreplace")
        else:
            attributes[name] = str(value)
    return {
        "name": node.name,
        "op": node.op,
        "inputs": list(node.input),
        "device": node.device,
        "attributes": attributes,
        "calls": calls,
        "size": size,
    }


def digest_array(array: NDArray[generic]) -> str:
    """Return type, shape and the digest of the values of an array."""
    if array.dtype.kind in "OSU":  # texts have no bytes of one length
        data = repr(array.tolist()).encode("utf-8", "backslashreplace")
    else:
        data = array.tobytes()
    digest = hashlib.sha256(data).hexdigest()
    return "{}{} {}".format(array.dtype, list(array.shape), digest)
