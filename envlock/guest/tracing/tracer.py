"""Writes down every operation that TensorFlow runs eagerly, and every call of a function that it has made a graph of.

In eager mode (level 2) those are all operations; in the user's own mode (level 1) they are what stands between the
graphs, the graphs' results, and the variables that they leave behind. Graphs are looked at while they are built, for
what is known to race, and never changed.
"""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager

from envlock.guest.tracing import private, tensors, undefined
from envlock.guest.tracing.suspects import Suspects
from envlock.guest.tracing.threads import REPLICA
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Tuple

    from envlock.guest.tracing.in_graph import InGraph
    from envlock.guest.tracing.source_lines import Places
    from envlock.guest.tracing.threads import Threads
    from envlock.guest.tracing.trace_writer import TraceWriter

    Print = Tuple[Optional[int], str]

SKIPPED = frozenset(
    {"VarHandleOp", "VarIsInitializedOp", "DestroyResourceOp", "Const", "Placeholder"}
)
CALL = "Call"
"""The type of an entry for a graph that was called; its name is the function's."""
PYTHON = "PythonFunction"
"""The type of an entry for a function of the user's that TensorFlow called with arrays."""
_CALLED = re.compile(r"^__(?:inference|forward|backward)_(.*?)(?:_\d+)*$")
_MUTATING = tuple(table("operations")["mutating_prefix"])
_READS = frozenset(table("operations")["reads"])
_ELEMENTS = frozenset(table("operations")["next_element"])
_HANDLE_AS_TEXT = "ToStringHandle"  # a number of the process's own


class Enough(BaseException):
    """The last step that was asked for is over."""


