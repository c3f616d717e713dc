"""Matrices of quantities that are made of several arrays, as another process computes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envlock.evidence import results
from envlock.evidence.repeat.matrices import Matrix, compute_matrices, count_bytes
from envlock.evidence.results import Run, Value
from envlock.guest.training import store as arrays
from envlock.guest.training.store import Store
from envlock.runtime.errors import FactError, UsageError

pytestmark = pytest.mark.processes


def runs_of(folder: Path, *runs: dict[str, Any]) -> list[Run]:
    """Return runs of one step whose arrays lie in a folder."""
    store = Store(str(folder), 10**9)
    made = []
    for number, quantities in enumerate(runs):
        values = {}
        for name, array in quantities.items():
            kind, shape, digest = arrays.compute_digest(array)
            store.keep(array, digest)
            values[name] = Value(kind, shape, digest)
        made.append(Run(str(number), {0: values}, "finished"))
    return made


def matrix(folder: Path, *runs: dict[str, Any]) -> Matrix:
    """Return the matrix of the only quantity that differs."""
    quantities = list(results.iter_differing(runs_of(folder, *runs)))
    (found,) = compute_matrices(quantities, [folder / "arrays"], None)
    return found


def test_of_several_arrays_sums_are_added_and_of_the_rest_the_largest_counts(tmp_path: Path) -> None:
    a, b = np.array([1.0, 2.0], "f4"), np.array([4.0], "f4")
    found = matrix(tmp_path, {"w/0": a, "w/1": b}, {"w/0": a + 2, "w/1": b + 1}, {"w/0": a, "w/1": b + 1})
    assert found.cells["sum"] == [[0, 5, 1], [5, 0, 4], [1, 4, 0]]
    assert found.cells["max"] == [[0, 2, 1], [2, 0, 2], [1, 2, 0]]
    epsilon = float(np.finfo("f4").eps)
    assert found.cells["norm"][0] == [0, 2 / (4 * epsilon), 1 / (5 * epsilon)]
    assert found.notes == ()


def test_what_has_no_distance(tmp_path: Path) -> None:
    a = np.array([1.0, 2.0], "f4")
    found = matrix(tmp_path, {"w/0": a, "w/1": a}, {"w/0": a + 1}, {"w/0": a[:1], "w/1": a})
    assert found.cells["sum"] == [[0, None, None], [None, 0, None], [None, None, 0]]
    assert found.notes == (
        "w/0 has several types or shapes, which have no distance: float32[2], float32[1].",
        "w/1 was not recorded in 1 of 3 runs.",
    )
    other = matrix(tmp_path, {"s": np.array("one")}, {"s": np.array("two")})
    assert (other.cells["sum"][0][1], other.notes) == (
        None,
        ("s has type str96, which has no distance, so only its bits were compared.",),
    )


def test_bits_that_no_value_shows(tmp_path: Path) -> None:
    found = matrix(tmp_path, {"w": np.array([0.0])}, {"w": np.array([-0.0])})
    assert (found.cells["sum"], found.notes) == (
        [[0, 0], [0, 0]],
        ("Some bits differ although the values are equal: the sign of a zero, or the bits of a NaN.",),
    )


def test_equal_arrays_of_two_runs_are_read_once(tmp_path: Path) -> None:
    a = np.arange(1000, dtype="f8")
    quantities = list(results.iter_differing(runs_of(tmp_path, {"w": a}, {"w": a}, {"w": a + 1})))
    read: list[int] = []
    (found,) = compute_matrices(quantities, [tmp_path / "arrays"], None, read.append)
    assert found.cells["sum"] == [[0, 0, 1000], [0, 0, 1000], [1000, 1000, 0]]
    assert sum(read) == count_bytes(quantities) == 2 * 8000


def test_an_array_that_was_cut_off(tmp_path: Path) -> None:
    quantities = list(results.iter_differing(runs_of(tmp_path, {"w": np.zeros(9)}, {"w": np.ones(9)})))
    next((tmp_path / "arrays").iterdir()).write_bytes(b"short")
    with pytest.raises(UsageError) as caught:
        compute_matrices(quantities, [tmp_path / "arrays"], None)
    assert caught.value.message == "the saved arrays are damaged: some are truncated"


def test_an_interpreter_without_numpy_and_one_that_dies(tmp_path: Path) -> None:
    quantities = list(results.iter_differing(runs_of(tmp_path, {"w": np.zeros(1)}, {"w": np.ones(1)})))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    with pytest.raises(UsageError) as caught:
        compute_matrices(quantities, [tmp_path / "arrays"], python)
    assert caught.value.message == "distances need numpy, which is not installed for the interpreter"
    python.write_text("#!/bin/sh\necho 'no memory left' >&2\nkill -9 $$\n", encoding="utf-8")
    with pytest.raises(FactError) as died:
        compute_matrices(quantities, [tmp_path / "arrays"], python)
    assert died.value.message == "the distances could not be computed: the process was ended by SIGKILL: no memory left"
    python.write_text("#!/bin/sh\nkill -9 $$\n", encoding="utf-8")
    with pytest.raises(FactError) as silent:
        compute_matrices(quantities, [tmp_path / "arrays"], python)
    assert silent.value.message == "the distances could not be computed: the process was ended by SIGKILL: no output"
