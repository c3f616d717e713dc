"""Record every operation that TensorFlow runs eagerly, and every call of a function that it has
turned into a graph.

In eager mode (level 2) these are all operations; in the user's own mode (level 1) they are the
operations between the graphs, the results of the graphs, and the variables that they change. While
graphs are built they are searched for operations that are known to race, but never changed.
"""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager

from envlock.guest.tracing import private, undefined
from envlock.guest.tracing.suspects import Suspects
from envlock.guest.tracing.tensors import hash_element, hash_tensor
from envlock.guest.tracing.thread_traces import REPLICA, Threads
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Iterator, List, Optional, Sequence, Tuple, Union

    from tensorflow import Graph, Tensor

    from envlock.guest.tracing.private import Attributes
    from envlock.guest.tracing.source_lines import Places
    from envlock.guest.tracing.tensors import Fingerprint
    from envlock.guest.tracing.trace_writer import TraceWriter

SKIPPED = frozenset(
    {"VarHandleOp", "VarIsInitializedOp", "DestroyResourceOp", "Const", "Placeholder"}
)
CALL = "Call"
"""The type of an entry for the call of a graph; its name is that of the function."""
PYTHON = "PythonFunction"
"""The type of an entry for a function of the user that TensorFlow called with arrays."""
_CALLED = re.compile(r"^__(?:inference|forward|backward)_(.*?)(?:_\d+)*$")
_MUTATING = tuple(table("operations")["mutating_prefix"])
_READS = frozenset(table("operations")["reads"])
_ELEMENTS = frozenset(table("operations")["next_element"])
_HANDLE_AS_TEXT = "ToStringHandle"
"""The suffix of operations whose result is a number that has a meaning only in this process."""
_RESOURCE = "resource[]"
_DEPTH = 5
"""Frames of this class and of TensorFlow below each operation, which are not searched for a line of
the user.
"""


class Enough(BaseException):
    """The last requested step has ended."""