class Tracer:
    """Sees operations from `start` to `stop`, and writes them into the trace of their thread.

    The thread that has started it has the run's own trace; so have the replicas that it waits for.
    """

    def __init__(
        self,
        tf: Any,
        writer: TraceWriter,
        places: Places,
        limit: Optional[int] = None,
        *,
        graphs: Optional[InGraph] = None,
        counts: bool = False,
        threads: Optional[Threads] = None,
    ) -> None:
        """Raise `Enough` when step `limit` begins; without a limit there is no end.

        `graphs` looks inside of graphs (level 3); with `counts`, each call of one is a step where nobody else counts.
        `threads` takes operations of other threads; without, they are counted.
        """
        self._tf = tf
        self._own = writer
        self._places = places
        self._limit = limit
        self._thread = threading.get_ident()
        self._local = threading.local()
        self._stopped = False
        self._graphs = graphs
        self._counts = counts
        self.threads = threads
        self._over = False  # whether the last call was one that counts
        self._handles: Dict[str, List[Any]] = {}
        self.suspects = Suspects(places)
        self.step = 0
        self.batches = 0  # that `Model.fit` has begun
        self.elsewhere = 0  # operations of other threads that are not written down
        self.blind: Optional[str] = (
            None  # why no operation is seen, only what the run shows of itself
        )

    @property
    def _writer(self) -> TraceWriter:
        return getattr(self._local, "writer", self._own)

    @property
    def _busy(self) -> bool:
        return getattr(self._local, "busy", False)

    @_busy.setter
    def _busy(self, busy: bool) -> None:
        self._local.busy = busy

    @property
    def entries(self) -> int:
        """How many entries the run's own trace has."""
        return self._own.count

    def _is_elsewhere(self) -> bool:
        """Return whether this is a thread that the run's own trace has no place for."""
        return (
            threading.get_ident() != self._thread
            and type(threading.current_thread()).__name__ != REPLICA
        )

    def start(self, *, needed: bool) -> None:
        """Begin to see.

        Raises:
            CallbacksMissing: this TensorFlow has no operation callbacks, and they are `needed`.
        """
        try:
            private.add(self.see)
        except private.CallbacksMissing as error:
            if needed:
                raise
            self.blind = str(error)

    def stop(self) -> None:
        """See no more."""
        self._stopped = True  # for threads that go on
        if self.blind is not None:
            return
        private.remove(self.see)
        for name, handles in self._last_calls():
            self._variables(name, handles)

    def begin_step(self, number: int) -> None:
        """Say that what follows belongs to step `number`.

        Raises:
            Enough: that is beyond the last one asked for.
        """
        self._counts = False
        self._go_on(number)

    def _go_on(self, number: int) -> None:
        if self._limit is not None and number >= self._limit:
            raise Enough
        if number > self.step:
            self.step = number
        self._writer.step(self.step)

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Let what is done inside go unseen."""
        was, self._busy = self._busy, True
        try:
            yield
        finally:
            self._busy = was

    def value(self, name: str, value: Any) -> None:
        """Write down a quantity of the run, such as a loss."""
        with self.quietly():
            print_, kind = tensors.of_tensor(value)
            self._writer.value(name, print_, kind)

    def python(self, function: Any, inputs: Any, outputs: Any) -> None:
        """Write down that TensorFlow called a Python function."""
        if self._busy or self._is_elsewhere():
            return
        self._busy = True
        try:
            name = getattr(function, "__qualname__", type(function).__name__)
            self._write(
                PYTHON, name, [tensors.of_tensor(each) for each in inputs], _prints(outputs), 4
            )
        finally:
            self._busy = False

    def see(
        self,
        op_type: Any,
        inputs: Any,
        attrs: Any,
        outputs: Any,
        op_name: Optional[str] = None,
        graph: Any = None,
    ) -> None:
        """Take an operation that has run, or was put into a graph, as TensorFlow's callbacks tell it."""
        if self._busy or self._stopped:  # our own looks at variables come through here, too
            return
        kind = private.kind(op_type)
        if graph is not None:
            self._busy = True
            try:
                self.suspects.built(kind, outputs, graph, attrs)
                if self._graphs is not None:
                    self._graphs.built(kind, inputs, outputs, op_name, graph)
            finally:
                self._busy = False
            return
        if self._is_elsewhere():
            self._ran_elsewhere(kind, inputs, attrs, outputs)
            return
        self._busy = True
        try:
            self._ran(kind, inputs, attrs, outputs)
        finally:
            self._busy = False

    def _ran_elsewhere(self, kind: str, inputs: Any, attrs: Any, outputs: Any) -> None:
        """Write an operation of another thread into that thread's trace, or count it."""
        if self.threads is None:
            self.elsewhere += 1
            return
        with self.threads.lock:
            writer = self.threads.writer()
            if writer is None:
                self.elsewhere += 1
                return
            self._local.writer, self._busy = writer, True
            try:
                self._ran(kind, inputs, attrs, outputs)
            finally:
                self._busy = False

    def _ran(self, kind: str, inputs: Any, attrs: Any, outputs: Any) -> None:
        if kind in SKIPPED or kind.endswith(_HANDLE_AS_TEXT):
            if kind.endswith(_HANDLE_AS_TEXT):
                outputs[0]._envlock_print = None, "string[]"  # wherever it is read
            if kind == "VarHandleOp":
                outputs[0]._envlock_name = str(_attribute(attrs, "debug_name") or "").rstrip("/")
            return
        if kind.startswith("__") and _CALLED.match(kind):
            self._called(kind, inputs, outputs)
            return
        made = (
            [tensors.of_element(self._tf, each) for each in outputs]
            if kind in _ELEMENTS
            else _prints(outputs)
        )
        for number in undefined.outputs(kind, lambda name: _attribute(attrs, name)):
            made[number] = outputs[number]._envlock_print = None, made[number][1]
        about = None
        read = [tensors.of_tensor(each) for each in inputs]
        if inputs and read[0][1] == "resource[]":
            about = getattr(inputs[0], "_envlock_name", None)
            if not made and kind.startswith(_MUTATING):
                made = self._left_behind(kind, inputs, read)
            self._used(inputs[:1], kind)
        elif "Random" in kind or kind == "Multinomial":
            about = "seed={} seed2={}".format(
                _attribute(attrs, "seed") or 0, _attribute(attrs, "seed2") or 0
            )
        self._write(kind, about, read, made, 5)

    def _called(self, kind: str, inputs: Any, outputs: Any) -> None:
        """Write down a graph's results, and what its variables hold now."""
        match = _CALLED.match(kind)
        name = match.group(1) if match else kind
        self.suspects.called(kind)
        if self._over and self._counts:
            self._go_on(self.step + 1)
        ran = self._graphs is not None and self._graphs.take(self._writer)
        table = None if self._graphs is None else self._graphs.handle
        handles = [each for each in inputs if _is_handle(each) and each is not table]
        self._used(handles, CALL)
        self._write(CALL, name, [tensors.of_tensor(each) for each in inputs], _prints(outputs), 5)
        if self._graphs is None:
            self._variables(name, handles)
        else:  # it has looked at them itself; how they are when all is over tells whether looking changed anything
            self._handles.pop(name, None)
            self._handles[name] = handles
        self._over = ran

    def _used(self, handles: Any, kind: str) -> None:
        """Note that a thread uses variables, where there is more than one thread."""
        if self.threads is not None and self.threads.begun:
            place = self._places.here(5)
            for each in handles:
                self.threads.used(each, kind, place, changed=kind not in _READS)

    def _last_calls(self) -> List[Tuple[str, List[Any]]]:
        """Return the calls that nobody but them has used some variable after."""
        later: Dict[int, str] = {}
        for name, handles in self._handles.items():
            later.update((id(each), name) for each in handles)
        return [
            (name, each)
            for name, each in self._handles.items()
            if all(later[id(one)] == name for one in each)
        ]

    def _variables(self, name: str, handles: List[Any]) -> None:
        """Write down what variables hold after a call."""
        for number, handle in enumerate(handles):
            print_, kind = self._state(handle)
            if print_ is not None:
                label = getattr(handle, "_envlock_name", None) or "#{}".format(number)
                self._writer.value("variable {} after {}".format(label, name), print_, kind)

    def _left_behind(self, kind: str, inputs: Any, read: List[Print]) -> List[Print]:
        """Return what an operation without outputs left in its variables."""
        if kind == "AssignVariableOp" and len(read) == 2:
            return [read[1]]
        return [self._state(each) for each, (_, kind) in zip(inputs, read) if kind == "resource[]"]

    def _state(self, handle: Any) -> Print:
        data = getattr(handle, "_handle_data", None)
        if data is None or not data.is_set or not data.shape_and_type:
            return None, "resource[]"
        try:
            dtype = self._tf.as_dtype(data.shape_and_type[0].dtype)
            return tensors.of_tensor(self._tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype))
        except Exception:  # not initialised yet, or of another device
            return None, "resource[]"

    def _write(
        self, kind: str, name: Optional[str], read: List[Print], made: List[Print], depth: int
    ) -> None:
        place = self._places.here(depth)
        if (
            place is None and threading.get_ident() != self._thread
        ):  # a replica whose step is a library's
            place = self._places.of_thread(self._thread)
        operation = (
            kind,
            name,
            place,
            tuple([spec for _, spec in read]),
            tuple([spec for _, spec in made]),
        )
        self._writer.record(
            operation, [print_ for print_, _ in read], [print_ for print_, _ in made]
        )


def _prints(outputs: Any) -> List[Print]:
    if outputs is None:
        return []
    if not isinstance(outputs, (list, tuple)):
        outputs = [outputs]
    return [tensors.of_tensor(each) for each in outputs if each is not None]


def _attribute(attrs: Any, name: str) -> Any:
    if not attrs:
        return None
    for number in range(0, len(attrs) - 1, 2):
        if attrs[number] == name:
            return attrs[number + 1]
    return None


def _is_handle(value: Any) -> bool:
    """Return whether this stands for a variable; some inputs are no tensors."""
    return getattr(getattr(value, "dtype", None), "name", None) == "resource"
