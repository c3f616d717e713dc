"""Record which operations a program runs: type, attributes, dtypes and shapes, each distinct one
once; no data.

The values of an input are recorded only if they determine shapes or positions; replay.toml lists
these inputs.
"""

from __future__ import annotations

import json
import math
import time
from contextlib import contextmanager
from threading import get_ident

from envlock.guest.tracing import private, runs
from envlock.guest.tracing.tracer import SKIPPED, Enough
from envlock.guest.training import contract
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import (
        Any,
        Callable,
        Dict,
        Iterable,
        Iterator,
        List,
        Mapping,
        Optional,
        Sequence,
        Set,
        TypedDict,
        Union,
    )

    from tensorflow import Tensor
    from tensorflow.core.framework.op_def_pb2 import OpDef

    from envlock.guest.training.store import Log

    Number = Union[bool, int, float]
    Attribute = Union[Number, str, Sequence[Optional[Number]], None]
    """None if JSON cannot represent it: a function, a tensor, a shape that is not fully known."""

    class Input(TypedDict, total=False):
        dtype: str
        shape: List[int]
        values: List[Number]

    class Operation(TypedDict, total=False):
        type: str
        inputs: List[Input]
        attributes: Dict[str, Attribute]


MOST_OPERATIONS = 500
MOST_VALUES = 64
"""Values of an input that determines a shape."""
MOST_BYTES = 1 << 29
"""Bytes of all inputs, and of all results, of one operation."""

_REPLAY, _GROUPS = table("replay"), table("operations")
LISTED = frozenset(_REPLAY["operations"])
PARAMETERS = frozenset(_REPLAY["parameters"])
_NUMBERLESS = SKIPPED.union(
    _GROUPS["moving"], _GROUPS["unobserved"], _GROUPS["bookkeeping"], _GROUPS["opened"]
)
"""Operations that compute no numbers of their own, so that their results cannot have different
bits.
"""
_RANDOM = frozenset(_GROUPS["random"] + _GROUPS["random_images"] + _GROUPS["generators"])
_PLAIN = frozenset(
    [
        "bool",
        "bfloat16",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    ]
)
"""Types whose values are numbers."""
_SCALARS = {"int": int, "float": float, "bool": bool}


class Inventory:
    """Records the operations of the thread that created it, for some steps and seconds."""

    def __init__(self, tf: ModuleType, steps: int, seconds: float) -> None:
        """Raise `Enough` at step `steps`, or at the first operation after `seconds`."""
        self._tf = tf
        self._steps = steps
        self._end = time.monotonic() + seconds
        self._thread = get_ident()
        self._known: Dict[str, None] = {}
        self.operations: List[Operation] = []
        self.left_out: Dict[str, Dict[str, int]] = {}
        """How many operations of each type were not recorded, by reason."""
        self.step = 0
        self.batches = 0
        self.is_cut = False
        """Whether the time limit ended it before the program did."""

    @property
    def distinct(self) -> int:
        """The number of different operations that the program has run."""
        return len(self._known)

    def to_json(self) -> Dict[str, object]:
        """Return the operations, and what is left out of them."""
        return {
            "operations": self.operations,
            "distinct": self.distinct,
            "left_out": self.left_out,
            "cut": self.is_cut,
        }

    def begin_step(self, number: int) -> None:
        """Begin step `number`.

        Raises:
            Enough: no more steps are needed.
        """
        if number >= self._steps:
            raise Enough
        self.step = max(self.step, number)

    def write_value(self, name: str, value: object) -> None:
        """Ignore a quantity of the run: it is not an operation."""

    def observe(
        self,
        op_type: Union[bytes, str],
        inputs: Sequence[Tensor],
        attrs: Optional[Sequence[object]],
        outputs: object,
        op_name: Optional[str] = None,
        graph: Optional[object] = None,
    ) -> None:
        """Record an operation; the arguments are those of TensorFlow's callbacks.

        Raises:
            Enough: the time limit is reached.
        """
        kind = private.decode_kind(op_type)
        if graph is not None or get_ident() != self._thread or kind in _NUMBERLESS:
            return
        if time.monotonic() > self._end:
            self.is_cut = True
            raise Enough
        definition = private.find_definition(kind)
        operation: Operation = {"type": kind}
        reason: Optional[str] = "control"
        if definition is not None:
            if _is_plumbing(definition):
                return
            operation["inputs"] = _describe_inputs(definition, inputs)
            operation["attributes"] = self._describe_attributes(definition, attrs, len(inputs))
            reason = _find_obstacle(operation)
        key = json.dumps(operation, sort_keys=True, default=str)
        if key in self._known:
            return
        self._known[key] = None
        if reason is None and len(self.operations) >= MOST_OPERATIONS:
            reason = "room"
        if reason is None:
            self.operations.append(operation)
        else:
            counts = self.left_out.setdefault(reason, {})
            counts[kind] = counts.get(kind, 0) + 1

    def _describe_attributes(
        self, definition: OpDef, attrs: Optional[Sequence[object]], input_count: int
    ) -> Dict[str, Attribute]:
        """Return the attributes that the inputs do not determine, and the number of tensors in a
        list.
        """
        values = dict(private.list_attributes(attrs))
        inferred: Set[str] = set()
        for argument in definition.input_arg:
            inferred.update((argument.type_attr, argument.type_list_attr))
        attributes: Dict[str, Attribute] = {}
        for declared in definition.attr:
            value = values.get(declared.name)
            if declared.name not in inferred and value is not None:
                attributes[declared.name] = self._make_plain(declared.type, value)
        for argument in definition.input_arg:
            if argument.number_attr and argument.number_attr not in attributes:
                attributes[argument.number_attr] = _count_listed(definition, input_count)
        return attributes

    def _make_plain(self, kind: str, value: object) -> Attribute:
        """Return the value of an attribute for JSON; None if JSON cannot represent it."""
        if kind == "type":
            name: str = self._tf.as_dtype(value).name
            return name
        if kind == "string":
            if isinstance(value, bytes):
                return value.decode("utf-8", "replace")
            return str(value)
        if kind == "shape":
            shape = self._tf.TensorShape(value)
            if not shape.is_fully_defined():
                return None
            sizes: List[int] = shape.as_list()
            return sizes
        if kind in _SCALARS:
            scalar: Number = _SCALARS[kind](value)
            return scalar
        if kind in ("list(int)", "list(float)"):
            convert = _SCALARS[kind[len("list(") : -1]]
            return [convert(element) for element in value]  # type: ignore[attr-defined]
        return None


