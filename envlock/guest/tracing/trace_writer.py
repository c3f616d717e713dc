"""Write a trace: what every operation of a run read and made, as fingerprints. See
docs/reference/trace.md.

It runs in the user's interpreter: standard library only, Python 3.8, nothing of this package is
imported. The reader (`envlock/evidence/diverge/trace.py`) takes the format's words and limits from here.

A trace is gzip of lines of JSON. The first is the header; then come, in the order in which things
happened:

    ["op", type, name, place, input specs, output specs]    defines the next operation: 0, 1, 2 ...
    ["step", number]                                        what follows belongs to this step
    [operation, [fingerprint of each input], [of each output]]
    ["value", name, fingerprint, spec]                      a quantity of the run: a loss, a variable, an input
    ["forget"]                                              all definitions end here; the next operation is 0 again
    ["end", number of operations and values, what is known only then]

A place is [file, line, function] of the user's code, or null; a spec is `float32[32,10]`; a
fingerprint is 16 hexadecimal digits, or null without one (a resource, a variant, a value that could
not be read).
"""

from __future__ import annotations

import json
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import BinaryIO, Dict, List, Mapping, Optional, Sequence, Tuple, Type

    Place = Tuple[str, int, str]
    Operation = Tuple[str, Optional[str], Optional[Place], Tuple[str, ...], Tuple[str, ...]]
    Fingerprint = Optional[int]

TRACE_VERSION = 1
DEFINITIONS_LIMIT = 20_000
"""Operations that are known at a time: it keeps the memory of writer and reader flat."""
LINE_LIMIT = 1 << 18
"""Bytes of a line."""
TENSORS_LIMIT = 4_096
"""Inputs, or outputs, of one operation that are recorded."""
TEXT_LIMIT = 400
"""Characters of a name."""
_CHUNK = 1 << 16
"""Bytes of lines that are compressed at a time."""
_LEVEL, _GZIP = 1, 31
"""The fastest compression, and the window bits with which zlib writes the head of a gzip file."""
_MASK = (1 << 64) - 1


class TraceWriter:
    """Writes a trace to a binary stream, which the caller closes; use it in a `with` block, or call
    `close`.

    Without `close` (a run that crashed) the trace has no end, and its reader reports that it is
    truncated.
    """

    def __init__(self, stream: BinaryIO, header: Mapping[str, object]) -> None:
        """Begin a trace; `header` has the fields of `trace.Header` except the version of the
        format.
        """
        self._stream = stream
        self._deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        self._lines: List[str] = []
        self._pending = 0
        self._known: Dict[Operation, int] = {}
        self._step: Optional[int] = None
        self.count = 0
        self._write_json({"trace_version": TRACE_VERSION, **header})

    def begin_step(self, number: int) -> None:
        """Begin step `number`, unless it is the current one; numbers increase."""
        if number != self._step:
            self._step = number
            self._put('["step",%d]' % number)

    def write_operation(
        self, operation: Operation, inputs: Sequence[Fingerprint], outputs: Sequence[Fingerprint]
    ) -> None:
        """Record that an operation has run: (type, name, place, input specs, output specs)."""
        number = self._known.get(operation)
        if number is None:
            number = self._define(operation)
        self.count += 1
        self._put("[%d,[%s],[%s]]" % (number, _format_all(inputs), _format_all(outputs)))

    def write_value(self, name: str, fingerprint: Fingerprint, spec: str) -> None:
        """Record a quantity of the run, such as a loss or the value of a variable."""
        self.count += 1
        digits = "%016x" % (fingerprint & _MASK) if fingerprint is not None else None
        self._write_json(["value", name[:TEXT_LIMIT], digits, spec[:TEXT_LIMIT]])

    def close(self, end: Optional[Mapping[str, object]] = None) -> None:
        """Write the end, with what is known only at the end (threads, devices); nothing may follow."""
        self._write_json(["end", self.count, end or {}])
        self._compress()
        self._stream.write(self._deflate.flush())

    def __enter__(self) -> TraceWriter:
        """Return the writer."""
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """End the trace, unless there was an exception: then it must not look complete."""
        if kind is None:
            self.close()

    def _define(self, operation: Operation) -> int:
        if len(self._known) >= DEFINITIONS_LIMIT:
            self._known.clear()
            self._put('["forget"]')
        kind, name, place, inputs, outputs = operation
        where = None
        if place is not None:
            file, line, function = place
            where = [file[:TEXT_LIMIT], line, function[:TEXT_LIMIT]]
        if name is not None:
            name = name[:TEXT_LIMIT]
        specs = [_shorten_all(inputs), _shorten_all(outputs)]
        self._write_json(["op", kind[:TEXT_LIMIT], name, where, *specs])
        number = self._known[operation] = len(self._known)
        return number

    def _write_json(self, value: object) -> None:
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


def _shorten_all(specs: Sequence[str]) -> List[str]:
    return [spec[:TEXT_LIMIT] for spec in specs[:TENSORS_LIMIT]]


def _format_all(fingerprints: Sequence[Fingerprint]) -> str:
    """Return fingerprints as the elements of a JSON list."""
    words = []
    for fingerprint in fingerprints[:TENSORS_LIMIT]:
        if fingerprint is None:
            words.append("null")
        else:
            words.append('"%016x"' % (fingerprint & _MASK))
    return ",".join(words)


def format_spec(dtype: str, shape: Optional[Sequence[Optional[int]]]) -> str:
    """Return a tensor's type and shape as text: `float32[32,10]`, `float32[?,10]`, `float32[*]`."""
    if shape is None:
        return dtype + "[*]"
    sizes = ["?" if size is None else str(size) for size in shape]
    return dtype + "[" + ",".join(sizes) + "]"
