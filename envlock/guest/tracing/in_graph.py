"""Fingerprints of what operations compute inside of graphs, taken while the graphs run (level 3).

While a graph is built, each operation that computes numbers gets a few more after it, which add its fingerprint to a
slot of one table. That works wherever graphs are: under XLA, in the bodies of loops and branches, in replicas. When the
graph has run, `take` reads the table and writes it into the trace.

The fingerprint is a sum of integers that wraps round: whatever order it is added in, it is the same number, so it is
itself deterministic, and the same in TensorFlow's graphs, under XLA and in numpy (`of_array`). Each value is multiplied
by a factor of its position, so exchanged values are seen. What runs several times in a call, in a loop, is summed over
all times. It is never 0, which stands for what has not run.

It runs in the user's interpreter: standard library, numpy and TensorFlow only, Python 3.8.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from envlock.guest.tracing import private, undefined
from envlock.guest.tracing.trace_writer import spec
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    from envlock.guest.tracing.source_lines import Places
    from envlock.guest.tracing.trace_writer import Operation, TraceWriter

    Slots = List[Optional[int]]

NAME = "position-sum-64"
"""What a trace's header calls this fingerprint."""
ROOM = 1 << 15
"""Slots; operations that come when they are used up are counted, and not seen."""
BLOCK = 4096
"""Words of eight bytes whose sum of products is made at once."""
_STEP = 0x9E3779B97F4A7C15
_DOWN = 31
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
"""As which integers the bits of a type are taken."""
_GROUPS = table("operations")
_MOVING = frozenset(_GROUPS["moving"])
"""What comes out is what came in: not looked at, and no break in where a value comes from."""
_SKIPPED = frozenset(_GROUPS["unobserved"])
_SOURCES = tuple(_GROUPS["integers_prefix"])
"""In the types of operations whose integers are looked at as well: data, and what is drawn."""
_EACH = frozenset(_GROUPS["each"])
"""Each number that comes out is made of a fixed few that go in, or is one of them: nothing is summed, so there is no
order that could be another one."""
_MUTATING = tuple(_GROUPS["mutating_prefix"])
_TEMPORARY = "envlock_"
_UNSEEDED = "seed=0 seed2=0"  # as the eager trace has it


