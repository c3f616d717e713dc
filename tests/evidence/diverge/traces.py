"""Traces for tests, made of a few words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envlock.evidence.diverge.trace import Header, Operation, Place, Record, Value
from envlock.guest.tracing.trace_writer import TraceWriter

HEADER = Header(
    "envlock 0.1.0", "2.21.0", "3.15.1", "3.11.2", "eager", "position-sum-64", {"cpu.vendor": "AuthenticAMD"}
)


def op(
    kind: str, line: int | None, inputs: list[int | None], outputs: list[int | None], *, step: int = 0, name: str = "it"
) -> Record:
    """Return a record of an operation at a line of train.py."""
    place = None if line is None else Place("train.py", line, "step")
    specs = ("float32[2]",) * len(inputs), ("float32[2]",) * len(outputs)
    return Record(step, 0, Operation(kind, name, place, *specs), tuple(inputs), tuple(outputs))


def value(name: str, fingerprint: int, *, step: int = 0) -> Value:
    """Return a quantity."""
    return Value(step, name, fingerprint, "float32[]")


def write(path: Path, entries: list[Record | Value], end: dict[str, Any] | None = None, **header: Any) -> Path:
    """Write a trace; return its path."""
    fields = {**vars(HEADER), **header}
    with path.open("wb") as stream:
        writer = TraceWriter(stream, fields)
        for entry in entries:
            writer.begin_step(entry.step)
            if isinstance(entry, Record):
                writer.write_operation(entry.operation, entry.inputs, entry.outputs)
            else:
                writer.write_value(entry.name, entry.fingerprint, entry.spec)
        writer.close(end)
    return path
