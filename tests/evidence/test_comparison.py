"""Where runs first differ, and which are alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from envlock.evidence.results import Run, Value, collect_quantities, find_first, group_runs, iter_differing, list_steps


def run(label: str, *steps_: dict[str, int]) -> Run:
    """Return a run whose values are told apart by a number."""
    made = {
        n: {name: Value("float32", (), f"{value:064x}") for name, value in step.items()}
        for n, step in enumerate(steps_)
    }
    return Run(label, made, "finished")


def test_the_first_quantity_in_the_order_of_recording() -> None:
    a = run("0", {"loss": 1, "w/0": 2, "w/1": 3}, {"loss": 4, "w/0": 5, "w/1": 6})
    b = run("1", {"loss": 1, "w/0": 2, "w/1": 9}, {"loss": 8, "w/0": 5, "w/1": 6})
    found = find_first([a, a, b])
    assert found is not None
    assert (found.step, found.name, found.members, found.differing) == (0, "w", ("w/0", "w/1"), ["w/1"])
    assert (found.classes, found.distinct) == ((0, 0, 1), 2)
    assert [(each.step, each.name) for each in iter_differing([a, b])] == [(0, "w"), (1, "loss")]
    assert find_first([a, a]) is None


def test_a_quantity_or_a_step_that_is_missing_differs() -> None:
    whole, short = run("0", {"a": 1, "b": 2}, {"a": 3}), run("1", {"a": 1})
    assert [(each.step, each.name, each.classes) for each in iter_differing([whole, short])] == [
        (0, "b", (0, 1)),
        (1, "a", (0, 1)),
    ]
    assert [(each.step, each.name) for each in iter_differing([short, whole])] == [(0, "b"), (1, "a")]
    assert list_steps([short, whole]) == [0, 1]
    assert [each.distinct for each in collect_quantities([whole, short], 0)] == [1, 2]


numbers = st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=1, max_size=6)


@given(numbers)
def test_groups_and_the_first_difference_agree(rows: list[list[int]]) -> None:
    runs = [run(str(n), *({"x": value} for value in row)) for n, row in enumerate(rows)]
    found = group_runs(runs)
    assert sorted(label for group in found for label in group) == sorted(run.label for run in runs)
    assert len(found) == len({tuple(row) for row in rows})
    assert [len(group) for group in found] == sorted((len(group) for group in found), reverse=True)
    where = next((step for step in range(3) if len({row[step] for row in rows}) > 1), None)
    earliest = find_first(runs)
    assert (earliest.step if earliest else None) == where
    assert (earliest is None) == (len(found) == 1)
