"""`envlock diverge record` and `compare`: what they print, where they write, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envlock.evidence.diverge.trace import Record, Value
from envlock.guest.target import FORMS
from tests.conftest import Command
from tests.evidence.diverge.traces import op, value, write

RUN: list[Record | Value] = [op("Relu", 3, [1], [2]), op("MatMul", 4, [2], [3]), value("loss", 9)]
OTHER: list[Record | Value] = [op("Relu", 3, [1], [2]), op("MatMul", 4, [2], [5]), value("loss", 8)]


def test_the_same_bits_are_0_and_other_bits_are_1(envlock: Command, tmp_path: Path) -> None:
    for name, run in (("a", RUN), ("b", RUN), ("c", OTHER)):
        write(tmp_path / f"{name}.trace", run)
    same, other = (
        envlock("diverge", "compare", "a.trace", "b.trace"),
        envlock("diverge", "compare", "a.trace", "c.trace"),
    )
    assert (same.returncode, same.stderr, other.returncode, other.stderr) == (0, "", 1, "")
    assert same.stdout == (
        "the same bits: A a.trace (TensorFlow 2.21.0) and B b.trace (TensorFlow 2.21.0)\n"
        "  3 pairs of entries of 1 step compared\n"
        "    all operations gave the same bits\n"
    )
    assert "      where: train.py:4 in step, step 0\n" in other.stdout


def test_json_for_programs(envlock: Command, tmp_path: Path) -> None:
    write(tmp_path / "a.trace", RUN)
    write(tmp_path / "c.trace", OTHER)
    done = envlock("diverge", "compare", "a.trace", "c.trace", "--format", "json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["match"], found["command"]) == (1, False, "diverge compare")
    assert found["attachments"]["first"]["a"]["type"] == "MatMul"
    (finding,) = found["findings"]
    assert finding["where"] == {"file": "train.py", "line": 4, "function": "step", "operation": "MatMul"}


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("github", "::error file=train.py,line=4,title="),
        ("junit", '<?xml version="1.0" encoding="utf-8"?>\n<testsuites tests="1" failures="1"'),
        ("sarif", '{\n  "$schema": "https://docs.oasis-open.org/sarif/'),
    ],
)
def test_the_other_formats(form: str, start: str, envlock: Command, tmp_path: Path) -> None:
    write(tmp_path / "a.trace", RUN)
    write(tmp_path / "c.trace", OTHER)
    done = envlock("diverge", "compare", "a.trace", "c.trace", "-f", form)
    assert (done.returncode, done.stderr, done.stdout[: len(start)]) == (1, "", start)


def test_a_trace_that_cannot_be_read_is_3(envlock: Command, tmp_path: Path) -> None:
    write(tmp_path / "a.trace", RUN)
    (tmp_path / "b.trace").write_bytes((tmp_path / "a.trace").read_bytes()[:-12])
    missing, broken = (
        envlock("diverge", "compare", "a.trace", "no"),
        envlock("diverge", "compare", "a.trace", "b.trace"),
    )
    assert (missing.returncode, missing.stdout) == (3, "")
    assert missing.stderr == "error: trace no cannot be read: No such file or directory\nhint: check the path\n"
    assert (broken.returncode, broken.stdout) == (3, "")
    assert broken.stderr == (
        "error: trace b.trace is truncated: it has no end\nhint: record it again, or copy it again: the run crashed, "
        "or the copy is incomplete\n"
    )


def test_what_cannot_be_recorded_leaves_no_file(envlock: Command, tmp_path: Path) -> None:
    nowhere = envlock("diverge", "record", "train.py", "-o", "no/a.trace")
    assert (nowhere.returncode, nowhere.stderr) == (
        2,
        f"error: folder not found: {tmp_path}/no\nhint: create it first\n",
    )
    script = envlock("diverge", "record", "train.py", "-o", "a.trace")
    assert (script.returncode, list(tmp_path.iterdir())) == (2, [])
    assert script.stderr == f"error: the script train.py is missing\nhint: {FORMS}\n"
    (tmp_path / "train.py").write_text("import tensorflow\n")
    without = envlock("diverge", "record", "train.py", "-o", "a.trace")
    assert without.returncode != 0
    assert [each.name for each in tmp_path.iterdir()] == ["train.py"]
    assert without.stderr.splitlines()[-2] == "ModuleNotFoundError: No module named 'tensorflow'"
    assert "this is a bug in envlock" not in without.stderr


def test_a_script_named_like_a_command_is_still_a_script(envlock: Command) -> None:
    done = envlock("diverge", "./record")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: the script record is missing")
