"""Read a trace as a stream: one entry at a time, every field checked, in bounded memory."""

from __future__ import annotations

import json
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

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
CONDITIONS_LIMIT = 256  # facts of the environment; a recording without a GPU has 36
CUT_OFF = "record it again, or copy it again: the run crashed, or the copy is incomplete"
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
    """What does not change from step to step; `name` is that of the graph's node, or None."""

    type: str
    name: str | None
    place: Place | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Record(NamedTuple):
    """One operation that has run: fingerprints of its inputs and outputs, None for none."""

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
        text = f"{fingerprint:016x}" if fingerprint is not None else None
        tensors.append({"spec": spec, "fingerprint": text})
    return tensors


@dataclass(frozen=True)
class Header:
    """The software and settings with which a trace was made.

    Attributes:
        made_by: `envlock X.Y.Z`.
        tensorflow, keras, python: versions; keras is None if it is not installed.
        mode: `eager`, or `graph`: as the program runs by itself, inside `envlock diverge`.
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
            TraceError: it is not a trace, or newer than this envlock.
        """
        self._name = clean(name)
        self._lines = _iter_lines(stream, self._name)
        self._operations: list[Operation] = []
        self._bytes = 0
        self._step = -1
        self._count = 0
        self.end: dict[str, Scalar] | None = None
        self.header = self._parse_header(next(self._lines, b""))

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
                raise self._report_damage("it has data after its end")
            entry = self._parse_entry(_parse_line(line, self._name))
            if entry is not None:
                self._count += 1
                yield entry
        if self.end is None:
            raise _make_error(self._name, "is truncated: it has no end", CUT_OFF)

    def _parse_entry(self, line: object) -> Record | Value | None:
        match line:
            # `int()` also takes True and False, which are no numbers in JSON.
            case [int(number), list(inputs), list(outputs)] if type(number) is int:
                return self._make_record(number, inputs, outputs)
            case ["value", str(name), fingerprint, str(spec)] if (
                max(len(name), len(spec)) <= TEXT_LIMIT
            ):
                return Value(self._step, name, self._parse_fingerprint(fingerprint), spec)
            case ["op", *fields]:
                self._define(fields, len(str(fields)))
            case ["step", int(number)] if type(number) is int and self._step < number < 1 << 62:
                self._step = number
            case ["forget"]:
                self._operations, self._bytes = [], 0
            case ["end", self._count, dict(end)]:
                self.end = self._check_scalars(end)
            case ["end", int(), dict()]:
                raise self._report_damage("the number of entries at its end is wrong")
            case _:
                raise self._report_damage(f"invalid entry: {_shorten(line)}")
        return None

    def _make_record(self, number: int, inputs: list[object], outputs: list[object]) -> Record:
        if not 0 <= number < len(self._operations):
            raise self._report_damage(f"operation {number} was not defined")
        if max(len(inputs), len(outputs)) > TENSORS_LIMIT:
            raise self._report_damage(
                f"an operation with more than {TENSORS_LIMIT} inputs or outputs"
            )
        return Record(
            self._step,
            self._count,
            self._operations[number],
            tuple(map(self._parse_fingerprint, inputs)),
            tuple(map(self._parse_fingerprint, outputs)),
        )

    def _parse_fingerprint(self, text: object) -> int | None:
        if text is None:
            return None
        if type(text) is not str or len(text) != 16 or text.strip("0123456789abcdef"):
            raise self._report_damage(f"invalid fingerprint: {_shorten(text)}")
        return int(text, 16)

    def _define(self, fields: list[object], size: int) -> None:
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
                raise self._report_damage("invalid definition of an operation")
        texts = [kind, name or "", *inputs, *outputs]
        if not all(isinstance(text, str) and len(text) <= TEXT_LIMIT for text in texts):
            raise self._report_damage(
                "a text in the definition of an operation is invalid or too long"
            )
        self._bytes += size
        if len(self._operations) >= DEFINITIONS_LIMIT or self._bytes > DEFINITIONS_BYTES:
            raise self._report_damage("it defines too many operations")
        self._operations.append(
            Operation(kind, name, self._parse_place(place), tuple(inputs), tuple(outputs))
        )

    def _parse_place(self, place: list[object] | None) -> Place | None:
        match place:
            case None:
                return None
            case [str(file), int(line), str(function)] if (
                max(len(file), len(function)) <= TEXT_LIMIT
            ):
                return Place(file, line, function)
        raise self._report_damage(f"invalid place in a file: {_shorten(place)}")

    def _parse_header(self, line: bytes) -> Header:
        match _parse_line(line, self._name):
            case {"trace_version": int(version)} if version > TRACE_VERSION:
                sentence = f"has trace_version {version}; this envlock reads up to {TRACE_VERSION}"
                raise _make_error(
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
                    raise self._report_damage("a text in its header is too long")
                return Header(
                    made_by,
                    tensorflow,
                    keras,
                    python,
                    mode,
                    fingerprint,
                    self._check_scalars(conditions),
                )
            case _:
                raise _make_error(
                    self._name,
                    "is not a trace: its first line is not a header",
                    "create one with `envlock diverge record`",
                )

    def _check_scalars(self, values: dict[str, object]) -> dict[str, Scalar]:
        scalars: dict[str, Scalar] = {}
        for name, value in values.items():
            is_long = max(len(name), len(str(value))) > TEXT_LIMIT
            if is_long or not isinstance(value, Scalar) or len(values) > CONDITIONS_LIMIT:
                raise self._report_damage(f"invalid condition {_shorten(name)}")
            scalars[name] = value
        return scalars

    def _report_damage(self, what: str) -> TraceError:
        return _make_error(
            self._name, f"is damaged after {self._count} entries: {what}", "record it again"
        )


def _iter_lines(stream: BinaryIO, name: str) -> Generator[bytes, None, None]:
    """Yield the lines of a gzip stream, none longer than the limit, in memory of that size."""
    again = "record it again, or copy it again"
    # 31 is 16 + 15: with gzip's header and checksum. The module `gzip` would read on after the end.
    inflate, left, has_data = zlib.decompressobj(31), b"", False
    try:
        while not inflate.eof:
            raw = inflate.unconsumed_tail or stream.read(_CHUNK)
            has_data = has_data or bool(raw)
            text = inflate.decompress(raw, _CHUNK)
            if not raw and not text:
                what = "is truncated: it has no end" if has_data else "is empty"
                raise _make_error(name, what, CUT_OFF)
            *lines, left = (left + text).split(b"\n")
            yield from lines
            if len(left) > LINE_LIMIT:
                what = f"is damaged: a line of more than {LINE_LIMIT} bytes"
                raise _make_error(name, what, "record it again")
        if left or inflate.unused_data or stream.read(1):
            raise _make_error(name, "is damaged: it has data after its end", again)
    except zlib.error:
        what = "is not a trace, or is damaged: it is not a gzip file"
        raise _make_error(name, what, again) from None
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise _make_error(name, what, "check the path") from None
    finally:
        stream.close()


def _parse_line(line: bytes, name: str) -> object:
    try:
        return json.loads(line.decode("ascii"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise _make_error(name, "is damaged: a line is not JSON", "record it again") from None


def _refuse_constant(name: str) -> NoReturn:
    # NaN and Infinity, which Python's reader takes by default, are not JSON.
    raise ValueError(name)


def _shorten(value: object) -> str:
    return clean(repr(value)[:60])


def _make_error(name: str, what: str, hint: str) -> TraceError:
    return TraceError(f"trace {name} {what}", hint=hint)


def read(path: str | Path, stream: BinaryIO | None = None) -> Trace:
    """Return the trace at `path`, its header read; the file is closed at its end, or when it is
    deleted.

    Raises:
        TraceError: it cannot be read, is not a trace, or is newer than this envlock.
    """
    try:
        return Trace(stream or Path(path).open("rb"), str(path))
    except OSError as error:
        raise _make_error(
            str(path), f"cannot be read: {error.strerror}", "check the path"
        ) from None
    except ValueError:  # a NUL byte in the name
        raise _make_error(repr(str(path)), "cannot be read: not a path", "check the path") from None
