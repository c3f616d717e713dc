"""Recording: what a header says of the circumstances, and whether looking has changed the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.divergence.comparison import CALL
from envlock.divergence.trace import Record, Value, read
from envlock.divergence.trace_recording import collect_conditions, collect_results, compare_results
from tests.divergence.traces import op, value, write


def test_the_result_is_what_each_value_and_each_graph_was_last(tmp_path: Path) -> None:
    run: list[Record | Value] = [
        value("loss", 1),
        op(CALL, 3, [1], [2], name="step"),
        value("loss", 5, step=1),
        op("Relu", 3, [1], [2], step=1),
    ]
    assert collect_results(read(write(tmp_path / "a", run))) == {"loss": (5,), "Call step": (2,)}


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ({"loss": (1,), "only": (2,)}, {"loss": (1,)}, "equal"),
        ({"loss": (1,), "out": (2,)}, {"loss": (1,), "out": (3,)}, "different"),
        ({"loss": (1,)}, {"other": (1,)}, "incomparable"),
        ({"loss": (None,)}, {"loss": (None,)}, "incomparable"),
        ({}, {}, "incomparable"),
    ],
)
def test_results_differ_only_where_both_have_one(
    a: dict[str, tuple[int | None, ...]], b: dict[str, tuple[int | None, ...]], verdict: str
) -> None:
    assert compare_results(a, b) == verdict


def test_conditions_are_facts_by_path_without_packages() -> None:
    facts = {
        "cpu": {"vendor": "GenuineIntel", "flags": ["avx", "avx2"], "quota": None},
        "packages": {"numpy": {"version": "2.4.6"}},
        "gpu": None,
        "environ": {"X": "y" * 500},
    }
    assert collect_conditions(facts) == {"cpu.vendor": "GenuineIntel", "cpu.flags": "avx avx2", "environ.X": "y" * 400}
