"""The operations that a program runs eagerly, in their order: types, attributes, dtypes and shapes, and
the values of numbers that its code has.
"""

from __future__ import annotations

import json
from threading import get_ident

from envlock.guest.operations.inventory import PARAMETERS
from envlock.guest.tracing import private
from envlock.guest.tracing.tracer import SKIPPED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Sequence, Set, Union

    from tensorflow import Tensor

    from envlock.guest.programs.keras_phases import Phases

MOST_VALUES = 64
"""Of an input that decides a shape."""
MOST_OPERATIONS = 200_000
# A function or a Python object has another name in each process.
_NAMES = frozenset(["token", "shared_name", "container", "_gradient_op_type"])


class EagerOperations:
    """Notes the operations of the thread that has made it, by what is running."""

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._thread = get_ident()
        self._made: Set[int] = set()
        self.operations: Dict[str, List[str]] = {}
        self.count = 0

    def observe(
        self,
        op_type: Union[bytes, str],
        inputs: Sequence[Tensor],
        attrs: Optional[Sequence[object]],
        outputs: Optional[Sequence[Tensor]],
        op_name: Optional[str] = None,
        graph: Optional[object] = None,
    ) -> None:
        """Note an operation; the arguments are those of TensorFlow's callbacks."""
        if graph is not None or get_ident() != self._thread:
            return
        for tensor in outputs or ():
            self._made.add(getattr(tensor, "_id", 0))
        kind = private.decode_kind(op_type)
        definition = private.find_definition(kind)
        # A function's own name stands for its call: its graph is noted elsewhere.
        if definition is None or kind in SKIPPED or private.gives_handles(definition):
            return
        self.count += 1
        if self.count > MOST_OPERATIONS:
            return
        names = [argument.name for argument in definition.input_arg]
        if len(names) != len(inputs):  # one of them is a list
            names = [""] * len(inputs)
        described = [self._describe(name, tensor) for name, tensor in zip(names, inputs)]
        text = json.dumps([kind, described, _describe_attributes(attrs)])
        self.operations.setdefault(self._phases.current, []).append(text)

    def _describe(self, name: str, tensor: Tensor) -> List[object]:
        """Return type and shape of an input; and its values where code decides them, not data."""
        dtype = getattr(getattr(tensor, "dtype", None), "name", "unknown")
        shape = [*getattr(tensor, "shape", ())]
        described: List[object] = [dtype, shape]
        if dtype in ("resource", "variant", "string", "unknown"):
            return described
        # A number that no operation has made comes from Python, as a learning rate does.
        is_given = not shape and getattr(tensor, "_id", 0) not in self._made
        if is_given or (name in PARAMETERS and sum(shape) <= MOST_VALUES):
            described.append(repr(tensor.numpy().tolist()))
        return described


def _describe_attributes(attrs: private.Attributes) -> List[List[str]]:
    """Return names and values of attributes, without names that are other ones in each process."""
    described = []
    for name, value in private.list_attributes(attrs):
        if name in _NAMES:
            continue
        text = repr(value)
        if hasattr(value, "name") and hasattr(value, "attr"):  # a function
            text = "function"
        elif isinstance(value, bytes):
            text = value.decode("utf-8", "backslashreplace")
        described.append([name, text])
    return described
