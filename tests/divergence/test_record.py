"""Recording: what a header says of the circumstances, and whether looking has changed the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.divergence.comparison import CALL
from envlock.divergence.trace import Record, Value, read
from envlock.divergence.trace_recording import (
    _copy_trace,
    collect_conditions,
    collect_results,
    compare_results,
    digest_values,
)
from envlock.divergence.two_traces import report
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


@pytest.mark.parametrize(
    ("ends", "code", "rules"),
    [
        (({"tracing": "none"}, {"tracing": "none"}), 0, []),
        (({"tracing": "none"}, {"tracing": "changed"}), 4, ["tracing"]),
        (({"tracing": "unstable"}, {}), 4, ["tracing"]),
        (({"untraced": "aa"}, {"untraced": "aa"}), 0, []),
        (({"untraced": "aa"}, {"untraced": "bb"}), 1, ["untraced"]),
        (({"untraced": "aa"}, {}), 0, []),
        (({}, {}), 0, []),
    ],
)
def test_equal_traces_of_programs_that_tracing_has_changed_are_no_yes(
    tmp_path: Path, ends: tuple[dict[str, str], dict[str, str]], code: int, rules: list[str]
) -> None:
    run: list[Record | Value] = [op("Relu", 3, [1], [2]), value("loss", 1)]
    paths = [write(tmp_path / name, run, dict(end)) for name, end in zip("ab", ends, strict=True)]
    found = report(*map(str, paths))
    assert (found.exit_code, [each.rule for each in found.findings]) == (code, rules)
    assert found.headline.startswith("the same bits: ") == (code == 0)
    assert found.evidence.conditions == {}


def test_the_effect_of_tracing_is_kept_in_the_trace(tmp_path: Path) -> None:
    run: list[Record | Value] = [op("Relu", 3, [1], [2]), value("loss", 1)]
    source = write(tmp_path / "a", run, {"elsewhere": 1})
    with (tmp_path / "b").open("wb") as file:
        _copy_trace(source, file, {"tracing": "changed"})
    copied, before = read(tmp_path / "b"), read(source)
    assert list(copied) == list(before)
    assert copied.end == {"elsewhere": 1, "tracing": "changed"}
    assert (
        digest_values({"loss": (1,), "Call f": (2,)}) == digest_values({"loss": (1,)}) != digest_values({"loss": (3,)})
    )
    assert digest_values({"Call f": (2,)}) is None
