"""The fingerprint of a large array: every changed byte and every exchange counts, whatever its layout."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from envlock.guest.tracing import temporary_names
from envlock.guest.tracing.tensors import LARGE, STRIDES, VERY_LARGE, hash_array, hash_tensor

SIZES = [0, 1, 8, LARGE - 1, LARGE, VERY_LARGE - 1, VERY_LARGE, VERY_LARGE + 5, 3 * 8 * STRIDES[0] * STRIDES[1] // 100]


def some(size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return bytes that do not repeat."""
    return np.random.default_rng(1).integers(0, 256, size, dtype=np.uint8)


@pytest.mark.parametrize("size", SIZES)
def test_equal_bytes_are_alike_and_one_changed_byte_is_not(size: int) -> None:
    array = some(size)
    found = hash_array(array)
    assert found == hash_array(array.copy())
    assert 0 <= found < 1 << 64
    for place in {0, size // 2, size - 1} if size else ():
        changed = array.copy()
        changed[place] ^= 1
        assert hash_array(changed) != found


@pytest.mark.parametrize("apart", [1, 2, *STRIDES, 2 * STRIDES[0], 3 * STRIDES[1], 10_000])
def test_words_that_change_places_are_seen(apart: int) -> None:
    words = some(VERY_LARGE * 2).view("u8")
    exchanged = words.copy()
    exchanged[[7, 7 + apart]] = words[[7 + apart, 7]]
    assert hash_array(exchanged) != hash_array(words)


@pytest.mark.parametrize("rows", [16, 32, 128])
def test_another_order_of_rows_is_seen(rows: int) -> None:
    """As a pipeline gives them that shuffles."""
    batch = some(VERY_LARGE * 2).reshape(rows, -1)
    assert hash_array(batch[::-1]) != hash_array(batch)


def test_layout_is_no_difference_and_the_sign_of_zero_is() -> None:
    array = some(VERY_LARGE).view("f4").reshape(256, -1)
    assert hash_array(np.asfortranarray(array)) == hash_array(array)
    zeros = np.zeros(VERY_LARGE, "f4")
    assert hash_array(-zeros) != hash_array(zeros)


def test_names_of_temporary_folders_and_ports_are_left_out_and_marked(tmp_path: Path) -> None:
    with temporary_names.watch_names():
        drawn = [Path(tempfile.mkdtemp(dir=tmp_path)).name for _ in range(2)]
        texts = [
            *(f"/tmp/{each}/0.tfrecord" for each in drawn),
            "grpc://localhost:41000",
            "grpc://localhost:41001",
            "localhost",
        ]
        found = [hash_tensor(np.array([text], object)) for text in texts]
    assert [spec for _, spec in found] == [*["string[1] (a name)"] * 4, "string[1]"]
    assert found[0] != found[1]  # the first and the second folder
    assert found[2] == found[3]
    assert hash_tensor(np.array([texts[2]], object)) == found[2]
