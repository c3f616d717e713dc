"""The tags of a run: always an answer, never an error. MLflow itself is in test_hosts.py."""

from __future__ import annotations

from pathlib import Path

import pytest

import envlock
from envlock.integrations.mlflow import LockContext
from envlock.lock.creation import capture
from envlock.lock.document import dump

ONEDNN = "TF_ENABLE_ONEDNN_OPTS"


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the lockfile of this environment, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(ONEDNN, raising=False)
    path = tmp_path / "envlock.lock"
    path.write_bytes(dump(capture()))
    return path


def test_a_run_says_where_it_runs(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tags = {
        "envlock.lock": envlock.cite(lock),
        "envlock.match": "true",
        "envlock.verdict": "matches under policy strict",
    }
    assert (LockContext().in_context(), LockContext().tags()) == (True, tags)
    monkeypatch.setenv(ONEDNN, "0")
    verdict = "does not match under policy strict: 1 fact differs"
    assert LockContext().tags() == {**tags, "envlock.match": "false", "envlock.verdict": verdict}


def test_what_is_not_looked_at_is_not_said(
    lock: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENVLOCK_MODE", "off")
    assert LockContext().tags() == {"envlock.lock": envlock.cite(lock)}
    assert capsys.readouterr().err == "envlock: warning: ENVLOCK_MODE=off, the environment is not verified\n"


def test_no_lockfile_is_no_tag_and_a_broken_one_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    assert LockContext().tags() == {}
    (tmp_path / "envlock.lock").write_text("[]")
    with pytest.raises(envlock.LockfileError) as caught:
        envlock.cite()
    said = LockContext().tags()
    assert said == {"envlock.error": str(caught.value).replace(f"{tmp_path}/", "")}
    assert str(tmp_path) in str(caught.value)
    assert "/" not in said["envlock.error"].partition("hint:")[0], "no folder, which can have the name of a user"
