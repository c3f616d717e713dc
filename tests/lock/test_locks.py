"""What a report calls the lockfile of a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.lock.locks import get_subject


def test_a_lockfile_below_the_current_folder_is_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert get_subject(tmp_path / "a/x.lock") == "a/x.lock"
    assert get_subject("/elsewhere/x.lock") == "/elsewhere/x.lock"
    assert (get_subject(b"{}"), get_subject(None)) == ("envlock.lock", "envlock.lock")
