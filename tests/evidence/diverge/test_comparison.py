"""Runs side by side: which difference is the first, of what kind it is, and where its inputs came from."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from envlock.evidence.diverge.comparison import AFTER, BEFORE, Entry, compare, find_origins
from envlock.evidence.diverge.trace import Operation, Place, Record, Value


def record(
    number: int,
    kind: str,
    inputs: tuple[int | None, ...],
    outputs: tuple[int | None, ...],
    *,
    name: str | None = None,
    line: int = 7,
) -> Record:
    reads = tuple("resource[]" if each is None else "float32[2]" for each in inputs)
    operation = Operation(kind, name, Place("train.py", line, "step"), reads, tuple("float32[2]" for _ in outputs))
    return Record(0, number, operation, inputs, outputs)


def test_equal_runs_have_no_difference() -> None:
    run: list[Entry] = [record(0, "Mul", (1, 2), (3,)), Value(0, "loss", 3, "float32[]")]
    found = compare([run, list(run), list(run)])
    assert (found.first, found.entries, found.runs, found.steps, found.others) == (None, 2, 3, 1, ())
    assert [each.state for each in found.timeline] == ["same", "same"]


def test_equal_inputs_and_another_output_is_the_culprit_and_what_reads_it_is_not() -> None:
    runs = [
        [record(0, "Mul", (1, 2), (3,)), record(1, "Sum", (3,), (made,)), record(2, "Exp", (made,), (made + 50,))]
        for made in (10, 11, 10)
    ]
    found = compare(runs)
    assert found.first is not None
    assert (found.first.kind, found.first.index, found.first.groups, found.first.distinct) == (
        "operation",
        1,
        (0, 1, 0),
        2,
    )
    assert [each.state for each in found.timeline] == ["same", "cause", "carried"]
    assert found.others == ()


def test_a_later_operation_that_differs_by_itself_is_told_beside() -> None:
    runs = [
        [
            record(0, "Sum", (1,), (made,)),
            record(1, "Exp", (made,), (made + 50,)),
            record(2, "Mean", (2,), (made,), line=9),
        ]
        for made in (10, 11)
    ]
    assert [each.entry for each in compare(runs).others] == [runs[0][2]]


def test_the_first_difference_is_not_told_again_at_the_next_step() -> None:
    runs = [[record(0, "Sum", (1,), (made,)), record(1, "Sum", (2,), (made + 50,))] for made in (10, 11)]
    found = compare(runs)
    assert (found.first and found.first.index, found.others) == (0, ())


def test_what_writes_a_variable_that_differs_already_is_no_cause() -> None:
    runs = [
        [
            record(0, "ResourceScatterAdd", (None, 1), (made,), name="table"),
            record(1, "AssignAddVariableOp", (None, 1), (made + 1,), name="table", line=8),
            record(2, "AssignAddVariableOp", (None, 1), (made + 2,), name="other", line=9),
        ]
        for made in (10, 20)
    ]
    found = compare(runs)
    assert found.first is not None
    assert found.first.entry is runs[0][0]
    assert [each.entry for each in found.others] == [runs[0][2]]


def test_an_input_that_no_operation_has_made_came_from_outside() -> None:
    runs = [[record(0, "Mul", (1, given), (given + 1,))] for given in (5, 6)]
    found = compare(runs).first
    assert found is not None
    assert (found.kind, found.inputs) == ("outside", (1,))


def test_data_graphs_python_functions_variables_and_values_have_kinds_of_their_own() -> None:
    kinds = {"IteratorGetNext": "data", "Call": "call", "PythonFunction": "outside", "ReadVariableOp": "variable"}
    for name, kind in kinds.items():
        found = compare([[record(0, name, (1,), (made,))] for made in (1, 2)]).first
        assert found is not None
        assert found.kind == kind
    found = compare([[Value(0, "loss", made, "float32[]")] for made in (1, 2)]).first
    assert found is not None
    assert found.kind == "quantity"


def test_other_operations_and_runs_of_other_lengths_are_another_sequence() -> None:
    short, long = [record(0, "Mul", (1,), (2,))], [record(0, "Mul", (1,), (2,)), record(1, "Sum", (2,), (3,))]
    found = compare([long, short]).first
    assert found is not None
    assert (found.kind, found.index, found.groups) == ("sequence", 1, (0, 1))
    other = compare([[record(0, "Sin", (1,), (2,))], [record(0, "Cos", (1,), (2,))]]).first
    assert other is not None
    assert other.kind == "sequence"


def test_names_count_models_and_are_no_difference() -> None:
    assert compare([[record(0, "Mul", (1,), (2,), name=name)] for name in ("dense", "dense_1")]).first is None


def test_the_origin_of_an_input_is_the_last_that_made_it() -> None:
    first = [
        record(0, "Fill", (), (1,)),
        record(1, "AssignVariableOp", (None, 1), (1,), name="table"),
        record(2, "Sin", (1,), (4,)),
        record(3, "Cos", (1,), (4,)),
        record(4, "ResourceScatterAdd", (None, 4, 9), (5,), name="table"),
    ]
    second = [*first[:4], record(4, "ResourceScatterAdd", (None, 4, 9), (6,), name="table")]
    found = compare([first, second]).first
    assert found is not None
    assert [each.made_by for each in find_origins(first, found)] == [first[1], first[3], None]


def test_memory_stays_flat_in_long_runs() -> None:
    def run(last: int) -> Iterator[Entry]:
        for number in range(20_000):
            yield record(number, "Mul", (1,), (2,))
        yield record(20_000, "Mul", (1,), (last,))
        for number in range(200):
            yield record(20_001 + number, "Mul", (last,), (last,))

    found = compare([run(3), run(4)])
    assert found.first is not None
    assert found.first.index == 20_000
    assert len(found.timeline) == BEFORE + AFTER + 1


outputs = st.lists(st.integers(0, 3), min_size=1, max_size=12)


@given(outputs, outputs)
def test_the_first_difference_is_where_the_runs_first_differ(a: list[int], b: list[int]) -> None:
    runs = [[record(number, "Mul", (1,), (each,)) for number, each in enumerate(run)] for run in (a, b)]
    expected = next((n for n in range(max(len(a), len(b))) if a[n : n + 1] != b[n : n + 1]), None)
    found = compare(runs)
    assert (found.first.index if found.first else None) == expected
    assert compare(runs[::-1]).entries == found.entries


SHOWN = Value(0, "sum", 4, "float32[]")


def test_what_differs_and_leads_to_nothing_is_idle() -> None:
    noise = [record(0, "RandomUniform", (1,), (run,)) for run in range(2)]
    shapes = [record(1, "Shape", (run,), (9,)) for run in range(2)]
    assert compare([[each, shape, SHOWN] for each, shape in zip(noise, shapes, strict=True)]).idle
    assert not compare([[each, SHOWN] for each in (noise[0], noise[0])]).idle  # nothing differs
    assert not compare([[each] for each in noise]).idle  # nothing is shown, so what it may be for is unknown
    assert not compare([[each, Value(0, "sum", run, "float32[]")] for run, each in enumerate(noise)]).idle
    assert not compare([[each, record(1, "Sin", (run,), (run + 5,)), SHOWN] for run, each in enumerate(noise)]).idle


def test_a_variable_that_holds_something_else_is_not_idle() -> None:
    assert not compare([[record(0, "AssignAddVariableOp", (None, 1), (run,)), SHOWN] for run in range(2)]).idle


def test_what_reads_something_unseen_is_no_cause_beside_the_first() -> None:
    unseen = Operation("Sum", None, Place("train.py", 9, "step"), ("float32[2]",), ("float32[]",))
    runs = [[record(0, "Exp", (1,), (made,)), Record(0, 1, unseen, (None,), (made,))] for made in range(2)]
    found = compare(runs)
    assert found.first is not None
    assert (found.first.entry, found.others) == (runs[0][0], ())


def test_another_variable_that_is_read_is_another_branch_and_another_number_in_its_name_is_not() -> None:
    def kind(*names: str) -> str | None:
        found = compare([[record(0, "ReadVariableOp", (None,), (len(each),), name=each)] for each in names]).first
        return found.kind if found else None

    assert kind("total", "count") == "sequence"
    assert kind("dense_9/kernel", "dense_10/kernel") == "variable"
    assert kind("dense_8/kernel", "dense_9/kernel") is None


def test_other_texts_that_lead_to_nothing_are_idle() -> None:
    def run(name: int, *, restored: int) -> list[Entry]:
        save = Operation("SaveV2", None, Place("train.py", 7, "step"), ("string[]", "float32[2]"), ())
        restore = Operation("RestoreV2", None, Place("train.py", 7, "step"), ("string[]",), ("float32[2]",))
        return [Record(0, 0, save, (name, 1), ()), Record(0, 1, restore, (name,), (restored,))]

    assert compare([run(1, restored=3), run(2, restored=3)]).idle
    assert not compare([run(1, restored=3), run(2, restored=4)]).idle
    numbers = [[record(0, "Sin", (each,), (9,))] for each in range(2)]
    assert not compare(numbers).idle


def test_the_same_in_another_order_is_idle_and_is_not_where_what_is_shown_comes_otherwise() -> None:
    first, second = record(0, "Cos", (1,), (2,)), record(1, "Cos", (3,), (4,))
    loss, other = Value(0, "loss", 4, "float32[]"), Value(0, "loss", 5, "float32[]")
    assert compare([[first, second, loss], [second, first, loss]]).idle
    assert not compare([[first, second, loss], [second, first, other]]).idle
    assert not compare([[first, second, loss, other], [second, first, other, loss]]).idle


def test_other_results_are_not_the_same_in_another_order_whatever_their_hashes() -> None:
    for at in range(300):  # the hash of a name is another in each process, and so is each of these
        first, second = record(0, "Cos", (1,), (2,)), record(1, "Sin", (3,), (4,))
        loss, other = Value(0, f"loss{at}", at, "float32[]"), Value(0, f"loss{at}", at + 1, "float32[]")
        assert not compare([[first, second, loss, other], [second, first, other, loss]]).reordered
        swapped = [record(0, "Cos", (1,), (4,)), record(1, "Sin", (3,), (2,))]
        assert not compare([[first, second, loss], [*swapped, loss]]).reordered


def test_a_name_that_only_its_steady_part_is_known_of_can_come_from_outside() -> None:
    runs = [
        [Record(0, 0, Operation("Hash", None, None, ("string[] (a name)",), ("int64[]",)), (1,), (made,))]
        for made in (5, 6)
    ]
    first = compare(runs).first
    assert first is not None
    assert (first.kind, first.inputs) == ("outside", (0,))