class Tracer:
    """Observes operations from `start` to `stop`, and writes them into the trace of their thread.

    The thread that started it writes to the run's own trace, and so do the replicas that it waits
    for.
    """

    def __init__(
        self,
        tf: ModuleType,
        writer: TraceWriter,
        places: Places,
        limit: Optional[int] = None,
        *,
        threads: Optional[Threads] = None,
    ) -> None:
        """Raise `Enough` when step `limit` begins; without a limit there is no end.

        `threads` records operations of other threads, which are otherwise only counted.
        """
        self._tf = tf
        self._own = writer
        self._places = places
        self._limit = limit
        self._thread = threading.get_ident()
        self._local = threading.local()
        self._is_stopped = False
        self.threads = threads
        self.suspects = Suspects(places)
        self.step = 0
        self.batches = 0  # whether `Model.fit` has begun
        self.elsewhere = 0  # operations of other threads that are not recorded
        self.blind: Optional[str] = (
            None  # why no operation is observed, only the values that the run records
        )

    @property
    def _writer(self) -> TraceWriter:
        writer: TraceWriter = getattr(self._local, "writer", self._own)
        return writer

    @property
    def _is_busy(self) -> bool:
        """Whether this thread is in the tracer, whose own operations are not recorded."""
        return getattr(self._local, "busy", False)

    @_is_busy.setter
    def _is_busy(self, busy: bool) -> None:
        self._local.busy = busy

    @property
    def entries(self) -> int:
        """The number of entries in the run's own trace."""
        return self._own.count

    def _is_elsewhere(self) -> bool:
        """Return whether the operations of this thread have no place in the run's own trace."""
        if threading.get_ident() == self._thread:
            return False
        return type(threading.current_thread()).__name__ != REPLICA

    def start(self, *, needed: bool) -> None:
        """Begin to observe.

        Raises:
            CallbacksMissing: this TensorFlow has no operation callbacks, and they are `needed`.
        """
        try:
            private.add_callback(self.observe)
        except private.CallbacksMissing as error:
            if needed:
                raise
            self.blind = str(error)

    def stop(self) -> None:
        """Stop observing."""
        # For threads that continue: each has its own callback.
        self._is_stopped = True
        if self.blind is not None:
            return
        private.remove_callback(self.observe)

    def begin_step(self, number: int) -> None:
        """Begin step `number`.

        Raises:
            Enough: that is beyond the last requested step.
        """
        if self._limit is not None and number >= self._limit:
            raise Enough
        if number > self.step:
            self.step = number
        self._writer.begin_step(self.step)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Record nothing that this thread does in the block."""
        before = self._is_busy
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = before

    def write_value(self, name: str, value: Tensor) -> None:
        """Record a quantity of the run, such as a loss."""
        with self.pause():
            fingerprint, spec = hash_tensor(value)
            self._writer.write_value(name, fingerprint, spec)

    def observe_python(self, function: object, inputs: Sequence[object], outputs: object) -> None:
        """Record that TensorFlow called a Python function."""
        if self._is_busy or self._is_elsewhere():
            return
        with self.pause():
            name = getattr(function, "__qualname__", type(function).__name__)
            read = [hash_tensor(value) for value in inputs]
            self._write(PYTHON, name, read, _hash_outputs(outputs), _DEPTH - 1)

    def observe(
        self,
        op_type: Union[bytes, str],
        inputs: Sequence[Tensor],
        attrs: Attributes,
        outputs: Sequence[Tensor],
        op_name: Optional[str] = None,
        graph: Optional[Graph] = None,
    ) -> None:
        """Record an operation that has run, or was added to a graph; the arguments are those of
        TensorFlow's callbacks.
        """
        # Our own reading of variables leads here, too.
        if self._is_busy or self._is_stopped:
            return
        kind = private.decode_kind(op_type)
        if graph is None and self._is_elsewhere():
            self._write_elsewhere(kind, inputs, attrs, outputs)
            return
        # Not `pause`, because this is called for every operation.
        self._is_busy = True
        try:
            if graph is None:
                self._write_eager(kind, inputs, attrs, outputs)
            else:
                self.suspects.check_operation(kind, outputs, graph)
        finally:
            self._is_busy = False

    def _write_elsewhere(
        self, kind: str, inputs: Sequence[Tensor], attrs: Attributes, outputs: Sequence[Tensor]
    ) -> None:
        """Write an operation of another thread into that thread's trace, or count it."""
        if self.threads is None:
            self.elsewhere += 1
            return
        with self.threads.lock:
            writer = self.threads.get_writer()
            if writer is None:
                self.elsewhere += 1
                return
            self._local.writer = writer
            self._is_busy = True
            try:
                self._write_eager(kind, inputs, attrs, outputs)
            finally:
                self._is_busy = False

    def _write_eager(
        self, kind: str, inputs: Sequence[Tensor], attrs: Attributes, outputs: Sequence[Tensor]
    ) -> None:
        """Record an operation that this thread has run, with its fingerprints."""
        if kind.endswith(_HANDLE_AS_TEXT):
            # A handle has no fingerprint wherever it is read.
            outputs[0]._envlock_print = None, "string[]"
            return
        if kind in SKIPPED:
            if kind == "VarHandleOp":
                name = str(_find_attribute(attrs, "debug_name") or "")
                outputs[0]._envlock_name = name.rstrip("/")
            return
        if kind.startswith("__") and _CALLED.match(kind):
            self._write_call(kind, inputs, outputs)
            return
        if kind in _ELEMENTS:
            made = [hash_element(self._tf, tensor) for tensor in outputs]
        else:
            made = _hash_outputs(outputs)
        for number in undefined.find_undefined(kind, lambda name: _find_attribute(attrs, name)):
            made[number] = outputs[number]._envlock_print = None, made[number][1]
        about = None
        read = [hash_tensor(tensor) for tensor in inputs]
        if inputs and read[0][1] == _RESOURCE:
            about = getattr(inputs[0], "_envlock_name", None)
            if not made and kind.startswith(_MUTATING):
                made = self._read_left_behind(kind, inputs, read)
            self._add_uses(inputs[:1], kind)
        elif "Random" in kind or kind == "Multinomial":
            seeds = [_find_attribute(attrs, name) or 0 for name in ("seed", "seed2")]
            about = "seed={} seed2={}".format(*seeds)
        self._write(kind, about, read, made, _DEPTH)

    def _write_call(self, kind: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """Record a graph's results, and the present values of its variables."""
        name = kind
        match = _CALLED.match(kind)
        if match is not None:
            name = match.group(1)
        self.suspects.check_call(kind)
        handles = [value for value in inputs if _is_handle(value)]
        self._add_uses(handles, CALL)
        read = [hash_tensor(value) for value in inputs]
        self._write(CALL, name, read, _hash_outputs(outputs), _DEPTH)
        self._write_variables(name, handles)

    def _add_uses(self, handles: Sequence[Tensor], kind: str) -> None:
        """Record that a thread uses variables, if there is more than one thread."""
        if self.threads is not None and self.threads.are_begun:
            place = self._places.find_caller(_DEPTH)
            for handle in handles:
                self.threads.add_use(handle, kind, place, is_change=kind not in _READS)

    def _write_variables(self, name: str, handles: Sequence[Tensor]) -> None:
        """Record the values of variables after a call."""
        for number, handle in enumerate(handles):
            fingerprint, spec = self._read_state(handle)
            if fingerprint is not None:
                label = getattr(handle, "_envlock_name", None) or "#{}".format(number)
                value = "variable {} after {}".format(label, name)
                self._writer.write_value(value, fingerprint, spec)

    def _read_left_behind(
        self, kind: str, inputs: Sequence[Tensor], read: List[Fingerprint]
    ) -> List[Fingerprint]:
        """Return the fingerprints of what an operation without outputs left in its variables."""
        if kind == "AssignVariableOp" and len(read) == 2:
            # The variable has the value of the input, so it does not have to be read.
            return [read[1]]
        states = []
        for handle, (_, spec) in zip(inputs, read):
            if spec == _RESOURCE:
                states.append(self._read_state(handle))
        return states

    def _read_state(self, handle: Tensor) -> Fingerprint:
        data = getattr(handle, "_handle_data", None)
        if data is None or not data.is_set or not data.shape_and_type:
            return None, _RESOURCE
        try:
            dtype = self._tf.as_dtype(data.shape_and_type[0].dtype)
            return hash_tensor(self._tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype))
        except Exception:  # not initialised yet, or on another device
            return None, _RESOURCE

    def _write(
        self,
        kind: str,
        name: Optional[str],
        read: List[Fingerprint],
        made: List[Fingerprint],
        depth: int,
    ) -> None:
        place = self._places.find_caller(depth)
        if place is None and threading.get_ident() != self._thread:
            # A replica whose step belongs to a library: the thread that waits for it is in the
            # user's code.
            place = self._places.find_in_thread(self._thread)
        read_prints, read_specs = _split(read)
        made_prints, made_specs = _split(made)
        operation = (kind, name, place, read_specs, made_specs)
        self._writer.write_operation(operation, read_prints, made_prints)


def _split(values: List[Fingerprint]) -> Tuple[List[Optional[int]], Tuple[str, ...]]:
    """Return the fingerprints and the specs of values."""
    fingerprints, specs = [], []
    for fingerprint, spec in values:
        fingerprints.append(fingerprint)
        specs.append(spec)
    return fingerprints, tuple(specs)


def _hash_outputs(outputs: object) -> List[Fingerprint]:
    if outputs is None:
        return []
    if not isinstance(outputs, (list, tuple)):
        outputs = [outputs]
    return [hash_tensor(value) for value in outputs if value is not None]


def _find_attribute(attrs: Attributes, name: str) -> object:
    return next((value for key, value in private.list_attributes(attrs) if key == name), None)


def _is_handle(value: Tensor) -> bool:
    """Return whether this stands for a variable; some inputs are not tensors."""
    return getattr(getattr(value, "dtype", None), "name", None) == "resource"
