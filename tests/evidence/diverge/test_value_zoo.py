"""Values that Python, NumPy, files and threads make: the line that made them, and programs without a cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.reports import render
from tests.evidence.diverge.animals import lines
from tests.evidence.diverge.zookeeper import keeper
from tests.exhaustive import exhaustive

ZOO = Path(__file__).with_name("value_zoo.py")
RUNS = 4
SOME = ("clock_seed", "shuffled_by_sql", "appended_by_threads", "awaited", "keras_seed_by_clock", "busy_waiting")
OTHERS = (
    *("sorted_by_age", "rate_by_clock", "microsecond_seed", "age_as_scale", "told_by_a_child", "read_from_a_device"),
    *("uptime", "named_by_time", "as_many_as_time_allows", "shared_generator", "counted_garbage", "seed_of_a_helper"),
    *("queued", "seed_of_tensorflow", "weak_order", "keyed_by_default", "returned_from_a_with"),
)
FRESH = ("set_of_words", "seeded_by_address", "hashed_buckets", "vocabulary")
CLEAN = (
    *("clean_printed_clock", "clean_deadline", "clean_numbers_of_a_set", "clean_slots", "clean_query"),
    *("clean_address_as_key", "clean_filled", "clean_seeded_fit"),
)


def find_wrong(python: Path, folder: Path, names: tuple[str, ...], *, fresh: bool = False) -> list[str]:
    """Return the reports that do not name the line that makes the value."""
    wrong = []
    with keeper(python, folder) as keeping:
        for name in names:
            report = keeping.ask(name, runs=RUNS, zoo=ZOO, fresh=fresh)
            maker = report.attachments["maker"]
            if name.startswith("clean"):
                is_right = report.match
            else:
                is_right = maker is not None and maker["place"]["line"] in lines(f"{name}: maker", ZOO)
            if not is_right:
                wrong.append(f"{name}\n{render(report)}")
    return wrong


@exhaustive
@pytest.mark.tensorflow
def test_lines_that_make_a_value_are_named(tensorflow_python: Path, tmp_path: Path) -> None:
    assert find_wrong(tensorflow_python, tmp_path, (*SOME, "clean_deadline")) == []


@exhaustive
@pytest.mark.tensorflow
@pytest.mark.parametrize("names", [OTHERS, CLEAN], ids=["others", "clean"])
def test_further_lines_are_named_and_clean_programs_are_identical(
    names: tuple[str, ...], tensorflow_python: Path, tmp_path: Path
) -> None:
    assert find_wrong(tensorflow_python, tmp_path, names) == []


@exhaustive
@pytest.mark.tensorflow
def test_between_processes_too(tensorflow_python: Path, tmp_path: Path) -> None:
    assert find_wrong(tensorflow_python, tmp_path, FRESH, fresh=True) == []


def test_every_program_has_its_line() -> None:
    text = ZOO.read_text()
    assert [name for name in (*SOME, *OTHERS, *FRESH) if not lines(f"{name}: maker", ZOO)] == []
    assert [name for name in (*SOME, *OTHERS, *FRESH, *CLEAN) if f"def {name}()" not in text] == []
