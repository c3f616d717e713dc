"""Read a trace as a stream: one entry at a time, every field checked, memory bounded whatever the file holds."""

from __future__ import annotations

import json
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from envlock.guest.tracing.trace_writer import (
    DEFINITIONS_LIMIT,
    LINE_LIMIT,
    TENSORS_LIMIT,
    TEXT_LIMIT,
    TRACE_VERSION,
)
from envlock.runtime.errors import LockfileError
from envlock.runtime.report import clean

DEFINITIONS_BYTES = 64 << 20
"""How much text all operations that are known at a time may have."""
CONDITIONS_LIMIT = 256
_CHUNK = 1 << 16

Scalar = str | int | float | bool | None


class TraceError(LockfileError):
    """A trace cannot be read, is damaged or cut off, or was written by a newer envlock."""


class Place(NamedTuple):
    """Where in the user's code: the file from the project's folder on, its line, the function."""

    file: str
    line: int
    function: str

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return self._asdict()


class Operation(NamedTuple):
    """What does not change from step to step; `name` is that of the graph's node, None in eager mode."""

    type: str
    name: str | None
    place: Place | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Record(NamedTuple):
    """One operation that has run: fingerprints of its inputs and outputs, None where there is none."""

    step: int
    number: int
    operation: Operation
    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]

    @property
    def title(self) -> str:
        """The type and the name."""
        if not self.operation.name:
            return self.operation.type
        return f"{self.operation.type} {self.operation.name}"

    @property
    def place(self) -> Place | None:
        """The line that called the operation."""
        return self.operation.place

    @property
    def input_specs(self) -> tuple[str, ...]:
        """Type and shape of each input; a damaged trace can have more of them than fingerprints."""
        return self.operation.inputs[: len(self.inputs)]

    @property
    def output_specs(self) -> tuple[str, ...]:
        """Type and shape of each output."""
        return self.operation.outputs[: len(self.outputs)]

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "step": self.step,
            "type": self.operation.type,
            "name": self.operation.name,
            "place": render_place(self.place),
            "inputs": _render_tensors(self.operation.inputs, self.inputs),
            "outputs": _render_tensors(self.operation.outputs, self.outputs),
        }


class Value(NamedTuple):
    """A quantity of the run: a loss, what a variable holds, an input."""

    step: int
    name: str
    fingerprint: int | None
    spec: str

    @property
    def title(self) -> str:
        """The name, with what it is the name of."""
        return f"value {self.name}"

    @property
    def place(self) -> None:
        """No line: a quantity is shown by the run as a whole."""
        return None

    @property
    def output_specs(self) -> tuple[str, ...]:
        """Type and shape."""
        return (self.spec,)

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        outputs = _render_tensors([self.spec], [self.fingerprint])
        return {"step": self.step, "value": self.name, "outputs": outputs}


def render_place(place: Place | None) -> dict[str, object] | None:
    """Return a line of the program as JSON values; None where it is unknown."""
    if place is None:
        return None
    return place.to_json()


def _render_tensors(
    specs: Sequence[str], fingerprints: Sequence[int | None]
) -> list[dict[str, str | None]]:
    tensors: list[dict[str, str | None]] = []
    for spec, fingerprint in zip(specs, fingerprints, strict=False):
        text = None
        if fingerprint is not None:
            text = f"{fingerprint:016x}"
        tensors.append({"spec": spec, "fingerprint": text})
    return tensors


@dataclass(frozen=True)
class Header:
    """What a trace was made with.

    Attributes:
        made_by: `envlock X.Y.Z`.
        tensorflow, keras, python: versions; keras is None where it is not there.
        mode: `eager` or `graph`: how the operations ran.
        fingerprint: by which function; only those of one function can be compared.
        conditions: what can change bits, by name.
    """

    made_by: str
    tensorflow: str
    keras: str | None
    python: str
    mode: str
    fingerprint: str
    conditions: dict[str, Scalar] = field(default_factory=dict)


