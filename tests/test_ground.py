"""What every other test stands on. While this is red nothing else is run: one missing step would turn hundreds red."""

from __future__ import annotations

import pytest

from tests import ground


def test_tables_models_and_programs_agree() -> None:
    found = ground.problems()
    if found:
        pytest.fail("nothing else was run, as these do not agree:\n  " + "\n  ".join(found), pytrace=False)
