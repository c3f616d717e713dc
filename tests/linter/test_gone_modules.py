"""The modules that ENV109 calls gone, with a real Keras 3: each is, and what is named instead is there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from envlock.linter.names import GONE_MODULES
from tests.exhaustive import exhaustive

PROGRAM = """
import importlib, json, sys

def is_there(name):
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True

print("answer", json.dumps({name: is_there(name) for name in json.loads(sys.argv[1])}))
"""


@exhaustive
@pytest.mark.tensorflow
def test_each_is_gone_and_what_is_named_instead_is_there(tensorflow_python: Path) -> None:
    gone = set(GONE_MODULES)
    gone |= {f"tensorflow.{name}" for name in gone if name.startswith("keras.")}
    asked = json.dumps(sorted({*gone, *GONE_MODULES.values()}))
    done = subprocess.run([tensorflow_python, "-c", PROGRAM, asked], capture_output=True, text=True, check=True)
    (answer,) = (line for line in done.stdout.splitlines() if line.startswith("answer "))
    found = json.loads(answer.removeprefix("answer "))
    assert {name for name, is_there in found.items() if not is_there} == gone
