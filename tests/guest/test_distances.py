"""The distances, against their definition."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from envlock.guest.training import distances_program
from envlock.guest.training.distances_program import compute_distances


def files(folder: Path, arrays: list[Any]) -> list[str]:
    paths = [folder / str(n) for n in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        path.write_bytes(array.tobytes())
    return [str(path) for path in paths]


@pytest.mark.longer
@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8", "uint32", "complex64", "bool"])
@pytest.mark.parametrize("parts", [64, 10**6])
def test_as_defined(kind: str, parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances_program, "BLOCK", 1024)  # several blocks, also of what is read at once
    numbers = np.random.default_rng(0)
    arrays = [(numbers.normal(size=5000) * 30).astype(kind) for _ in range(4)]
    found = compute_distances(kind, files(tmp_path, arrays), parts)
    assert found is not None
    wide = [array.astype("c16" if kind == "complex64" else "f8") for array in arrays]
    for a in range(4):
        for b in range(4):
            apart = np.abs(wide[a] - wide[b])
            assert found["sum"][a][b] == pytest.approx(apart.sum(), rel=1e-12)
            assert found["max"][a][b] == apart.max()
            if kind in ("float16", "float32", "float64"):
                assert found["norm"] is not None
                scale = np.finfo(kind).eps * max(np.abs(wide[a]).max(), np.abs(wide[b]).max())
                assert found["norm"][a][b] == pytest.approx(apart.max() / scale)
    assert (found["norm"] is None) == (kind in ("int8", "uint32", "bool"))


def test_whole_numbers_of_64_bits_are_exact(tmp_path: Path) -> None:
    arrays = [np.array([2**62, 5], "i8"), np.array([2**62 + 1, 5], "i8")]
    found = compute_distances("int64", files(tmp_path, arrays), 1000)
    assert found is not None
    assert (found["sum"][0][1], found["max"][1][0], found["norm"]) == (1.0, 1.0, None)


def test_bfloat16_is_the_upper_half_of_a_float32(tmp_path: Path) -> None:
    arrays = [(np.array(values, "f4").view("u4") >> 16).astype("u2") for values in ([1.0, 2.0], [1.0, 2.5])]
    found = compute_distances("bfloat16", files(tmp_path, arrays), 1000)
    assert found is not None
    assert (found["sum"][0][1], found["max"][0][1]) == (0.5, 0.5)
    assert found["norm"] is not None
    assert found["norm"][0][1] == 0.5 / (2.5 * 2**-7)


def test_what_is_no_number_has_no_distance(tmp_path: Path) -> None:
    for kind in ("float8_e4m3fn", "void8", "str32", "datetime64"):
        assert compute_distances(kind, files(tmp_path, [np.zeros(4), np.ones(4)]), 1000) is None


values = st.sampled_from([0.0, -0.0, 1.0, -2.5, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324])


@settings(max_examples=60)
@given(hnp.arrays("f8", (3, 4), elements=values))
def test_nan_and_infinity(tmp_path_factory: pytest.TempPathFactory, rows: Any) -> None:
    found = compute_distances("float64", files(tmp_path_factory.mktemp("nan"), list(rows)), 1000)
    assert found is not None
    assert found["norm"] is not None
    for a in range(3):
        for b in range(3):
            each = [apart(x, y) for x, y in zip(rows[a].tolist(), rows[b].tolist(), strict=True)]
            assert found["max"][a][b] == max(each)
            assert found["sum"][a][b] == sum(each)
            assert not math.isnan(found["norm"][a][b])


def apart(x: float, y: float) -> float:
    """The distance of two numbers, as documented."""
    if x == y or (math.isnan(x) and math.isnan(y)):
        return 0.0
    return math.inf if math.isnan(x) or math.isnan(y) else abs(x - y)


def test_arrays_without_values(tmp_path: Path) -> None:
    found = compute_distances("float32", files(tmp_path, [np.zeros(0), np.zeros(0)]), 1000)
    assert found == {"sum": [[0, 0], [0, 0]], "max": [[0, 0], [0, 0]], "norm": [[0, 0], [0, 0]]}


@pytest.mark.processes
def test_the_program_answers_a_line_a_job(tmp_path: Path) -> None:
    files(tmp_path, [np.zeros(4, "f4"), np.ones(4, "f4")])
    jobs = [{"kind": "float32", "digests": ["0", "1"]}, {"kind": "float32", "digests": ["0", "gone"]}]
    asked = json.dumps({"folders": ["/none", str(tmp_path)], "parts": 1000, "jobs": jobs})
    code = "from envlock.guest.training.distances_program import main; main()"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, input=asked, capture_output=True, text=True, timeout=60, check=True)
    read, first, second = map(json.loads, done.stdout.splitlines())
    assert read == {"read": 32}
    assert (first["kept"], first["distances"]["sum"]) == (True, [[0, 4], [4, 0]])
    assert second == {"kept": False}