class InGraph:
    """Puts fingerprints into every graph that is built while it hears of it, and reads them."""

    def __init__(self, tf: Any, places: Places, *, every: bool = True) -> None:
        """Look at what is put into graphs from now on; `places` finds the user's lines.

        Without `every`, operations that work on each number by itself are left out, and a variable is looked at once a
        graph: on one machine they give the same where the same goes in. That is most of the cost.
        """
        self._tf = tf
        self._places = places
        self._every = every
        self._device = ""
        self._empty: Any = None
        self.handle: Any = None
        self._functions: Dict[Optional[int], Any] = {}
        self._slots: WeakKeyDictionary[Any, Dict[str, Optional[int]]] = WeakKeyDictionary()
        self._data: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
        self._operations: List[Tuple[Operation, Slots, Slots]] = []
        self._used = 0
        self.unseen = 0  # operations for which there was no room

    def built(self, kind: str, inputs: Any, outputs: Any, name: Optional[str], graph: Any) -> None:
        """Look at an operation that has just been put into a graph. The caller sees to it that ours are not shown."""
        if (
            kind in _SKIPPED
            or name is None
            or not private.is_function(graph)
            or self._is_data(graph)
        ):
            return
        if kind in _MOVING:
            for before, after in zip(inputs, outputs):
                self._slots_of(graph)[after.name] = self._slot(before)
        elif self._every or not (kind in _EACH or self._is_known(kind, inputs, outputs)):
            self._look(kind, inputs, outputs, name, graph)

    def _is_known(self, kind: str, inputs: Any, outputs: Any) -> bool:
        """Return whether this only reads a variable that the graph has read before."""
        if kind != "ReadVariableOp":
            return False
        known = self._slots_of(inputs[0].graph)
        before = known.get(inputs[0].name)
        if before is None:
            known[inputs[0].name] = self._used  # where the fingerprint will be
        else:
            known[outputs[0].name] = before
        return before is not None

    def _look(self, kind: str, inputs: Any, outputs: Any, name: str, graph: Any) -> None:
        void = undefined.outputs(kind, outputs[0].op.get_attr) if outputs else ()
        looked_at = [
            each for at, each in enumerate(outputs) if at not in void and _is_looked_at(kind, each)
        ]
        left = [] if looked_at or not kind.startswith(_MUTATING) else self._states(inputs)
        if not (looked_at or left) or name.rpartition("/")[2].startswith(_TEMPORARY):
            return
        if self._used + len(looked_at) + len(left) > ROOM:
            self.unseen += 1
            return
        known = [self._slot(each) for each in inputs]
        made: Slots = [self._add(each, graph) for each in looked_at + left]
        operation = outputs[0].op if outputs else graph.get_operation_by_name(name)
        place = self._places.of_stack(operation.traceback)
        read, given = (tuple([_spec(each) for each in side]) for side in (inputs, looked_at + left))
        about = _UNSEEDED if _is_unseeded(operation) else operation.name
        self._operations.append(((kind, about, place, read, given), known, made))

    def take(self, writer: TraceWriter) -> bool:
        """Write down what has run since the last time, in the order in which it was built; return whether any has."""
        if not self._used:
            return False
        table = self._tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self._tf.int64)
        values = table.numpy()[: self._used].tolist()
        if not any(values):
            return False
        self._tf.raw_ops.AssignVariableOp(resource=self.handle, value=self._empty)
        for operation, known, made in self._operations:
            outputs = [values[slot] for slot in made if slot is not None]
            if any(outputs):
                inputs = [None if slot is None else values[slot] or None for slot in known]
                writer.record(operation, inputs, [each or None for each in outputs])
        return True

    def _make(self) -> None:
        """Make the table: not before it is needed, or the program could not choose threads and devices any more.

        It is no `tf.Variable`, which a strategy would give to each replica.
        """
        tf = self._tf
        self._device = "/GPU:0" if tf.config.list_logical_devices("GPU") else "/CPU:0"
        with tf.init_scope(), tf.device(self._device):
            self._empty = tf.zeros((ROOM,), tf.int64)
            name = "envlock_table_{}".format(id(self))
            self.handle = tf.raw_ops.VarHandleOp(dtype=tf.int64, shape=(ROOM,), shared_name=name)
            tf.raw_ops.AssignVariableOp(resource=self.handle, value=self._empty)

    def _add(self, tensor: Any, graph: Any) -> int:
        """Let the graph add the fingerprint of a tensor to the next slot; return the slot."""
        if self.handle is None:
            self._make()
        tf, slot = self._tf, self._used
        self._used += 1
        with tf.name_scope(_TEMPORARY):
            row = words(tf, tensor)
            print_ = self._function(row.shape.num_elements())(row)
            with tf.device(self._device):
                tf.raw_ops.ResourceScatterNdAdd(ref=self.handle, indices=[[slot]], updates=print_)
        self._slots_of(graph)[tensor.name] = slot
        return slot

    def _function(self, size: Optional[int]) -> Any:
        """Return the graph that makes the fingerprint of a row: few for all tensors, or building takes minutes."""
        key = (
            size
            if size is not None and size <= BLOCK
            else -1
            if size is not None and size % BLOCK == 0
            else None
        )
        if key not in self._functions:
            tf = self._tf
            shape = None if key in (None, -1) else key
            with tf.init_scope():
                traced = tf.function(lambda row: fingerprint(tf, row, whole=key is not None))
                self._functions[key] = traced.get_concrete_function(
                    tf.TensorSpec((shape,), tf.int64)
                )
        return self._functions[key]

    def _states(self, inputs: Any) -> List[Any]:
        """Return what an operation without outputs leaves in its variables, read after it."""
        found = []
        for each in inputs:
            dtype = private.held_type(each) if each.dtype == self._tf.resource else None
            if dtype is not None and self._tf.as_dtype(dtype).name in _INTEGERS:
                with self._tf.name_scope(_TEMPORARY):
                    found.append(self._tf.raw_ops.ReadVariableOp(resource=each, dtype=dtype))
        return found

    def _slots_of(self, graph: Any) -> Dict[str, Optional[int]]:
        known = self._slots.get(graph)
        if known is None:
            known = self._slots[graph] = {}
        return known

    def _slot(self, tensor: Any) -> Optional[int]:
        """Return where the fingerprint of a tensor is; of what a graph has from the one around it, that one's."""
        graph = getattr(tensor, "graph", None)
        if graph is None:
            return None
        known = self._slots_of(graph)
        if tensor.name not in known:
            outer = private.captured(graph, tensor)
            known[tensor.name] = None if outer is None else self._slot(outer)
        return known[tensor.name]

    def _is_data(self, graph: Any) -> bool:
        """Return whether a graph is a function of tf.data's: a table in it would change how the pipeline runs."""
        found = self._data.get(graph)
        if found is None:
            outer = getattr(graph, "outer_graph", None)
            found = private.in_data_function(graph) or (
                private.is_function(outer) and self._is_data(outer)
            )
            self._data[graph] = found
        return found


