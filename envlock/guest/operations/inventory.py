"""Notes which operations a program runs: type, attributes, dtypes and shapes, each distinct one once; no data.

The values of an input are noted only where they decide shapes or places, as replay.toml lists them.
"""

from __future__ import annotations

import json
import time
from threading import get_ident

from envlock.guest.tracing import private
from envlock.guest.tracing.tracer import SKIPPED, Enough
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

    Noted = Dict[str, Any]

MOST_OPERATIONS = 500
MOST_VALUES = 64  # of an input that decides a shape
MOST_BYTES = 1 << 29  # of all inputs, and of all results, of one operation

_REPLAY, _GROUPS = table("replay"), table("operations")
LISTED = frozenset(_REPLAY["operations"])
PARAMETERS = frozenset(_REPLAY["parameters"])
_NUMBERLESS = SKIPPED.union(
    _GROUPS["moving"], _GROUPS["unobserved"], _GROUPS["bookkeeping"], _GROUPS["opened"]
)
"""They compute no numbers of their own, so nothing of theirs can have other bits."""
_RANDOM = frozenset(_GROUPS["random"] + _GROUPS["random_images"] + _GROUPS["generators"])
_PLAIN = frozenset(
    [
        *(
            "bool",
            "bfloat16",
            "complex64",
            "complex128",
            "float16",
            "float32",
            "float64",
            "int8",
            "int16",
            "int32",
        ),
        *("int64", "uint8", "uint16", "uint32", "uint64"),
    ]
)


class Inventory:
    """Takes the tracer's place: sees the operations of the thread that has made it, for some steps and seconds."""

    def __init__(self, tf: Any, steps: Optional[int], seconds: float) -> None:
        """Raise `Enough` at step `steps`, or at the first operation after `seconds`."""
        self._tf = tf
        self._steps = steps
        self._end = time.monotonic() + seconds
        self._thread = get_ident()
        self._seen: Dict[str, None] = {}
        self.noted: List[Noted] = []
        self.left_out: Dict[str, Dict[str, int]] = {}
        self.step = 0
        self.batches = 0
        self.cut = False

    @property
    def distinct(self) -> int:
        """How many different operations the program has run."""
        return len(self._seen)

    def begin_step(self, number: int) -> None:
        """Say that what follows belongs to step `number`.

        Raises:
            Enough: no more are wanted.
        """
        if self._steps is not None and number >= self._steps:
            raise Enough
        self.step = max(self.step, number)

    def value(self, name: str, value: Any) -> None:
        """Leave a quantity of the run alone."""

    def seen(
        self,
        op_type: Any,
        inputs: Any,
        attrs: Any,
        outputs: Any,
        op_name: Optional[str] = None,
        graph: Any = None,
    ) -> None:
        """Note an operation; the arguments are those of TensorFlow's callbacks.

        Raises:
            Enough: the time is up.
        """
        kind = private.kind(op_type)
        if graph is not None or get_ident() != self._thread or kind in _NUMBERLESS:
            return
        if time.monotonic() > self._end:
            self.cut = True
            raise Enough
        definition = private.definition(kind)
        if definition is not None and _is_plumbing(definition):
            return
        noted: Noted = {"type": kind}
        reason = "control" if definition is None else None
        if definition is not None:
            noted["inputs"] = [self._input(*each) for each in _named(definition, inputs)]
            noted["attributes"], strange = self._attributes(definition, attrs, inputs)
            reason = _reason(kind, noted, strange=strange)
        key = json.dumps(noted, sort_keys=True, default=str)
        if key in self._seen:
            return
        self._seen[key] = None
        if reason is None and len(self.noted) >= MOST_OPERATIONS:
            reason = "room"
        if reason is None:
            self.noted.append(noted)
        else:
            counts = self.left_out.setdefault(reason, {})
            counts[kind] = counts.get(kind, 0) + 1

    def _input(self, name: str, tensor: Any) -> Noted:
        dtype = getattr(getattr(tensor, "dtype", None), "name", "unknown")
        found: Noted = {"dtype": dtype, "shape": list(getattr(tensor, "shape", ()))}
        if name in PARAMETERS and dtype in _PLAIN and _count(found["shape"]) <= MOST_VALUES:
            found["values"] = tensor.numpy().reshape(-1).tolist()
        return found

    def _attributes(self, definition: Any, attrs: Any, inputs: Any) -> Any:
        """Return the attributes as JSON values, without those that the inputs tell; and whether one has no such."""
        given = {attrs[at]: attrs[at + 1] for at in range(0, len(attrs or ()) - 1, 2)}
        told = {each.type_attr for each in definition.input_arg} | {
            each.type_list_attr for each in definition.input_arg
        }
        found: Dict[str, Any] = {}
        strange = False
        for each in definition.attr:
            if each.name in told or given.get(each.name) is None:
                continue
            value = self._plain(each.type, given[each.name])
            strange = strange or value is None
            found[each.name] = value
        for each in definition.input_arg:  # how many tensors a list has
            if each.number_attr and each.number_attr not in found:
                found[each.number_attr] = len(inputs) - len(definition.input_arg) + 1
        return found, strange

    def _plain(self, kind: str, value: Any) -> Any:
        if kind == "type":
            return self._tf.as_dtype(value).name
        if kind == "string":
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        if kind == "shape":
            shape = self._tf.TensorShape(value)
            return shape.as_list() if shape.is_fully_defined() else None
        if kind in ("int", "float", "bool"):
            return {"int": int, "float": float, "bool": bool}[kind](value)
        if kind in ("list(int)", "list(float)"):
            return [(int if kind == "list(int)" else float)(each) for each in value]
        return None  # a function, a tensor


def _is_plumbing(definition: Any) -> bool:
    """Return whether an operation gives nothing but handles and calls no function: a dataset, an iterator."""
    handles = private.handle_types()
    functions = any(each.type in ("func", "list(func)") for each in definition.attr)
    return (
        not functions
        and all(each.type in handles for each in definition.output_arg)
        and bool(definition.output_arg)
    )


def _named(definition: Any, inputs: Any) -> Any:
    """Return the inputs with the names of their arguments; at most one argument is a list."""
    names: List[str] = []
    for each in definition.input_arg:
        many = bool(each.number_attr or each.type_list_attr)
        names += [each.name] * (len(inputs) - len(definition.input_arg) + 1 if many else 1)
    return (
        list(zip(names, inputs)) if len(names) == len(inputs) else [("", each) for each in inputs]
    )


def _reason(kind: str, noted: Noted, *, strange: bool) -> Optional[str]:
    """Return why an operation cannot be computed again alone; None where it can."""
    dtypes = {each["dtype"] for each in noted["inputs"]}
    if strange:
        return "control"
    if kind in _RANDOM:
        return "random"
    if dtypes & {"resource", "variant"}:
        return "state"
    if "string" in dtypes:
        return "text"
    if kind not in LISTED or not dtypes <= _PLAIN:
        return "unlisted"
    return (
        "large"
        if sum(_count(each["shape"]) * size(each["dtype"]) for each in noted["inputs"]) > MOST_BYTES
        else None
    )


def size(dtype: str) -> int:
    """Return how many bytes a number of a type has."""
    return 1 if dtype == "bool" else int("".join(each for each in dtype if each.isdigit())) // 8


def _count(shape: Any) -> int:
    count = 1
    for each in shape:
        count *= each
    return count
