"""Digests of arrays and the files that keep them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envlock.guest import battery
from envlock.integrations.arrays import compute_digest, read_records, write_records

ONES = np.ones((2, 3), dtype="float32")


class Tensor:
    """What TensorFlow gives."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def numpy(self) -> Any:
        return self.array


def test_a_digest_is_that_of_the_canary() -> None:
    assert compute_digest(ONES) == battery.compute_digest(ONES)


def test_it_is_of_type_shape_and_bytes() -> None:
    same = [ONES, Tensor(ONES), np.asfortranarray(ONES), np.ones((4, 6), dtype="float32")[::2, ::2]]
    assert {compute_digest(each) for each in same} == {compute_digest(ONES)}
    assert compute_digest([1, 2]) == compute_digest(np.array([1, 2]))
    zero = np.zeros(2, dtype="float32")
    others = [ONES.reshape(3, 2), ONES.astype("float64"), ONES.astype(">f4"), ONES[0], zero, -zero, np.float32(1)]
    assert len({compute_digest(each) for each in [ONES, *others]}) == len(others) + 1


def test_addresses_are_no_bits() -> None:
    with pytest.raises(TypeError) as caught:
        compute_digest(np.array([object()]))
    assert str(caught.value) == "an array of objects has no bits to compare: convert it to numbers first"


def test_records_come_back(tmp_path: Path) -> None:
    file = tmp_path / "x.bits.json"
    assert read_records(file) == {}
    write_records(file, {"b": {"ü": "1"}, "a": {}})
    assert file.read_text(encoding="utf-8") == '{\n  "a": {},\n  "b": {\n    "ü": "1"\n  }\n}\n'
    assert read_records(file) == {"a": {}, "b": {"ü": "1"}}


def test_what_cannot_be_written_leaves_the_old_records(tmp_path: Path) -> None:
    file = tmp_path / "x.bits.json"
    write_records(file, {"a": 1})
    with pytest.raises(TypeError):
        write_records(file, {"a": 2, "b": object()})
    assert ([each.name for each in tmp_path.iterdir()], read_records(file)) == (["x.bits.json"], {"a": 1})


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", " is not valid JSON (Expecting property name"), ("[]", " holds no JSON object: restore or delete it")],
)
def test_a_broken_file_is_named(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.bits.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"restore or delete it$") as caught:
        read_records(file)
    assert str(caught.value).startswith(f"{file}{said}")
