"""Which GPU code runs where."""

from __future__ import annotations

import pytest

from envlock.runtime.cuda.gpu_code import Target, judge

PYPI = ["sm_60", "sm_70", "sm_80", "sm_89", "compute_90"]
OLD = ["sm_35", "sm_50", "sm_60", "sm_70", "sm_75", "compute_80"]


SERVES: list[tuple[list[str], str, str, str | None]] = [
    (PYPI, "8.0", "native", "sm_80"),
    (PYPI, "8.6", "native", "sm_80"),
    (PYPI, "8.9", "native", "sm_89"),
    (PYPI, "7.5", "native", "sm_70"),
    (PYPI, "9.0", "native", "compute_90"),
    (PYPI, "10.0", "ptx", "compute_90"),
    (PYPI, "12.0", "ptx", "compute_90"),
    (PYPI, "5.2", "none", None),
    (OLD, "8.6", "native", "compute_80"),
    (OLD, "9.0", "ptx", "compute_80"),
    (["sm_90a"], "9.0", "native", "sm_90a"),
    (["sm_90a"], "10.0", "none", None),
    (["compute_90a"], "10.0", "none", None),
    (["sm_100f"], "10.3", "native", "sm_100f"),
    (["compute_100f"], "12.0", "none", None),
    (["sm_100"], "10.3", "native", "sm_100"),
    (["8.0", "9.0"], "12.0", "ptx", "9.0"),
    (["later-notation"], "9.0", "unknown", None),
    ([], "9.0", "unknown", None),
    (PYPI, "", "unknown", None),
]
RUNS = {"native": True, "ptx": True, "none": False, "unknown": None}


def test_which_entry_serves() -> None:
    verdicts = [judge(targets, gpu, "12.5.1", "12.9") for targets, gpu, *_ in SERVES]
    assert [(verdict.kind, verdict.target) for verdict in verdicts] == [(kind, target) for *_, kind, target in SERVES]
    assert [verdict.runs for verdict in verdicts] == [RUNS[verdict.kind] for verdict in verdicts]


def test_the_driver_must_know_the_toolkits_ptx() -> None:
    drivers: list[tuple[str | None, bool | None, str]] = [
        ("12.4", False, "error 222"),
        ("12.5", True, "can"),
        ("13.0", True, "can"),
        (None, None, "if its CUDA version"),
    ]
    for driver, runs, words in drivers:
        verdict = judge(PYPI, "12.0", "12.5.1", driver)
        assert (verdict.runs, words in verdict.sentence) == (runs, True), driver


def test_what_is_no_capability() -> None:
    for text in ("", "sm_", "gfx90a", "sm_x", "7"):
        with pytest.raises(ValueError, match="not a compute capability"):
            Target(text)
