"""Fingerprints of the results of operations inside graphs, computed while the graphs run (level 3).

While a graph is built, each operation that computes numbers is followed by a few more, which add
its fingerprint to a slot of one table. That works in all graphs: under XLA, in the bodies of loops
and branches, in replicas. When the graph has run, `take` reads the table and writes it into the
trace.

The fingerprint is a sum of integers that wraps around: it is the same for every order of addition,
so it is itself deterministic, and the same in TensorFlow's graphs, under XLA and in numpy
(`hash_array`). Each value is multiplied by a factor that depends on its position, so exchanged
values are noticed. If an operation runs several times in a call, as in a loop, its fingerprints are
added. A fingerprint is never 0, which stands for an operation that has not run.

It runs in the user's interpreter: standard library, numpy and TensorFlow only, Python 3.8.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from envlock.guest.late_numpy import import_numpy
from envlock.guest.tracing import private, undefined
from envlock.guest.tracing.trace_writer import format_spec
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Dict, List, Optional, Sequence, Tuple

    from numpy import generic, int64
    from numpy.typing import NDArray
    from tensorflow import Graph, Tensor
    from tensorflow import Operation as GraphOperation

    from envlock.guest.tracing.source_lines import Places
    from envlock.guest.tracing.trace_writer import Operation, TraceWriter

    Slots = List[Optional[int]]

NAME = "position-sum-64"
"""The name of this fingerprint in a trace's header."""
ROOM = 1 << 15
"""Slots of the table; further operations are counted, but not fingerprinted."""
BLOCK = 4096
"""Words of eight bytes whose sum of products is computed at once."""
_STEP = 0x9E3779B97F4A7C15
"""The step of SplitMix64."""
_DOWN = 31
"""By how many bits the upper bits are shifted down: by 31, because the two halves of eight bytes
are often equal.
"""
_UNSIGNED = 1 << 64
_INTEGERS = {
    "float16": "int16",
    "bfloat16": "int16",
    "float32": "int32",
    "float64": "int64",
    "complex64": "int64",
    "complex128": "int64",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "uint8": "uint8",
}
"""The integer type with as many bits, by the name of a type whose tensors are fingerprinted."""
_GROUPS = table("operations")
_MOVING = frozenset(_GROUPS["moving"])
"""Operations whose output is their input: not fingerprinted, and values are traced back through
them.
"""
_SKIPPED = frozenset(_GROUPS["unobserved"])
_SOURCES = tuple(_GROUPS["integers_prefix"])
"""In the types of operations whose integers are fingerprinted as well: data, and random numbers."""
_ELEMENTWISE = frozenset(_GROUPS["each"])
"""Each number of the output depends on a fixed few of the input, or is one of them: nothing is
summed, so no order can differ.
"""
_MUTATING = tuple(_GROUPS["mutating_prefix"])
_TEMPORARY = "envlock_"
_UNSEEDED = "seed=0 seed2=0"
"""The words of the eager trace."""


class Entry:
    """An operation of a graph, and the slots of its inputs and outputs."""

    __slots__ = ("inputs", "operation", "outputs")

    def __init__(self, operation: Operation, inputs: Slots, outputs: List[int]) -> None:
        self.operation = operation
        self.inputs = inputs
        self.outputs = outputs


