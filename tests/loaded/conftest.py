"""The captured environment that the tests of what is loaded begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command
from tests.loaded.environment import Environment


@pytest.fixture
def environment(envlock: Command, tmp_path: Path) -> Environment:
    made = Environment(envlock, tmp_path)
    done = made.run("capture")
    assert done.returncode == 0, done.stderr
    return made
