"""Input files: what a deep look has read is known to the next one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.runtime import data_contents
from envlock.runtime.data_files import survey
from envlock.runtime.lockfile import read_file
from envlock.runtime.report import Report
from envlock.workflows.verify import _add_data
from tests.locks import document, encode


def test_the_remedy_of_data_that_was_not_read_can_be_obeyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(data_contents, "SETTLED", -(10**12))
    (tmp_path / "pyproject.toml").write_text("[tool.envlock]\n")
    (tmp_path / "a.csv").write_bytes(b"1,2\n")
    found = survey(str(tmp_path / "a.csv"))
    assert found is not None
    entry = found.to_json(data_contents.read_contents(str(tmp_path / "a.csv"), found))
    lock = tmp_path / "envlock.lock"
    lock.write_bytes(encode(document(data={"a.csv": entry}, policy={"name": "strict", "overrides": {"data": "exact"}})))
    question: Any = SimpleNamespace(document=read_file(str(lock)), lock=lock, policy=None, overrides=None)

    def judge(*, deep: bool) -> Report:
        return _add_data(Report([], policy="strict"), question, deep=deep)

    cheap = judge(deep=False)
    assert cheap.headline == "matches under policy strict, with data by names and sizes only"
    assert [finding.fix.partition(" here")[0] for finding in cheap.findings] == ["Run `envlock verify --deep`"]
    assert judge(deep=True).headline == "matches under policy strict"
    obeyed = judge(deep=False)
    assert (obeyed.headline, obeyed.notes) == ("matches under policy strict", ["data: a.csv as locked"])
    (tmp_path / "a.csv").write_bytes(b"1,9\n")
    assert judge(deep=False).headline == cheap.headline
