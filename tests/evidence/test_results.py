"""Saved results are read as they were written, and never believed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envlock.evidence.results import Value, read
from envlock.runtime.errors import UsageError

DIGEST = "ab" * 32
HEADER = {"envlock_repeat": 1, "created_by": "envlock 0.1.0", "target": "train.py:step", "runs": 3}
STEP = {"run": 0, "step": 2, "values": {"loss": ["float32", [2, 3], DIGEST]}}
END = {"run": 0, "end": "finished", "seconds": 1.5}


def write(folder: Path, *lines: Any, tail: str = "") -> Path:
    (folder / "runs.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines) + tail, encoding="ascii")
    return folder


def test_what_was_written(tmp_path: Path) -> None:
    failed = {"run": 1, "end": "failed", "message": "ValueError: mine"}
    results = read(write(tmp_path, HEADER, STEP, END, failed, {"environment": {"python": "3.11.7"}}), "A")
    assert [(run.label, run.end) for run in results.runs] == [("A0", "finished"), ("A1", "failed")]
    assert results.runs[0].steps == {2: {"loss": Value("float32", (2, 3), DIGEST)}}
    assert (results.runs[0].seconds, results.runs[1].message) == (1.5, "ValueError: mine")
    assert ([run.label for run in results.finished], [run.label for run in results.failed]) == (["A0"], ["A1"])
    assert (results.wanted, results.target, results.environment) == (3, "train.py:step", {"python": "3.11.7"})
    assert results.runs[0].steps[2]["loss"].width == 4


def test_a_line_that_was_not_finished_is_nothing(tmp_path: Path) -> None:
    results = read(write(tmp_path, HEADER, STEP, END, tail='{"run": 1, "step'))
    assert [run.label for run in results.runs] == ["0"]


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path / "none")
    assert caught.value.message == f"cannot read the results in {tmp_path}/none: No such file or directory"
    assert caught.value.hint == "name a folder written by `envlock repeat --save`"


def test_a_newer_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(write(tmp_path, {**HEADER, "envlock_repeat": 2}))
    assert caught.value.message == f"the results in {tmp_path} have format 2; this envlock reads 1"


@pytest.mark.parametrize(
    "line",
    [
        {"run": 0, "step": 0, "values": {"loss": ["float32", [], "../../etc/passwd"]}},
        {"run": 0, "step": 0, "values": {"loss": ["float32\x1b[31m", [], DIGEST]}},
        {"run": 0, "step": 0, "values": {"loss": ["float32", [-1], DIGEST]}},
        {"run": 0, "step": 0, "values": {"loss": ["float32", [True], DIGEST]}},
        {"run": 0, "step": 0, "values": {"loss": ["float32", []]}},
        {"run": 0, "step": "x", "values": {}},
        {"run": 0, "end": "perhaps"},
        {"run": None, "end": "finished"},
        {"run": float("inf"), "end": "finished"},
        {"run": 0, "step": float("inf"), "values": {}},
        {"run": 0, "end": "failed", "message": 5},
        {"run": 0, "end": "finished", "seconds": "long"},
        {"other": 1},
        [],
        "text",
        None,
    ],
)
def test_damage(line: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(write(tmp_path, HEADER, line))
    assert caught.value.message == f"the results in {tmp_path} are damaged: invalid runs.jsonl"


@settings(max_examples=200)
@given(st.binary(max_size=40), st.integers(0, 400))
def test_no_damage_ends_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int) -> None:
    folder = write(tmp_path_factory.mktemp("noise"), HEADER, STEP, END)
    data = (folder / "runs.jsonl").read_bytes()
    (folder / "runs.jsonl").write_bytes(data[:place] + noise + data[place + len(noise) :])
    try:
        results = read(folder)
    except UsageError:
        return
    for run in results.runs:
        for values in run.steps.values():
            assert all(len(value.digest) == 64 and value.kind.isprintable() for value in values.values())
