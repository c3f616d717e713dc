"""What an earlier version wrote, this one reads: a whole lockfile of each `lock_version`, as it was written then."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.lock.document import dump, load
from envlock.lock.models import Lockfile
from envlock.runtime.collectors import Snapshot
from envlock.runtime.judgement import judge
from envlock.runtime.lockfile import LOCK_VERSION

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "lockfiles"
FILES = sorted(FOLDER.iterdir(), key=lambda path: int(path.stem))


def test_there_is_a_lockfile_of_each_version() -> None:
    assert [path.name for path in FILES] == [f"{number}.lock" for number in range(1, LOCK_VERSION + 1)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_is_read_as_a_lockfile_of_today(path: Path) -> None:
    lock = load(path)
    assert lock.lock_version == LOCK_VERSION
    fields = {field.alias or name for name, field in Lockfile.model_fields.items()}
    if path == FILES[-1]:
        assert dump(lock) == path.read_bytes(), "the newest is written as it is today"
        assert set(lock.to_document()) == fields, "every section is in it"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_matches_the_environment_that_it_describes(path: Path) -> None:
    document = load(path).to_document()
    report = judge(document, Snapshot(document["facts"], document["unavailable"], []))
    assert (report.match, report.exit_code) == (True, 0), report.to_text()
