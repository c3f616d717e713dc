"""A golden file that does not match fails its test, and is written anew only where that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden_files import assert_as_golden


def test_a_difference_is_a_failure_that_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENVLOCK_TEST_WRITE_GOLDEN", raising=False)
    file = tmp_path / "table.txt"
    file.write_text("a\nb\n")
    with pytest.raises(AssertionError, match=r"table\.txt differs in 6 rows:\n[^$]*'\+c\\n'"):
        assert_as_golden("a\nc\n", file)
    monkeypatch.setenv("ENVLOCK_TEST_WRITE_GOLDEN", "1")
    assert_as_golden("a\nc\n", file)
    assert file.read_text() == "a\nc\n"
