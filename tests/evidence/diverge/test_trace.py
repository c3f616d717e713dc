"""The trace format: what is written comes back, and what is damaged or malicious is refused in one sentence."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.evidence.diverge.trace import Operation, Place, Record, Trace, TraceError, Value, read
from envlock.guest.tracing import trace_writer
from envlock.guest.tracing.trace_writer import DEFINITIONS_LIMIT, LINE_LIMIT, TraceWriter, format_spec
from tests.golden_files import assert_as_golden

HEADER: dict[str, Any] = {
    "made_by": "envlock 0.1.0",
    "tensorflow": "2.21.0",
    "keras": "3.15.1",
    "python": "3.11.2",
    "mode": "graph",
    "fingerprint": "position-sum-64",
    "conditions": {"intra_op_threads": 2, "environ.TF_ENABLE_ONEDNN_OPTS": None},
}
MATMUL = Operation("MatMul", "dense/MatMul", Place("train.py", 12, "step"), ("float32[2,3]",) * 2, ("float32[2,2]",))

texts = st.text(max_size=400)
fingerprints = st.none() | st.integers(0, 2**64 - 1)
specs = st.lists(texts, max_size=4).map(tuple)
places = st.none() | st.builds(Place, texts, st.integers(0, 10**6), texts)
operations = st.builds(Operation, texts, st.none() | texts, places, specs, specs)
prints = st.lists(fingerprints, max_size=4).map(tuple)
entries = st.lists(
    st.tuples(st.just("record"), operations, prints, prints) | st.tuples(st.just("value"), texts, fingerprints, texts)
)


def written(*records: tuple[Any, ...], header: dict[str, Any] | None = None) -> bytes:
    """Return a trace: a tuple (operation, inputs, outputs) is a record, (name, fingerprint, spec) a value."""
    stream = io.BytesIO()
    with TraceWriter(stream, header or HEADER) as writer:
        for number, fields in enumerate(records):
            writer.begin_step(number)
            if isinstance(fields[0], tuple):
                writer.write_operation(*fields)
            else:
                writer.write_value(*fields)
    return stream.getvalue()


def packed(*lines: object) -> bytes:
    """Return a trace made of these lines: text as it is, all else as JSON."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in ({"trace_version": 1, **HEADER}, *lines)]
    return gzip.compress(("\n".join(texts) + "\n").encode("utf-8"))


def entries_of(data: bytes) -> list[Record | Value]:
    return list(Trace(io.BytesIO(data), "a.trace"))


@given(st.lists(entries, max_size=5))
def test_what_is_written_comes_back(steps: list[list[Any]]) -> None:
    stream = io.BytesIO()
    wanted: list[Record | Value] = []
    with TraceWriter(stream, HEADER) as writer:
        for step, run in enumerate(steps):
            writer.begin_step(step)
            for kind, *fields in run:
                method = "write_operation" if kind == "record" else "write_value"
                getattr(writer, method)(*fields)
                index = len(wanted)
                wanted.append(Record(step, index, *fields) if kind == "record" else Value(step, *fields))
    trace = Trace(io.BytesIO(stream.getvalue()), "a.trace")
    assert list(trace) == wanted
    assert (trace.header.conditions, trace.end) == (HEADER["conditions"], {})


def test_it_is_lines_of_json_that_any_tool_reads() -> None:
    lines = gzip.decompress(written((MATMUL, [1, None], [2**64 - 1]))).decode("ascii").splitlines()
    assert json.loads(lines[0]) == {"trace_version": 1, **HEADER}
    assert lines[1:] == [
        '["step",0]',
        '["op","MatMul","dense/MatMul",["train.py",12,"step"],["float32[2,3]","float32[2,3]"],["float32[2,2]"]]',
        '[0,["0000000000000001",null],["ffffffffffffffff"]]',
        '["end",1,{}]',
    ]


def test_the_same_run_gives_the_same_bytes() -> None:
    assert written((MATMUL, [1], [2])) == written((MATMUL, [1], [2]))


def test_a_negative_fingerprint_is_its_64_bits() -> None:
    (record,) = entries_of(written((MATMUL, [], [-1])))
    assert isinstance(record, Record)
    assert record.outputs == (2**64 - 1,)


def test_the_end_says_what_is_known_only_then() -> None:
    stream = io.BytesIO()
    writer = TraceWriter(stream, HEADER)
    writer.close({"intra_op_threads": 2})
    trace = Trace(io.BytesIO(stream.getvalue()), "a.trace")
    assert (list(trace), trace.end) == ([], {"intra_op_threads": 2})


def test_a_spec_is_the_type_and_the_shape() -> None:
    assert [format_spec("float32", shape) for shape in ((2, 3), (None, 3), (), None)] == [
        *("float32[2,3]", "float32[?,3]", "float32[]", "float32[*]")
    ]


def test_a_run_that_died_leaves_no_end() -> None:
    stream = io.BytesIO()
    with pytest.raises(ZeroDivisionError), TraceWriter(stream, HEADER):
        raise ZeroDivisionError
    with pytest.raises(TraceError, match=r"^trace a\.trace is empty\n"):
        entries_of(stream.getvalue())


