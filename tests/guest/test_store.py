"""Arrays on the disk, and the log of which run had which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.guest.training import store
from envlock.guest.training.store import ARRAYS, LOG, Log, Recorder, Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def recorder(folder: Path, run: int = 0, limit: int = 10**9) -> Recorder:
    return Recorder(run, Store(str(folder), limit), Log(str(folder)))


def lines(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / LOG).read_text(encoding="ascii").splitlines()]


def kept(folder: Path) -> int:
    return len(list((folder / ARRAYS).iterdir()))


def test_an_array_is_kept_once_under_its_digest(folder: Path) -> None:
    array = np.arange(6, dtype="f4").reshape(2, 3)
    for run in range(3):
        recorder(folder, run).take(None, {"loss": array, "other": array.copy()})
    (file,) = (folder / ARRAYS).iterdir()
    assert file.read_bytes() == array.tobytes()
    value = ["float32", [2, 3], file.name]
    assert lines(folder) == [{"run": n, "step": 0, "values": {"loss": value, "other": value}} for n in range(3)]


@given(st.lists(st.integers(-3, 3), min_size=4, max_size=4), st.lists(st.integers(-3, 3), min_size=4, max_size=4))
def test_digests_are_equal_where_kind_shape_and_bits_are(a: list[int], b: list[int]) -> None:
    one, other = np.array(a, "f4"), np.array(b, "f4")
    assert (store.compute_digest(one) == store.compute_digest(other)) == (one.tobytes() == other.tobytes())
    assert store.compute_digest(one)[2] != store.compute_digest(one.reshape(2, 2))[2]
    assert store.compute_digest(one)[2] != store.compute_digest(one.view("i4"))[2]


def test_the_sign_of_a_zero_is_a_bit() -> None:
    assert store.compute_digest(np.array([0.0]))[2] != store.compute_digest(np.array([-0.0]))[2]


@pytest.mark.parametrize(
    ("value", "kind", "shape"),
    [
        (1.5, "float64", ()),
        (True, "bool", ()),
        ([1, 2], "int64", (2,)),
        (np.zeros((0, 3), "f2"), "float16", (0, 3)),
        (np.zeros((4, 2), ">f4").T, "float32", (2, 4)),
        (np.array([b"ab", b""], object), "void8", (18,)),
        ("text", "str128", ()),
    ],
)
def test_values_of_all_sorts(value: Any, kind: str, shape: tuple[int, ...]) -> None:
    array = store.make_array(value, "x")
    assert store.compute_digest(array)[:2] == (kind, shape)
    assert len(store.get_bytes(array)) == array.nbytes


def test_what_is_read_by_numpy_and_what_cannot_be() -> None:
    class Tensor:
        def numpy(self) -> Any:
            return np.ones(3)

    class Symbolic:
        def numpy(self) -> Any:
            raise NotImplementedError("numpy() is only available when eager execution is enabled.\nmore")

    assert store.make_array(Tensor(), "x").tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match=r"^`x` cannot be read: NotImplementedError: numpy\(\) is only available when"):
        store.make_array(Symbolic(), "x")
    with pytest.raises(ValueError, match=r"^`x` holds objects, not numbers: set$"):
        store.make_array({1}, "x")


def test_steps_are_counted_by_names_that_come_again(folder: Path) -> None:
    taker = recorder(folder)
    taker.take(None, {"loss": 1.0})
    taker.take(None, {"weights": 2.0})
    taker.take(None, {"loss": 3.0})
    taker.take(7, {"loss": 4.0})
    taker.take(None, {"loss": 5.0})
    assert [(line["step"], *line["values"]) for line in lines(folder)] == [
        (0, "loss"),
        (0, "weights"),
        (1, "loss"),
        (7, "loss"),
        (8, "loss"),
    ]


def test_a_name_comes_once_a_step(folder: Path) -> None:
    taker = recorder(folder)
    taker.take(2, {"loss": 1.0})
    with pytest.raises(ValueError, match=r"^`loss` was already recorded at step 2$"):
        taker.take(2, {"loss": 1.0})
    with pytest.raises(ValueError, match=r"^step -1 is below 0$"):
        taker.take(-1, {"loss": 1.0})
    assert len(lines(folder)) == 1


def test_beyond_the_limit_only_the_last_step_is_kept(folder: Path) -> None:
    """Room for two arrays: those of steps 0 and 1. Then each step's goes when the next one comes."""
    taker = recorder(folder, limit=80)
    for step in range(5):
        taker.take(step, {"w": np.full(10, step, "f4")})
    digests = [line["values"]["w"][2] for line in lines(folder)]
    assert sorted(file.name for file in (folder / ARRAYS).iterdir()) == sorted([digests[0], digests[1], digests[4]])
    taker.store.end_run()
    again = recorder(folder, 1, limit=80)  # another process: what is there counts
    for step in range(5):
        again.take(step, {"w": np.full(10, step + 100 if step > 2 else step, "f4")})
    last = lines(folder)[-1]["values"]["w"][2]
    assert sorted(file.name for file in (folder / ARRAYS).iterdir()) == sorted([*digests[:2], digests[4], last])
    assert kept(folder) == 4