class Trace:
    """A trace that is being read. Iterate it once; `end` holds what was known only then."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        """Read the header of the trace in `stream`; `name` is for messages.

        Raises:
            TraceError: it is no trace, or newer than this envlock.
        """
        self._name = clean(name)
        self._lines = _lines(stream, self._name)
        self._operations: list[Operation] = []
        self._bytes = 0
        self._step = -1
        self._count = 0
        self.end: dict[str, Scalar] | None = None
        self.header = self._header(next(self._lines, b""))

    def close(self) -> None:
        """Close the file of a trace that is not read to its end."""
        self._lines.close()

    def __enter__(self) -> Trace:
        """Return the trace; it is closed in the end."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()

    def __iter__(self) -> Iterator[Record | Value]:
        """Yield what the run did, in order.

        Raises:
            TraceError: the trace is damaged, or cut off.
        """
        for line in self._lines:
            if self.end is not None:
                raise self._damaged("it has data after its end")
            entry = self._entry(_parsed(line, self._name))
            if entry is not None:
                self._count += 1
                yield entry
        if self.end is None:
            raise _refuse(
                self._name,
                "is truncated: it has no end",
                "record it again, or copy it again: the run crashed, or the copy is incomplete",
            )

    def _entry(self, line: Any) -> Record | Value | None:
        match line:
            case [int(number), list(inputs), list(outputs)] if type(number) is int:
                return self._record(number, inputs, outputs)
            case ["value", str(name), fingerprint, str(spec)] if (
                max(len(name), len(spec)) <= TEXT_LIMIT
            ):
                return Value(self._step, name, self._fingerprint(fingerprint), spec)
            case ["op", *fields]:
                self._define(fields, len(str(fields)))
            case ["step", int(number)] if type(number) is int and self._step < number < 1 << 62:
                self._step = number
            case ["forget"]:
                self._operations, self._bytes = [], 0
            case ["end", self._count, dict(end)]:
                self.end = self._scalars(end)
            case ["end", int(), dict()]:
                raise self._damaged("the number of entries at its end is wrong")
            case _:
                raise self._damaged(f"invalid entry: {_short(line)}")
        return None

    def _record(self, number: int, inputs: list[Any], outputs: list[Any]) -> Record:
        if not 0 <= number < len(self._operations):
            raise self._damaged(f"operation {number} was not defined")
        if max(len(inputs), len(outputs)) > TENSORS_LIMIT:
            raise self._damaged(f"an operation with more than {TENSORS_LIMIT} inputs or outputs")
        read = self._fingerprint
        sides = tuple([read(text) for text in inputs]), tuple([read(text) for text in outputs])
        return Record(self._step, self._count, self._operations[number], *sides)

    def _fingerprint(self, text: Any) -> int | None:
        if text is None:
            return None
        if type(text) is not str or len(text) != 16 or text.strip("0123456789abcdef"):
            raise self._damaged(f"invalid fingerprint: {_short(text)}")
        return int(text, 16)

    def _define(self, fields: list[Any], size: int) -> None:
        match fields:
            case [
                str(kind),
                str() | None as name,
                list() | None as place,
                list(inputs),
                list(outputs),
            ]:
                pass
            case _:
                raise self._damaged("invalid definition of an operation")
        texts = [kind, name or "", *inputs, *outputs]
        if not all(isinstance(text, str) and len(text) <= TEXT_LIMIT for text in texts):
            raise self._damaged("a text in the definition of an operation is invalid or too long")
        self._bytes += size
        if len(self._operations) >= DEFINITIONS_LIMIT or self._bytes > DEFINITIONS_BYTES:
            raise self._damaged("it defines too many operations")
        self._operations.append(
            Operation(kind, name, self._place(place), tuple(inputs), tuple(outputs))
        )

    def _place(self, place: list[Any] | None) -> Place | None:
        match place:
            case None:
                return None
            case [str(file), int(line), str(function)] if (
                max(len(file), len(function)) <= TEXT_LIMIT
            ):
                return Place(file, line, function)
        raise self._damaged(f"invalid place in a file: {_short(place)}")

    def _header(self, line: bytes) -> Header:
        match _parsed(line, self._name):
            case {"trace_version": int(version)} if version > TRACE_VERSION:
                sentence = f"has trace_version {version}; this envlock reads up to {TRACE_VERSION}"
                raise _refuse(
                    self._name, sentence, "read it with the envlock that wrote it, or a newer one"
                )
            case {
                "trace_version": 1,
                "made_by": str(made_by),
                "tensorflow": str(tensorflow),
                "keras": str() | None as keras,
                "python": str(python),
                "mode": "eager" | "graph" as mode,
                "fingerprint": str(fingerprint),
                "conditions": dict(conditions),
                **more,
            } if not more:
                texts = (made_by, tensorflow, keras or "", python, fingerprint)
                if max(map(len, texts)) > TEXT_LIMIT:
                    raise self._damaged("a text in its header is too long")
                return Header(
                    made_by, tensorflow, keras, python, mode, fingerprint, self._scalars(conditions)
                )
            case _:
                raise _refuse(
                    self._name,
                    "is not a trace: its first line is not a header",
                    "create one with `envlock diverge record`",
                )

    def _scalars(self, values: dict[str, Any]) -> dict[str, Scalar]:
        for name, value in values.items():
            fits = value is None or isinstance(value, bool | int | float | str)
            if (
                not fits
                or len(values) > CONDITIONS_LIMIT
                or max(len(name), len(str(value))) > TEXT_LIMIT
            ):
                raise self._damaged(f"invalid condition {_short(name)}")
        return values

    def _damaged(self, what: str) -> TraceError:
        return _refuse(
            self._name, f"is damaged after {self._count} entries: {what}", "record it again"
        )


