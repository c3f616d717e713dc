"""Write a trace: what every operation of a run read and made, as fingerprints. See docs/reference/trace.md.

It runs in the user's interpreter, where there is no envlock: standard library only, Python 3.8, nothing of this package
is imported. The reader (`envlock/divergence/trace.py`) takes the format's words and limits from here.

A trace is gzip of lines of JSON. The first is the header; then come, in the order in which things happened:

    ["op", type, name, place, input specs, output specs]    defines the next operation: 0, 1, 2 ...
    ["step", number]                                        what follows belongs to this step
    [operation, [fingerprint of each input], [of each output]]
    ["value", name, fingerprint, spec]                      a quantity of the run: a loss, a variable, an input
    ["forget"]                                              all definitions end here; the next operation is 0 again
    ["end", number of operations and values, what is known only then]

A place is [file, line, function] of the user's code, or null; a spec is `float32[32,10]`; a fingerprint is 16
hexadecimal digits, or null where there is none (a resource, a variant, a value that nobody could look at).
"""

from __future__ import annotations

import json
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Dict, List, Optional, Sequence, Tuple

    Place = Tuple[str, int, str]
    Operation = Tuple[str, Optional[str], Optional[Place], Tuple[str, ...], Tuple[str, ...]]
    Fingerprint = Optional[int]

TRACE_VERSION = 1
DEFINITIONS_LIMIT = (
    20_000  # operations that are known at a time; it keeps the memory of both sides flat
)
LINE_LIMIT = 1 << 18  # bytes
TENSORS_LIMIT = 4_096  # inputs, or outputs, of one operation that are recorded
TEXT_LIMIT = 400  # characters of a name
_CHUNK = 1 << 16  # bytes of lines that are compressed at a time
_MASK = (1 << 64) - 1


class TraceWriter:
    """Writes a trace into a binary stream, which stays the caller's; use it with `with`, or call `close`.

    Without `close` (a run that died) the trace has no end, and its reader says that it is cut off.
    """

    def __init__(self, stream: BinaryIO, header: Dict[str, Any]) -> None:
        """Begin a trace; `header` is what `trace.Header` holds, without the version of the format."""
        self._stream = stream
        self._deflate = zlib.compressobj(1, zlib.DEFLATED, 31)
        self._lines: List[str] = []
        self._pending = 0
        self._known: Dict[Operation, int] = {}
        self._step: Optional[int] = None
        self.count = 0
        self._line({"trace_version": TRACE_VERSION, **header})

    def step(self, number: int) -> None:
        """Say that what follows belongs to step `number`; a step is begun once, and numbers grow."""
        if number != self._step:
            self._step = number
            self._put('["step",%d]' % number)

    def record(
        self, operation: Operation, inputs: Sequence[Fingerprint], outputs: Sequence[Fingerprint]
    ) -> None:
        """Write that an operation has run; `operation` is (type, name, place, input specs, output specs)."""
        number = self._known.get(operation)
        if number is None:
            number = self._define(operation)
        self.count += 1
        self._put("[%d,[%s],[%s]]" % (number, _prints(inputs), _prints(outputs)))

    def value(self, name: str, fingerprint: Fingerprint, spec: str) -> None:
        """Write a quantity of the run, such as a loss or what a variable holds."""
        self.count += 1
        print_ = None if fingerprint is None else "%016x" % (fingerprint & _MASK)
        self._line(["value", name[:TEXT_LIMIT], print_, spec[:TEXT_LIMIT]])

    def close(self, end: Optional[Dict[str, Any]] = None) -> None:
        """Write the end, with what is known only now (threads, devices); nothing may follow."""
        self._line(["end", self.count, end or {}])
        self._compress()
        self._stream.write(self._deflate.flush())

    def __enter__(self) -> TraceWriter:
        """Return the writer."""
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """End the trace, unless something went wrong: then it must not look whole."""
        if kind is None:
            self.close()

    def _define(self, operation: Operation) -> int:
        if len(self._known) >= DEFINITIONS_LIMIT:
            self._known.clear()
            self._put('["forget"]')
        kind, name, place, inputs, outputs = operation
        where = None if place is None else [place[0][:TEXT_LIMIT], place[1], place[2][:TEXT_LIMIT]]
        specs = [[spec[:TEXT_LIMIT] for spec in side[:TENSORS_LIMIT]] for side in (inputs, outputs)]
        self._line(["op", kind[:TEXT_LIMIT], name and name[:TEXT_LIMIT], where, specs[0], specs[1]])
        number = self._known[operation] = len(self._known)
        return number

    def _line(self, value: Any) -> None:
        self._put(json.dumps(value, separators=(",", ":")))

    def _put(self, line: str) -> None:
        self._lines.append(line)
        self._pending += len(line)
        if self._pending >= _CHUNK:
            self._compress()

    def _compress(self) -> None:
        self._lines.append("")
        self._stream.write(self._deflate.compress("\n".join(self._lines).encode("ascii")))
        self._lines, self._pending = [], 0


def _prints(fingerprints: Sequence[Fingerprint]) -> str:
    return ",".join(
        ["null" if f is None else '"%016x"' % (f & _MASK) for f in fingerprints[:TENSORS_LIMIT]]
    )


def spec(dtype: str, shape: Optional[Sequence[Optional[int]]]) -> str:
    """Return how a tensor's type and shape are written: `float32[32,10]`, `float32[?,10]`, `float32[*]`."""
    if shape is None:
        return dtype + "[*]"
    return dtype + "[" + ",".join(["?" if size is None else str(size) for size in shape]) + "]"