class InGraph:
    """Adds fingerprints to every graph whose operations it observes, and reads them."""

    def __init__(self, tf: ModuleType, places: Places, *, every: bool = True) -> None:
        """Begin with an empty table; `places` finds the user's lines.

        Without `every`, operations that work on each number separately are left out, and a variable
        is fingerprinted once in each graph: on one machine, equal inputs give them equal outputs.
        That saves most of the cost.
        """
        self._tf = tf
        self._places = places
        self._every = every
        self._device = ""
        self._empty: Optional[Tensor] = None
        self.handle: Optional[Tensor] = None
        """The table; None before it is needed."""
        self._functions: Dict[Optional[int], Callable[[Tensor], Tensor]] = {}
        self._slots: WeakKeyDictionary[Graph, Dict[str, Optional[int]]] = WeakKeyDictionary()
        self._is_data: WeakKeyDictionary[Graph, bool] = WeakKeyDictionary()
        self._operations: List[Entry] = []
        self._used = 0
        self.unseen = 0  # operations for which there was no slot left

    def observe(
        self,
        kind: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        name: Optional[str],
        graph: Graph,
    ) -> None:
        """Fingerprint an operation that has just been added to a graph; the caller leaves out the
        operations of this class.
        """
        if kind in _SKIPPED or name is None:
            return
        if not private.is_function(graph) or self._is_of_data(graph):
            return
        if kind in _MOVING:
            for before, after in zip(inputs, outputs):
                self._get_slots(graph)[after.name] = self._find_slot(before)
            return
        if not self._every and (kind in _ELEMENTWISE or self._is_known(kind, inputs, outputs)):
            return
        self._fingerprint(kind, inputs, outputs, name, graph)

    def _is_known(self, kind: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> bool:
        """Return whether this only reads a variable that the graph has read before, and remember
        that it was read.
        """
        if kind != "ReadVariableOp":
            return False
        slots = self._get_slots(inputs[0].graph)
        before = slots.get(inputs[0].name)
        if before is None:
            slots[inputs[0].name] = self._used  # the slot of the fingerprint
            return False
        slots[outputs[0].name] = before
        return True

    def _fingerprint(
        self,
        kind: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        name: str,
        graph: Graph,
    ) -> None:
        """Add operations to the graph that compute the fingerprints of an operation's results, or
        of the variables that it changes.
        """
        tensors = _select_outputs(kind, outputs)
        if not tensors and kind.startswith(_MUTATING):
            tensors = self._read_states(inputs)
        if not tensors or name.rpartition("/")[2].startswith(_TEMPORARY):
            return
        if self._used + len(tensors) > ROOM:
            self.unseen += 1
            return
        known = [self._find_slot(tensor) for tensor in inputs]
        slots = [self._add(tensor, graph) for tensor in tensors]
        if outputs:
            built: GraphOperation = outputs[0].op
        else:
            built = graph.get_operation_by_name(name)
        place = self._places.find_in_stack(built.traceback)
        about = _UNSEEDED if _is_unseeded(built) else built.name
        operation = (kind, about, place, _format_specs(inputs), _format_specs(tensors))
        self._operations.append(Entry(operation, known, slots))

    def take(self, writer: TraceWriter) -> bool:
        """Write the operations that have run since the last call to the trace, in the order in
        which they were built; return whether any has.
        """
        if not self._used:
            return False
        table = self._tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self._tf.int64)
        values: List[int] = table.numpy()[: self._used].tolist()
        if not any(values):
            return False
        self._tf.raw_ops.AssignVariableOp(resource=self.handle, value=self._empty)
        for entry in self._operations:
            outputs = [values[slot] for slot in entry.outputs]
            if not any(outputs):
                continue
            inputs: List[Optional[int]] = []
            for slot in entry.inputs:
                # 0 stands for an operation that has not run.
                if slot is None:
                    inputs.append(None)
                else:
                    inputs.append(values[slot] or None)
            writer.write_operation(entry.operation, inputs, [value or None for value in outputs])
        return True

    def _make_table(self) -> None:
        """Create the table: only when it is needed, or the program could no longer set threads and
        devices.

        It is not a `tf.Variable`, which a strategy would give to each replica.
        """
        tf = self._tf
        self._device = "/CPU:0"
        if tf.config.list_logical_devices("GPU"):
            self._device = "/GPU:0"
        with tf.init_scope(), tf.device(self._device):
            self._empty = tf.zeros((ROOM,), tf.int64)
            name = "envlock_table_{}".format(id(self))
            self.handle = tf.raw_ops.VarHandleOp(dtype=tf.int64, shape=(ROOM,), shared_name=name)
            tf.raw_ops.AssignVariableOp(resource=self.handle, value=self._empty)

    def _add(self, tensor: Tensor, graph: Graph) -> int:
        """Add operations to the graph that add the fingerprint of a tensor to the next slot; return
        the slot.
        """
        if self.handle is None:
            self._make_table()
        tf, slot = self._tf, self._used
        self._used += 1
        with tf.name_scope(_TEMPORARY):
            row = pack_words(tf, tensor)
            fingerprint = self._get_function(row.shape.num_elements())(row)
            with tf.device(self._device):
                tf.raw_ops.ResourceScatterNdAdd(
                    ref=self.handle, indices=[[slot]], updates=fingerprint
                )
        self._get_slots(graph)[tensor.name] = slot
        return slot

    def _get_function(self, size: Optional[int]) -> Callable[[Tensor], Tensor]:
        """Return the graph that computes the fingerprint of a row of `size` words, None if unknown.

        Few graphs serve all tensors, or building would take minutes: one for each size of a single
        incomplete block, one for whole blocks, and one for all other rows.
        """
        tf = self._tf
        key: Optional[int] = None
        shape: Optional[int] = None
        if size is not None and size <= BLOCK:
            key = shape = size
        elif size is not None and size % BLOCK == 0:
            key = -1
        if key not in self._functions:
            is_whole = key is not None
            with tf.init_scope():
                function = tf.function(lambda row: build_fingerprint(tf, row, is_whole=is_whole))
                self._functions[key] = function.get_concrete_function(
                    tf.TensorSpec((shape,), tf.int64)
                )
        return self._functions[key]

    def _read_states(self, inputs: Sequence[Tensor]) -> List[Tensor]:
        """Return the values that an operation without outputs leaves in its variables, read after
        it.
        """
        states = []
        for handle in inputs:
            if handle.dtype != self._tf.resource:
                continue
            dtype = private.find_held_type(handle)
            if dtype is not None and self._tf.as_dtype(dtype).name in _INTEGERS:
                with self._tf.name_scope(_TEMPORARY):
                    states.append(self._tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype))
        return states

    def _get_slots(self, graph: Graph) -> Dict[str, Optional[int]]:
        """Return the slots of a graph's tensors by name; None for a tensor without a fingerprint."""
        slots = self._slots.get(graph)
        if slots is None:
            slots = self._slots[graph] = {}
        return slots

    def _find_slot(self, tensor: Tensor) -> Optional[int]:
        """Return the slot of a tensor's fingerprint; for a tensor that is captured from the
        surrounding graph, the slot there.
        """
        graph = getattr(tensor, "graph", None)
        if graph is None:
            return None
        slots = self._get_slots(graph)
        if tensor.name not in slots:
            outer = private.find_captured(graph, tensor)
            slot = self._find_slot(outer) if outer is not None else None
            slots[tensor.name] = slot
        return slots[tensor.name]

    def _is_of_data(self, graph: Graph) -> bool:
        """Return whether a graph is a function of tf.data: a table in it would change how the
        pipeline runs.
        """
        known = self._is_data.get(graph)
        if known is None:
            known = private.is_in_data_function(graph)
            outer = getattr(graph, "outer_graph", None)
            if not known and private.is_function(outer):
                known = self._is_of_data(outer)
            self._is_data[graph] = known
        return known


