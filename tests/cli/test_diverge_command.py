"""`envlock diverge` as a shell sees it: wrong use, a script in fresh processes, and a function."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.divergence.zookeeper import ZOO, lines


def test_without_a_script_there_is_help(envlock: Command) -> None:
    done = envlock("diverge", "--help")
    assert done.returncode == 0
    assert "`envlock diverge SCRIPT[:FUNCTION]` is" in done.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none.py"], "error: the script none.py is not there\nhint: write SCRIPT.py, or SCRIPT.py:FUNCTION\n"),
        (
            ["a.py:f", "--format", "xml"],
            "error: there is no format `xml`\nhint: choose from: text, json, github, junit, sarif\n",
        ),
        (["a.py:f", "--html", "no/b.html"], "error: there is no folder {folder}/no\nhint: make it first\n"),
        (
            ["a.py:f", "--python", "no/python"],
            "running the program as it is: 5 runs\nerror: cannot run no/python: No such file or directory\n"
            "hint: name the interpreter of an environment, such as .venv/bin/python\n",
        ),
    ],
)
def test_wrong_use_is_told_before_anything_runs(envlock: Command, args: list[str], message: str) -> None:
    (envlock.folder / "a.py").write_text("def f():\n    return None\n")
    done = envlock("diverge", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == message.format(folder=envlock.folder)


def test_a_program_that_fails_is_no_answer(envlock: Command) -> None:
    (envlock.folder / "a.py").write_text("raise ValueError('no data\\x1b[31m')\n")
    done = envlock("diverge", "a.py", "--runs", "2", "--quiet")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == "error: run 0 of a.py failed: ValueError: no data\\x1b[31m (a.py, line 1)\n"


def test_a_script_without_tensorflow_cannot_be_compared(envlock: Command) -> None:
    (envlock.folder / "a.py").write_text("print('nothing')\n")
    done = envlock("diverge", "a.py", "--runs", "2", "--quiet")
    assert (done.returncode, done.stderr) == (2, "error: a.py does not import TensorFlow\n")


@pytest.mark.tensorflow
def test_the_order_of_a_set_shows_from_process_to_process(
    envlock: Command, tensorflow_python: Path, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    asked = ["diverge", f"{ZOO}:set_order", "--fresh", "--runs", "3", "--python", str(tensorflow_python)]
    done = envlock(*asked, "--format", "json", "--html", str(page), timeout=300)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)["attachments"]
    assert found["because"] == ["with PYTHONHASHSEED=0 that difference is gone"]
    assert found["known"]["row"] == "python-hash-randomization"
    assert found["place"]["line"] in lines("set_order")
    assert "PYTHONHASHSEED" in page.read_text()


@pytest.mark.tensorflow
def test_a_whole_script_is_run_as_it_is(envlock: Command, tensorflow_python: Path) -> None:
    script = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
x = tf.constant(np.random.rand(4))
print("loss", float(tf.reduce_sum(x * 2.0)))
"""
    (envlock.folder / "train.py").write_text(script)
    done = envlock("diverge", "train.py", "-n", "2", "--quiet", "--python", str(tensorflow_python), timeout=300)
    assert done.returncode == 1, done.stderr
    assert "came from outside TensorFlow" in done.stdout
    assert "train.py:7" in done.stdout
    assert "loss" not in done.stdout.replace('print("loss"', "")
