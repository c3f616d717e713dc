"""`envlock diverge` as a shell sees it: wrong use, a script in fresh processes, and a function."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envlock.guest.target import FORMS
from envlock.reports import FORMATS
from tests.conftest import Command
from tests.evidence.diverge.animals import ZOO, lines
from tests.exhaustive import exhaustive


def test_without_a_script_there_is_help(envlock: Command) -> None:
    done = envlock("diverge", "--help")
    assert done.returncode == 0
    assert "`envlock diverge SCRIPT[:FUNCTION]` is" in done.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none.py"], f"error: the script none.py is missing\nhint: {FORMS}\n"),
        (
            ["a.py:f", "--format", "xml"],
            f"error: unknown format `xml`\nhint: choose from: {', '.join(FORMATS)}\n",
        ),
        (
            ["a.py:f", "--python", "no/python"],
            "running the program in its own mode: 5 runs\nerror: cannot run no/python: No such file or directory\n"
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
    done = envlock("diverge", "a.py", "--runs", "2")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.endswith(
        "Traceback (most recent call last):\n"
        '  File "a.py", line 1, in <module>\n'
        "    raise ValueError('no data\\x1b[31m')\n"
        "ValueError: no data\\x1b[31m\n"
        "error: run 0 of a.py failed: ValueError: no data\\x1b[31m (a.py, line 1)\n"
    )


def test_a_script_without_tensorflow_cannot_be_compared(envlock: Command) -> None:
    (envlock.folder / "a.py").write_text("print('nothing')\n")
    done = envlock("diverge", "a.py", "--runs", "2")
    hint = "hint: run `envlock diverge --help` for what can be run, and how\n"
    assert done.returncode == 2
    assert done.stderr.endswith(f"\nerror: a.py does not import TensorFlow\n{hint}")


PACKAGE = {
    "pkg/__init__.py": "",
    "pkg/util.py": "def named(x):\n    return {'x': x}\n",
    "pkg/train.py": "from .util import named\n\n\ndef step():\n    return named(1.0)\n\n\ndef wants(x):\n    pass\n",
    "pkg/broken.py": "import no_such_module\n",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "code", "message", "hint"),
    [
        (["pkg/train.py:step"], 2, "train.py cannot be imported: ImportError: attempted", "{command} pkg.train:step"),
        (["pkg/train.py"], 4, "ImportError: attempted relative import", "envlock {command} pkg.train"),
        (["pkg.none:step"], 2, "unknown module pkg.none", "in the folder that holds the package"),
        (["pkg.none"], 2, "unknown module pkg.none", "in the folder that holds the package"),
        (["pkg"], 2, "unknown module pkg.__main__", "in the folder that holds the package"),
        (["pkg.broken:step"], 2, "pkg.broken cannot be imported: ModuleNotFoundError", "--python .venv/bin/python"),
        (["pkg.train:none"], 2, "pkg.train has no function none", "envlock {command} --help"),
        (["pkg.train:wants"], 2, "the arguments x", "envlock {command} --help"),
    ],
)
def test_the_same_misuse_of_repeat_and_diverge_has_one_exit_code(
    envlock: Command, args: list[str], code: int, message: str, hint: str
) -> None:
    (envlock.folder / "pkg").mkdir()
    for name, text in PACKAGE.items():
        (envlock.folder / name).write_text(text, encoding="utf-8")
    for command in ("repeat", "diverge"):
        done = envlock(command, "-n", "2", *args)
        said = done.stdout + done.stderr
        assert (command, done.returncode) == (command, code), said
        assert message in said
        assert hint.format(command=command) in done.stderr.splitlines()[-1]


@exhaustive
@pytest.mark.tensorflow
def test_the_order_of_a_set_shows_from_process_to_process(envlock: Command, tensorflow_python: Path) -> None:
    asked = ["diverge", f"{ZOO}:set_order", "--fresh", "--runs", "3", "--python", str(tensorflow_python)]
    done = envlock(*asked, "--format", "json", timeout=300)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)["attachments"]
    loop = min(lines("set_order")) - 1
    # The loop over the set is named first where the words at its first turn differ in all three runs.
    *made, gone = found["because"]
    assert gone == "with PYTHONHASHSEED=0, the difference is gone"
    assert made in (
        [],
        [f"of all statements before it, zoo.py:{loop} read the same in all runs and left something else"],
    )
    assert found["known"]["row"] == "python-hash-randomization"
    assert found["place"]["line"] in lines("set_order")


FAILING = """
import itertools
import random
import tensorflow as tf
from .util import named

def stops():
    for step in range(5):
        if step == 3:
            raise ValueError("no data at step 3")
        yield named(tf.reduce_sum(tf.ones([4]) * float(step)))

def draws():
    for step in range(5):
        if step == 3:
            raise ValueError("no data at step 3")
        yield named(tf.constant([random.random() if step == 2 else 1.0, 2.0]) * 3.0)
"""


@exhaustive
@pytest.mark.tensorflow
@pytest.mark.parametrize(("function", "code", "rules"), [("stops", 4, []), ("draws", 1, ["outside"])])
def test_runs_that_fail_are_compared_until_then(
    function: str, code: int, rules: list[str], envlock: Command, tensorflow_python: Path
) -> None:
    (envlock.folder / "pkg").mkdir()
    for name, text in {**PACKAGE, "pkg/train.py": FAILING}.items():
        (envlock.folder / name).write_text(text, encoding="utf-8")
    asked = [f"pkg.train:{function}", "-n", "2", "--python", str(tensorflow_python), "-f", "json"]
    done = envlock("diverge", *asked, timeout=300)
    assert done.returncode == code, done.stderr
    report = json.loads(done.stdout)
    assert [each["rule"] for each in report["findings"]] == [*rules, "run-failed"]
    (failure,) = report["attachments"]["failures"]
    assert (failure["runs"], failure["message"][:30]) == (["0", "1"], "ValueError: no data at step 3 ")
    assert [line for line in failure["traceback"].splitlines() if f"in {function}" in line]
    assert report["attachments"]["levels"][0]["steps"] == 3


@exhaustive
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
    done = envlock("diverge", "train.py", "-n", "2", "--python", str(tensorflow_python), timeout=300)
    assert done.returncode == 1, done.stderr
    assert "from outside TensorFlow" in done.stdout
    assert "train.py:7" in done.stdout
    assert "loss" not in done.stdout.replace('print("loss"', "")