def pack_words(tf: ModuleType, tensor: Tensor) -> Tensor:
    """Return the bits of a tensor as a row of int64, padded with zeros."""
    together, count = max(8 // tensor.dtype.size, 1), tensor.shape.num_elements()
    if together == 1:
        return tf.reshape(tf.bitcast(tensor, tf.int64), [-1])
    if count is None or count % together:
        bits = tf.reshape(tf.bitcast(tensor, _INTEGERS[tensor.dtype.name]), [-1])
        tensor = tf.concat([bits, tf.zeros([-tf.size(bits) % together], bits.dtype)], 0)
    return tf.bitcast(tf.reshape(tensor, [-1, together]), tf.int64)


def build_fingerprint(tf: ModuleType, row: Tensor, *, is_whole: bool = False) -> Tensor:
    """Return the fingerprint of a row of int64, as a tensor of one.

    `is_whole`: it is known to be a single incomplete block, or to consist of whole blocks.
    """
    size = None
    count = tf.size(row, out_type=tf.int64)
    if is_whole:
        size = row.shape.num_elements()
    else:
        row = tf.concat([row, tf.zeros([-tf.size(row) % BLOCK], tf.int64)], 0)
    # The upper bits are mixed into the lower ones, or changed signs would cancel out.
    row = tf.bitwise.bitwise_xor(row, tf.bitwise.right_shift(row, tf.constant(_DOWN, tf.int64)))
    if size is not None and size <= BLOCK:
        constant = _make_signed((size + 1) * _STEP % _UNSIGNED)
        sums = _sum_products(tf, tf.reshape(row, [1, size]), make_factors(size))
        return sums + tf.constant(constant, tf.int64)
    step = tf.constant(_make_signed(_STEP), tf.int64)
    blocks = _sum_products(tf, tf.reshape(row, [-1, BLOCK]), make_factors(BLOCK))
    order = tf.range(tf.size(blocks, out_type=tf.int64)) * step
    odd = tf.bitwise.bitwise_or(order, tf.constant(1, tf.int64))
    total = tf.reduce_sum(blocks * odd, keepdims=True)
    return total + (count + 1) * step


def _sum_products(tf: ModuleType, rows: Tensor, factors: NDArray[int64]) -> Tensor:
    """Return the sum of each row's numbers, each times its factor."""
    # A GPU cannot multiply matrices of integers.
    if tf.config.list_physical_devices("GPU"):
        return tf.reduce_sum(rows * tf.constant(factors), 1)
    return tf.reshape(tf.linalg.matmul(rows, tf.constant(factors[:, None])), [-1])


def make_factors(size: int) -> NDArray[int64]:
    """Return the first factors of a block: the outputs of SplitMix64 for 0, 1, 2 ..., made odd."""
    numpy = import_numpy()
    with numpy.errstate(over="ignore"):
        mixed = (numpy.arange(size, dtype=numpy.uint64) + numpy.uint64(1)) * numpy.uint64(_STEP)
        mixed = (mixed ^ (mixed >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        odd = mixed ^ (mixed >> numpy.uint64(31)) | numpy.uint64(1)
    factors: NDArray[int64] = odd.view(numpy.int64)
    return factors


def hash_array(array: NDArray[generic]) -> int:
    """Return the same number for a numpy array, from 0 to 2**64 - 1."""
    numpy = import_numpy()
    raw = numpy.ascontiguousarray(array).tobytes()
    row = numpy.frombuffer(raw + b"\0" * (-len(raw) % 8), dtype=numpy.int64)
    row = row ^ (row >> numpy.int64(_DOWN))
    total, factors = 0, make_factors(BLOCK)
    with numpy.errstate(over="ignore"):
        for number, start in enumerate(range(0, row.size, BLOCK)):
            block = row[start : start + BLOCK]
            products = block * factors[: block.size]
            total += int(products.sum(dtype=numpy.int64)) * (number * _STEP | 1)
    return int((total + (row.size + 1) * _STEP) % _UNSIGNED)


def _make_signed(number: int) -> int:
    """Return a number of 64 bits as a signed integer."""
    if number >> 63:
        return number - _UNSIGNED
    return number


def _is_unseeded(operation: GraphOperation) -> bool:
    """Return whether an operation draws random numbers without any seed."""
    try:
        return not (operation.get_attr("seed") or operation.get_attr("seed2"))
    except ValueError:  # it has no seed
        return False


def _select_outputs(kind: str, outputs: Sequence[Tensor]) -> List[Tensor]:
    """Return the outputs of an operation that have a meaning, and whose type is fingerprinted."""
    if not outputs:
        return []
    left_out = undefined.find_undefined(kind, outputs[0].op.get_attr)
    selected = []
    for number, tensor in enumerate(outputs):
        if number not in left_out and _has_fingerprint(kind, tensor):
            selected.append(tensor)
    return selected


def _has_fingerprint(kind: str, tensor: Tensor) -> bool:
    dtype = tensor.dtype.name
    if dtype not in _INTEGERS:
        return False
    return "int" not in dtype or kind == "Placeholder" or any(word in kind for word in _SOURCES)


def _format_specs(tensors: Sequence[Tensor]) -> Tuple[str, ...]:
    specs = []
    for tensor in tensors:
        shape = tensor.shape.as_list() if tensor.shape.rank is not None else None
        specs.append(format_spec(tensor.dtype.name, shape))
    return tuple(specs)