def words(tf: Any, tensor: Any) -> Any:
    """Return the bits of a tensor as a row of int64; of one whose bytes do not fill the last, the rest is zero."""
    together, count = max(8 // tensor.dtype.size, 1), tensor.shape.num_elements()
    if together == 1:
        return tf.reshape(tf.bitcast(tensor, tf.int64), [-1])
    if count is None or count % together:
        bits = tf.reshape(tf.bitcast(tensor, _INTEGERS[tensor.dtype.name]), [-1])
        tensor = tf.concat([bits, tf.zeros([-tf.size(bits) % together], bits.dtype)], 0)
    return tf.bitcast(tf.reshape(tensor, [-1, together]), tf.int64)


def fingerprint(tf: Any, row: Any, *, whole: bool = False) -> Any:
    """Return the fingerprint of a row of int64, as a tensor of one.

    `whole`: it is known to be one block that is not filled, or to consist of whole blocks.
    """
    size = row.shape.num_elements() if whole else None
    count = tf.size(row, out_type=tf.int64)
    if not whole:
        row = tf.concat([row, tf.zeros([-tf.size(row) % BLOCK], tf.int64)], 0)
    # the upper bits go into the lower ones, or changed signs would cancel out; by 31, as two numbers are often equal
    row = tf.bitwise.bitwise_xor(row, tf.bitwise.right_shift(row, tf.constant(_DOWN, tf.int64)))
    if size is not None and size <= BLOCK:
        constant = (size + 1) * _STEP % (1 << 64)
        return _sums(tf, tf.reshape(row, [1, size]), factors(size)) + tf.constant(
            _signed(constant), tf.int64
        )
    blocks = _sums(tf, tf.reshape(row, [-1, BLOCK]), factors(BLOCK))
    order = tf.range(tf.size(blocks, out_type=tf.int64)) * tf.constant(_signed(_STEP), tf.int64)
    total = tf.reduce_sum(
        blocks * tf.bitwise.bitwise_or(order, tf.constant(1, tf.int64)), keepdims=True
    )
    return total + (count + 1) * tf.constant(_signed(_STEP), tf.int64)


def _sums(tf: Any, rows: Any, by: Any) -> Any:
    """Return the sum of each row's numbers, each times its factor."""
    if tf.config.list_physical_devices("GPU"):  # where matrices of integers cannot be multiplied
        return tf.reduce_sum(rows * tf.constant(by), 1)
    return tf.reshape(tf.linalg.matmul(rows, tf.constant(by[:, None])), [-1])


def factors(size: int) -> Any:
    """Return the first factors of a block: the numbers that SplitMix64 makes of 0, 1, 2 ..., made odd."""
    import numpy

    with numpy.errstate(over="ignore"):
        mixed = (numpy.arange(size, dtype=numpy.uint64) + numpy.uint64(1)) * numpy.uint64(_STEP)
        mixed = (mixed ^ (mixed >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return (mixed ^ (mixed >> numpy.uint64(31)) | numpy.uint64(1)).view(numpy.int64)


def of_array(array: Any) -> int:
    """Return the same number for a numpy array, from 0 to 2**64 - 1."""
    import numpy

    raw = numpy.ascontiguousarray(array).tobytes()
    row = numpy.frombuffer(raw + b"\0" * (-len(raw) % 8), dtype=numpy.int64)
    row = row ^ (row >> numpy.int64(_DOWN))
    total, by = 0, factors(BLOCK)
    with numpy.errstate(over="ignore"):
        for number, start in enumerate(range(0, row.size, BLOCK)):
            block = row[start : start + BLOCK]
            total += int((block * by[: block.size]).sum(dtype=numpy.int64)) * (number * _STEP | 1)
    return int((total + (row.size + 1) * _STEP) % (1 << 64))


def _signed(number: int) -> int:
    """Return a number of 64 bits as int64 has it."""
    return number - (1 << 64) if number >> 63 else number


def _is_unseeded(operation: Any) -> bool:
    """Return whether an operation draws with no seed at all."""
    try:
        return not (operation.get_attr("seed") or operation.get_attr("seed2"))
    except ValueError:  # it has none
        return False


def _is_looked_at(kind: str, tensor: Any) -> bool:
    dtype = tensor.dtype.name
    if dtype not in _INTEGERS:
        return False
    return "int" not in dtype or kind == "Placeholder" or any(word in kind for word in _SOURCES)


def _spec(tensor: Any) -> str:
    shape = tensor.shape
    return spec(tensor.dtype.name, None if shape.rank is None else shape.as_list())
