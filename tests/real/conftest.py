"""The lane with a real TensorFlow: its environment holds envlock as a wheel, as a user has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command, activate

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.tensorflow)


@pytest.fixture
def python(tensorflow_python: Path, tmp_path: Path) -> Command:
    """Return the interpreter with TensorFlow, run in an empty folder."""
    return Command([str(tensorflow_python)], tmp_path)


@pytest.fixture
def cli(tensorflow_python: Path, tmp_path: Path) -> Command:
    """Return the command line, run in the same empty folder where that environment is active."""
    return activate(tensorflow_python, tmp_path)


@pytest.fixture
def lock(cli: Command) -> dict[str, Any]:
    """Return the lock that `envlock capture` has written into the folder."""
    done = cli("capture", "--quiet")
    assert (0, "") == (done.returncode, done.stderr)
    document: dict[str, Any] = json.loads((cli.folder / "envlock.lock").read_bytes())
    return document
