"""The commands that pages list without their output run in a project with a real TensorFlow, one after the other."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.exhaustive import first
from tests.test_executed import LISTED, list_listed
from tests.test_transcripts import ROOT, environ
from tests.transcripts import run_command

TRAIN = """
import numpy as np
import tensorflow as tf

import envlock


def step():
    tf.keras.utils.set_random_seed(1)
    return {"product": tf.linalg.matmul(tf.random.normal([8, 8]), tf.ones([8, 8]))}


def run():
    envlock.record(**step())


if __name__ == "__main__":
    run()
"""
DIFFER = re.compile(r"envlock diverge compare|envlock repeat --compare cpu")
"""What compares two runs on purpose, which may compute other bits: then the status is 1."""


@pytest.mark.tensorflow
@pytest.mark.parametrize("page", first(1, LISTED))
def test_the_commands_of_a_page_run(page: str, tmp_path: Path, tensorflow_python: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    shutil.copytree(ROOT / "examples", project / "examples")
    (project / "train.py").write_text(TRAIN, encoding="utf-8")
    for name in ("old", "new", ".venv"):
        (project / name).symlink_to(tensorflow_python.parents[1])
    variables = environ(tmp_path, str(tensorflow_python))
    commands = list_listed(page)
    assert commands
    failed = []
    for command in (
        "envlock capture -o envlock.lock && cp envlock.lock a.lock && cp a.lock b.lock",
        *commands,
    ):
        done = run_command(command, project, variables)
        allowed = (0, 1) if DIFFER.search(command) else (0,)
        if done.returncode not in allowed:
            failed.append(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    assert not failed, "\n\n".join(failed)
