"""Some of the programs that were written before anybody looked at how verdicts come about; the tool asks about all."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.reports import render
from tests.evidence.diverge.animals import (
    FRESH,
    FRESH_CLEAN,
    GRAPH_ZOO,
    LOOP_ZOO,
    OBJECT_ZOO,
    PIPELINE_ZOO,
    SCRIPT_ZOO,
    STREAM_ZOO,
    TRAINING_ZOO,
    lines,
)
from tests.evidence.diverge.zookeeper import keeper
from tests.exhaustive import exhaustive, first

RUNS = 4
SOME = {
    PIPELINE_ZOO: ("interleave_order", "cached_noise", "clean_slow_map"),
    SCRIPT_ZOO: ("object_ids", "odd_microsecond", "clean_checkpoint", "clean_stopwatch"),
    TRAINING_ZOO: ("saved_shuffled", "helper_split", "fed_by_threads"),
    STREAM_ZOO: ("ragged_batches", "sparse_rows", "resumed_iterator", "towers", "clean_iterator"),
    OBJECT_ZOO: ("vectorized", "noisy_loss", "fit_until", "clean_alarmed"),
    LOOP_ZOO: ("replayed", "named_run", "enqueued", "clean_gathered"),
    GRAPH_ZOO: (
        *("free_generator", "stale_reader", "thread_branch", "queue_of_tensors", "mirrored_shuffle"),
        *("clean_counter", "clean_normalized", "clean_noise_unused"),
    ),
}


@exhaustive
@pytest.mark.tensorflow
@pytest.mark.parametrize("zoo", first(1, SOME), ids=lambda zoo: zoo.stem)
def test_causes_are_named_with_their_lines_and_clean_programs_are_identical(
    zoo: Path, tensorflow_python: Path, tmp_path: Path
) -> None:
    animals = {each.name: each for each in (*FRESH, *FRESH_CLEAN)}
    with keeper(tensorflow_python, tmp_path) as keeping:
        said = {name: keeping.ask(name, runs=RUNS, zoo=zoo) for name in SOME[zoo]}
    right = {
        name: report.match if name.startswith("clean") else animals[name].is_right(report)
        for name, report in said.items()
    }
    assert [render(said[name]) for name, is_right in right.items() if not is_right] == []
    made = {name: report.attachments["maker"] for name, report in said.items() if not report.match}
    for name, maker in made.items():
        wanted = lines(f"{name}: maker", zoo)
        assert not wanted or (maker is not None and maker["place"]["line"] in wanted), render(said[name])
    if zoo == GRAPH_ZOO:
        tried = said["queue_of_tensors"].attachments["because"][-1]
        assert tried.startswith("the value that differs was made in other threads (")
        (line,) = lines("queue_of_tensors: loaded", zoo)
        assert tried.endswith(f"by Sin at graph_zoo.py:{line}")
        (line,) = lines("clean_noise_unused: drawn", zoo)
        assert said["clean_noise_unused"].notes[0] == (
            "not the same in every run, and nothing that the runs show or compute follows from it: "
            f"RandomUniform at graph_zoo.py:{line}"
        )


def test_every_program_has_its_lines_and_its_place() -> None:
    assert [each.name for each in FRESH if not lines(each.name, each.zoo)] == []
    assert [each.name for each in (*FRESH, *FRESH_CLEAN) if f"def {each.name}()" not in each.zoo.read_text()] == []
    assert (len(FRESH), len(FRESH_CLEAN)) == (53, 9)
