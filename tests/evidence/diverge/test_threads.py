"""Threads of several runs side by side: races, causes, work that a pool hands out otherwise, and what is unseen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from envlock.evidence.diverge.comparison import Difference, Entry, compare
from envlock.evidence.diverge.threads import OWN, ThreadEvidence, ThreadInput, examine, find_thread_input
from tests.evidence.diverge.test_comparison import record

Traces = Mapping[tuple[int, str], Iterable[Entry]]


def _examined(ends: list[dict[str, Any]], traces: Traces, before: int | None = 9) -> ThreadEvidence:
    return examine(ends, lambda number, name: traces.get((number, name)), before)


def _shared(order: str) -> dict[str, Any]:
    use = {"name": "w", "order": order, "threads": 2, "place": ["train.py", 7, "work"], "type": "AssignSubVariableOp"}
    return {"starts": {"1": 0}, "shared": [use]}


def test_a_variable_that_is_used_in_another_order_is_a_race() -> None:
    race = _examined([_shared("a"), _shared("b"), _shared("a")], {}).race
    assert race is not None
    assert (race.groups, race.threads, race.record.operation.name) == ((0, 1, 0), 2, "w")
    assert _examined([_shared("a"), _shared("a")], {}) == ThreadEvidence()


def test_the_operation_that_differs_by_itself_in_a_thread_is_its_cause() -> None:
    traces = {(run, "1"): [record(0, "RandomUniform", (1,), (run,))] for run in range(2)}
    found = _examined([{"starts": {"1": 3}}] * 2, traces)
    assert found.comparison is not None
    assert found.comparison.first is not None
    assert (found.thread, found.comparison.first.kind) == ("1", "operation")
    assert _examined([{"starts": {"1": 10}}] * 2, traces).comparison is None  # it began after the first difference


def test_what_a_thread_leaves_in_a_variable_can_be_the_work_of_another() -> None:
    traces = {(run, "1"): [record(0, "AssignSubVariableOp", (None, 1), (run,))] for run in range(2)}
    assert _examined([{"starts": {"1": 0}}] * 2, traces) == ThreadEvidence(
        blind="thread 1 did something else in each run"
    )


def test_a_pool_that_hands_out_the_same_work_otherwise_is_no_cause() -> None:
    sine, cosine = record(0, "Sin", (1,), (2,)), record(0, "Cos", (3,), (4,))
    traces = {(0, "1"): [sine], (0, "2"): [cosine], (1, "1"): [sine, cosine]}
    assert _examined([{"starts": {"1": 0, "2": 0}}, {"starts": {"1": 0}}], traces) == ThreadEvidence()


def test_work_that_cannot_be_compared_makes_blind() -> None:
    sine, other = record(0, "Sin", (1,), (2,)), record(0, "Sin", (5,), (6,))
    traces = {(0, "1"): [sine], (1, "1"): [sine], (1, "2"): [other]}
    number = "another number of threads ran TensorFlow operations in each run"
    assert _examined([{"starts": {"1": 0}}, {"starts": {"1": 0, "2": 0}}], traces).blind == number
    assert _examined([{"elsewhere": 3}] * 2, {}).blind == "operations of more threads ran than were recorded"


def test_what_a_thread_was_given_does_not_matter_where_the_run_itself_is_equal() -> None:
    traces = {(run, "1"): [record(0, "Sin", (run,), (run + 5,))] for run in range(2)}
    assert _examined([{"starts": {"1": 0}}] * 2, traces).comparison is not None
    assert _examined([{"starts": {"1": 0}}] * 2, traces, None).comparison is None


def test_a_thread_that_takes_another_branch_is_a_cause_and_a_worker_of_a_pool_is_not() -> None:
    traces = {(run, "1"): [record(0, kind, (1,), (run,))] for run, kind in enumerate(("Sin", "Cos"))}
    found = _examined([{"starts": {"1": 0}}] * 2, traces)
    assert found.comparison is not None
    assert found.comparison.first is not None
    assert found.comparison.first.kind == "sequence"
    worker = _examined([{"starts": {"1": 0}, "pools": ["1"]}] * 2, traces)
    assert worker == ThreadEvidence(blind="thread 1 did something else in each run")
    # Nor is one that gets other data.
    given = {(run, "1"): [record(0, "Sin", (run,), (run + 5,))] for run in range(2)}
    assert _examined([{"starts": {"1": 0}, "pools": ["1"]}] * 2, given) == worker


def _outside(values: tuple[int, ...]) -> Difference:
    found = compare([[record(0, "Sum", (each,), (each + 50,), line=3)] for each in values]).first
    assert found is not None
    return found


def test_the_operations_of_other_threads_that_made_a_value_are_named() -> None:
    ends = [{"starts": {"1": 0, "2": 0}}] * 2
    traces = {(0, "1"): [record(0, "Sin", (1,), (10,))], (1, "2"): [record(0, "Sin", (2,), (11,))]}
    found = find_thread_input(_outside((10, 11)), ends, lambda number, name: traces.get((number, name)))
    assert found == ThreadInput("the value that differs was made in other threads (1, 2), by Sin at train.py:7")
    assert find_thread_input(_outside((10, 12)), ends, lambda number, name: traces.get((number, name))) is None


def test_a_variable_that_another_thread_changed_is_a_race_with_who_reads_it() -> None:
    changed = {(run, "1"): [record(0, "AssignAddVariableOp", (None, 1), (11,), name="w")] for run in range(2)}
    begun = {(run, OWN): [record(0, "AssignVariableOp", (None, 1), (10,), name="w")] for run in range(2)}
    traces = {**changed, **begun}
    found = find_thread_input(
        _outside((10, 11)), [{"starts": {"1": 0}}] * 2, lambda number, name: traces.get((number, name))
    )
    assert found is not None
    assert found.race is not None
    assert (found.race.record.operation.type, found.race.groups, found.race.threads) == (
        "AssignAddVariableOp",
        (0, 1),
        2,
    )