def _lines(stream: BinaryIO, name: str) -> Generator[bytes, None, None]:
    """Yield the lines of a gzip stream, none longer than the limit, and hold no more of it than that."""
    inflate, left, read = zlib.decompressobj(31), b"", 0
    try:
        while not inflate.eof:
            raw = inflate.unconsumed_tail or stream.read(_CHUNK)
            read += len(raw)
            text = inflate.decompress(raw, _CHUNK)
            if not raw and not text:
                hint = (
                    "record it again, or copy it again: the run crashed, or the copy is incomplete"
                )
                raise _refuse(name, "is truncated: it has no end" if read else "is empty", hint)
            *lines, left = (left + text).split(b"\n")
            yield from lines
            if len(left) > LINE_LIMIT:
                raise _refuse(
                    name, f"is damaged: a line of more than {LINE_LIMIT} bytes", "record it again"
                )
        if left or inflate.unused_data or stream.read(1):
            raise _refuse(
                name, "is damaged: it has data after its end", "record it again, or copy it again"
            )
    except zlib.error:
        raise _refuse(
            name,
            "is not a trace, or is damaged: it is not a gzip file",
            "record it again, or copy it again",
        ) from None
    except OSError as error:
        raise _refuse(name, f"cannot be read: {error.strerror}", "check the path") from None
    finally:
        stream.close()


def _parsed(line: bytes, name: str) -> Any:
    try:
        return json.loads(line.decode("ascii"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _refuse(name, "is damaged: a line is not JSON", "record it again") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _short(value: object) -> str:
    return clean(repr(value)[:60])


def _refuse(name: str, what: str, hint: str) -> TraceError:
    return TraceError(f"trace {name} {what}", hint=hint)


def read(path: str | Path, stream: BinaryIO | None = None) -> Trace:
    """Return the trace at `path`, its header read; the file is closed when the trace has been read or forgotten.

    Raises:
        TraceError: it cannot be read, is no trace, or newer than this envlock.
    """
    try:
        return Trace(stream or Path(path).open("rb"), str(path))
    except OSError as error:
        raise _refuse(str(path), f"cannot be read: {error.strerror}", "check the path") from None
    except ValueError:  # a NUL byte in the name
        raise _refuse(repr(str(path)), "cannot be read: not a path", "check the path") from None
