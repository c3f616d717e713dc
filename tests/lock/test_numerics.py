"""The section `numerics`: it round trips exactly, and holds nothing but numbers, digests and names."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.lock.document import dump, parse, validate
from envlock.lock.numerics import SAMPLES, Operation
from envlock.runtime.errors import LockfileError
from tests.evidence.canaries import conditions, result, section
from tests.locks import document, encode


def test_it_round_trips() -> None:
    fields = document(numerics=section())
    lock = validate(fields, "x")
    assert lock.to_document() == fields
    assert dump(parse(dump(lock), "x")) == encode(fields)


def test_locks_without_it_stay_as_they_are() -> None:
    fields = document()
    assert validate(fields, "x").numerics is None
    assert validate(fields, "x").to_document() == fields


@given(st.lists(st.floats(), min_size=1, max_size=SAMPLES))
def test_every_value_is_kept_exactly(values: list[float]) -> None:
    sample = " ".join(value.hex() for value in values)
    fields = {"dtype": "<f8", "shape": [len(values)], "sha256": "0" * 64, "sample": sample}
    found = Operation.model_validate(fields).values
    assert [value.hex() for value in found] == [value.hex() for value in values]


HOSTILE = ["$(touch x)", "a b", "x\n", "\x1b[2J", "", "é", "x" * 65, "../x", "X"]


def changed(**operation: Any) -> dict[str, Any]:
    return document(
        numerics={
            **section(),
            "groups": {
                "xla": {"conditions": conditions("xla"), "operations": {"train_xla": {**result(), **operation}}}
            },
        }
    )


HEADS: list[dict[str, Any]] = [
    {"intra_op_threads": 0},
    {"intra_op_threads": "many"},
    {"intra_op_threads": True},
    {"determinism": True},
    {"execution": "wild"},
    *({"device": value} for value in ("\x1b[2J", "a\u202eb", "$(x)", "", " ", "x" * 129)),
    {"onednn": "on"},
]
BROKEN: list[dict[str, Any]] = [
    *(document(numerics={**section(), "groups": {name: section()["groups"]["xla"]}}) for name in HOSTILE),
    *(
        document(numerics={**section(), "groups": {"xla": {"conditions": conditions("xla"), "operations": {name: {}}}}})
        for name in HOSTILE
    ),
    *(changed(sha256=value) for value in ("0" * 63, "g" * 64, "A" * 64, None)),
    *(
        changed(sample=value)
        for value in (
            "",
            "1.0",
            "0x1p+0 0x1p+0",
            "0x1p+99999",
            "0x1p+9999",
            "0x1p+1024",
            "0x1p-1023",
            "0x1p+128",
            "0x1.00000000001p+0",
            "0x1p+0;",
            "0x1p+0\n",
            None,
        )
    ),
    *(changed(shape=value) for value in ([2], [-1], [1] * 9, ["1"], [1.0], None)),
    *(changed(dtype=value) for value in ("|O", "<f2", None)),
    *(changed(unstable=value) for value in (True, False)),
    changed(failed="x"),
    *(changed(failed=value, sha256=None, sample=None) for value in HOSTILE[:-1]),
    changed(more=1),
    document(numerics={**section(), "battery": -1}),
    document(numerics={**section(), "battery": "1"}),
    document(numerics={**section(), "tensorflow": "$(x)"}),
    document(numerics={**section(), "more": 1}),
    *(
        document(numerics={**section(), "groups": {"xla": {"conditions": conditions("xla", **head), "operations": {}}}})
        for head in HEADS
    ),
    *(
        document(numerics={**section(), "groups": {"xla": {**section()["groups"]["xla"], "ended": value}}})
        for value in ("", "killed", "signal 11 (SIGSEGV)\n", "signal 11 (\u202eSIG)", "exit code -1", "signal 1111")
    ),
    document(numerics=[]),
    document(numerics=None),
]


@pytest.mark.parametrize("fields", BROKEN, ids=range(len(BROKEN)))
def test_anything_else_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(LockfileError) as caught:
        parse(encode(fields), "x.lock")
    assert caught.value.message.startswith("lockfile x.lock is not valid: ")
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 500


def test_what_is_wrong_is_named_with_its_whole_path() -> None:
    with pytest.raises(LockfileError) as caught:
        validate(changed(sha256="x"), "x.lock")
    where = "`numerics.groups.xla.operations.train_xla.sha256`"
    assert caught.value.message.startswith(f"lockfile x.lock is not valid: {where}: ")


def test_a_failure_and_noise_need_no_values() -> None:
    assert Operation.model_validate({"failed": "NotFoundError"}).values == []
    assert Operation.model_validate({"unstable": True, "dtype": "<f4", "shape": [3]}).size == 3
    assert math.isnan(Operation.model_validate({**result(), "sample": "nan"}).values[0])