GOLDEN = Path(__file__).parents[2] / "golden" / "damaged-traces.txt"
RECORD = [0, [], []]
OP: list[Any] = ["op", "MatMul", None, None, [], []]
REFUSED = {
    "empty": b"",
    "no gzip": b"{}",
    "cut off": written((MATMUL, [1], [2]))[:-9],
    "one byte changed": written()[:-8] + b"\0" * 8,
    "more after it": written() + b"x",
    "two of them": written() + written(),
    "a line after the end": packed(["end", 0, {}], OP),
    "no end": packed(OP),
    "another count": packed(["end", 3, {}]),
    "no JSON": packed("[1"),
    "not a number": packed('["value","x",NaN,""]'),
    "deep": packed("[" * 100_000),
    "not ASCII": packed('["value","ä",null,""]'),
    "an unknown entry": packed(["what", "\x1b[2J"]),
    "an undefined operation": packed(RECORD),
    "a negative operation": packed(OP, [-1, [], []]),
    "a forgotten operation": packed(OP, RECORD, ["forget"], RECORD),
    "no fingerprint": packed(OP, [0, ["12"], []]),
    "too many tensors": packed(OP, [0, [None] * 4097, []]),
    "a definition of another shape": packed(["op", "MatMul"]),
    "a text too long": packed(["op", "x" * 401, None, None, [], []]),
    "no place": packed(["op", "MatMul", None, ["a.py"], [], []]),
    "steps that go back": packed(["step", 2], ["step", 1]),
    "an endless line": packed('["' + "x" * (LINE_LIMIT + 70_000)),
    "too many definitions": packed(*[OP] * (DEFINITIONS_LIMIT + 1)),
    "a condition that is a list": packed(["end", 0, {"threads": []}]),
}


def test_what_is_damaged_is_refused_in_one_sentence() -> None:
    lines = []
    for name, data in REFUSED.items():
        with pytest.raises(TraceError) as caught:
            entries_of(data)
        assert caught.value.exit_code == 3
        lines += [f"# {name}", str(caught.value), ""]
    assert_as_golden("\n".join(lines), GOLDEN)


def test_a_newer_trace_says_so() -> None:
    with pytest.raises(TraceError) as caught:
        entries_of(gzip.compress(b'{"trace_version": 2, "anything": []}\n'))
    assert caught.value.message == "trace a.trace has trace_version 2; this envlock reads up to 1"


@pytest.mark.parametrize("change", [{"tensorflow": None}, {"mode": "lazy"}, {"more": 1}])
def test_a_header_that_is_none(change: dict[str, Any]) -> None:
    with pytest.raises(TraceError, match="is not a trace: its first line is not a header"):
        entries_of(gzip.compress(json.dumps({"trace_version": 1, **HEADER, **change}).encode() + b"\n"))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with pytest.raises(TraceError):
        entries_of(data)


@given(st.lists(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda x: st.lists(x, max_size=4))))
def test_any_lines_are_read_or_refused(lines: list[Any]) -> None:
    with pytest.raises(TraceError):
        entries_of(packed(*lines))


@given(st.integers(0, 400), st.integers(1, 255))
def test_no_changed_byte_goes_unseen(place: int, change: int) -> None:
    """What gzip does not read (its time stamp, the bits that fill the last byte) changes no entry."""
    original = written((MATMUL, [1, 2], [3]))
    data = bytearray(original)
    data[place % len(data)] ^= change
    with suppress(TraceError):
        assert entries_of(bytes(data)) == entries_of(original)


def test_a_path_that_cannot_be_read(tmp_path: Path) -> None:
    for path, sentence in [
        (str(tmp_path / "no.trace"), "cannot be read: No such file or directory"),
        (str(tmp_path), "cannot be read: Is a directory"),
    ]:
        with pytest.raises(TraceError) as caught:
            read(path)
        assert caught.value.message == f"trace {path} {sentence}"
    with pytest.raises(TraceError, match="cannot be read: not a path"):
        read("a\0b")


@pytest.mark.slow
def test_memory_is_flat_in_the_writer_and_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times as many steps, with ever new shapes, take no more memory; remembered, they take 2.8 times as much."""
    monkeypatch.setattr(trace_writer, "DEFINITIONS_LIMIT", 200)

    def peak(steps: int) -> tuple[int, int]:
        file = tmp_path / "a.trace"
        tracemalloc.start()
        with file.open("wb") as stream, TraceWriter(stream, HEADER) as writer:
            for step in range(steps):
                writer.begin_step(step)
                for number in range(50):
                    writer.write_operation(MATMUL._replace(outputs=(f"float32[{step},{number}]",)), [step], [number])
        wrote = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        assert sum(1 for _ in read(file)) == steps * 50
        return wrote, tracemalloc.get_traced_memory()[1]

    try:
        few, many = peak(20), peak(60)
    finally:
        tracemalloc.stop()
    assert max(many) < 1.5 * max(few)


def test_a_bomb_takes_time_and_no_memory() -> None:
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = b"".join(bomb.compress(b"\0" * (1 << 20)) for _ in range(16)) + bomb.flush()
    tracemalloc.start()
    try:
        with pytest.raises(TraceError, match="a line of more than"):
            entries_of(data)
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
