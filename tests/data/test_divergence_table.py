"""The table of operations that give another result: of one mind with the determinism tables, and of real operations."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from envlock.data.determinism import get_source, load_operations
from tests.exhaustive import exhaustive

PROGRAM = """
import json, sys
from tensorflow.python.framework import op_def_registry
import tensorflow
print(json.dumps([name for name in json.loads(sys.argv[1]) if op_def_registry.get(name) is None]))
"""
NOT_REGISTERED_EVERYWHERE = {"_FusedMatMul"}
"""A remapped operation, whose definition Python does not hand out."""


def test_every_row_names_a_row_of_the_determinism_table() -> None:
    assert [row.source for row in load_operations() if get_source(row.source).id != row.source] == []


def test_no_operation_has_two_rows_for_one_condition() -> None:
    counted = Counter((kind, row.when) for row in load_operations() for kind in row.types)
    assert [key for key, number in counted.items() if number > 1] == []


def test_no_row_stands_behind_one_that_always_holds() -> None:
    always: set[str] = set()
    for row in load_operations():
        assert always & set(row.types) == set()
        always |= set(row.types) if row.when == "any" else set()


@exhaustive
@pytest.mark.tensorflow
def test_they_are_operations_of_tensorflow(tensorflow_python: Path) -> None:
    wanted = sorted({kind for row in load_operations() for kind in row.types} - NOT_REGISTERED_EVERYWHERE)
    command = [str(tensorflow_python), "-c", PROGRAM, json.dumps(wanted)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(done.stdout) == []