class Operations:
    """Notes operations in one run, for `steps` steps and at most `seconds` seconds."""

    def __init__(self, asked: Mapping[str, Any], log: Log) -> None:
        """Take what is asked for; the program is loaded by the run."""
        self._asked = asked
        self._program = contract.Program(asked)

    def run(self, number: int) -> Mapping[str, object]:
        """Run the function with every graph expanded into operations, and return these.

        Raises:
            Misuse: it cannot be run in this way, or this TensorFlow does not show its operations.
            BaseException: any exception of the user's code.
        """
        self._program.set_seeds()
        call = self._program.load()
        tf = private.import_tensorflow()
        # Again: importing the module can have drawn numbers.
        self._program.set_seeds()
        inventory = Inventory(tf, self._asked["steps"], self._asked["seconds"])
        with _watch_operations(inventory.observe):
            tf.config.run_functions_eagerly(True)
            with runs.count_batches(inventory):
                runs.perform(call, lambda: inventory)
        if not inventory.distinct:
            # Not before the program: it starts the runtime, after which threads can no longer be chosen.
            blind = private.find_blindness(tf)
            if blind is not None:
                raise contract.Misuse(blind)
        return inventory.to_json()

    def can_go_on(self, number: int, *, has_failed: bool) -> bool:
        """Return that there is no other run."""
        return False

    def describe_runs(self) -> Iterable[Mapping[str, object]]:
        """Return nothing: all that was seen stands in the line of the run."""
        return ()


@contextmanager
def _watch_operations(observe: Callable[..., None]) -> Iterator[None]:
    """Let `observe` see each operation of the block, which `Enough` ends without an error.

    Raises:
        Misuse: this TensorFlow has no operation callbacks.
    """
    try:
        private.add_callback(observe)
    except private.CallbacksMissing as error:
        raise contract.Misuse(str(error)) from None
    try:
        yield
    except Enough:
        pass
    finally:
        private.remove_callback(observe)


def _count_listed(definition: OpDef, count: int) -> int:
    """Return the number of tensors in the single list among the arguments of an operation with
    `count` inputs.
    """
    return count - len(definition.input_arg) + 1


def _describe_inputs(definition: OpDef, inputs: Sequence[Tensor]) -> List[Input]:
    """Return type, shape and, for inputs that determine shapes, the values of the inputs."""
    names: List[str] = []
    for argument in definition.input_arg:
        # At most one argument of an operation is a list.
        if argument.number_attr or argument.type_list_attr:
            names += [argument.name] * _count_listed(definition, len(inputs))
        else:
            names.append(argument.name)
    if len(names) != len(inputs):
        names = [""] * len(inputs)
    return [_describe_input(name, tensor) for name, tensor in zip(names, inputs)]


def _describe_input(name: str, tensor: Tensor) -> Input:
    dtype = getattr(getattr(tensor, "dtype", None), "name", "unknown")
    shape = list(getattr(tensor, "shape", ()))
    described: Input = {"dtype": dtype, "shape": shape}
    if name in PARAMETERS and dtype in _PLAIN and count_values(shape) <= MOST_VALUES:
        described["values"] = tensor.numpy().reshape(-1).tolist()
    return described


def _is_plumbing(definition: OpDef) -> bool:
    """Return whether an operation only produces handles and calls no function: a dataset, an
    iterator.
    """
    calls = any(attribute.type in ("func", "list(func)") for attribute in definition.attr)
    return not calls and private.gives_handles(definition)


def _find_obstacle(operation: Operation) -> Optional[str]:
    """Return why an operation cannot be computed again on its own, as a word; None if it can."""
    dtypes = set()
    total = 0
    for described in operation["inputs"]:
        dtypes.add(described["dtype"])
    if None in operation["attributes"].values():
        return "control"
    if operation["type"] in _RANDOM:
        return "random"
    if dtypes & {"resource", "variant"}:
        return "state"
    if "string" in dtypes:
        return "text"
    if operation["type"] not in LISTED or not dtypes <= _PLAIN:
        return "unlisted"
    for described in operation["inputs"]:
        total += count_bytes(described)
    if total > MOST_BYTES:
        return "large"
    return None


def count_bytes(described: Input) -> int:
    """Return the number of bytes of an input."""
    return count_values(described["shape"]) * get_item_size(described["dtype"])


def get_item_size(dtype: str) -> int:
    """Return the number of bytes of a number of a type: the digits in its name are its bits."""
    if dtype == "bool":
        return 1
    return int("".join(filter(str.isdigit, dtype))) // 8


def count_values(shape: Sequence[int]) -> int:
    """Return the number of values in an array of a shape."""
    return math.prod(shape)
