"""What an image had when it was built is accepted at its start, whatever it is; any change to it is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from envlock.packages.file_verification import survey
from envlock.runtime.errors import FactError
from envlock.runtime.files import image_baseline
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.verify_files import check
from envlock.runtime.report import INFO
from tests.packages.installed import Prefix, usual
from tests.packages.test_file_verification import CASES, copied


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Prefix:
    return usual(tmp_path_factory.mktemp("pristine") / "venv")


def written(prefix: Prefix, path: Path) -> list[image_baseline.BaselineEntry]:
    """Return what a build would write down, as a start reads it."""
    found = survey(prefix.place)
    image_baseline.write(image_baseline.collect_baseline(found, check(found, {})[0]), str(path))
    return image_baseline.read(str(path))


def wrong(prefix: Prefix, rows: list[image_baseline.BaselineEntry]) -> list[Fault]:
    found = survey(prefix.place)
    return [fault for fault in image_baseline.accept(found, check(found, {})[0], rows) if fault.severity != INFO]


@pytest.mark.slow
def test_every_kind_of_fault_is_accepted_as_it_was(pristine: Prefix, tmp_path: Path) -> None:
    met = set()
    for case, act in CASES.items():
        prefix = copied(pristine, tmp_path / case)
        act(prefix.site)
        rows = written(prefix, tmp_path / "base.json")
        met |= {row.kind for row in rows}
        assert wrong(prefix, []) or not [row for row in rows if row.kind], case
        assert wrong(prefix, rows) == [], case
    assert met >= {"modified", "missing", "damaged-record", "foreign", "permission", "startup", ""}


def test_a_change_to_what_was_accepted_is_named(prefix: Prefix, tmp_path: Path) -> None:
    patched, more, plain = prefix.site / "six.py", prefix.site / "more", prefix.site / "plain"
    patched.write_text("patched = 1\n")
    more.mkdir()
    (more / "quick.py").write_text("fast = True\n")
    plain.mkdir()
    (plain / "__init__.py").write_text("")
    (prefix.site / "plain.egg-info").mkdir()  # a package without a RECORD
    rows = written(prefix, tmp_path / "base.json")
    assert wrong(prefix, rows) == []
    what = "was changed after the image was built"
    patched.write_text("patched = 2\n")
    assert wrong(prefix, rows) == [Fault("changed-after-build", str(patched), what)]
    (more / "quick.py").chmod(0o755)
    (plain / "added.py").write_text("")
    expected = [Fault("changed-after-build", str(path), what) for path in (more, plain, patched)]
    assert wrong(prefix, rows) == expected
    shutil.rmtree(more)
    more.symlink_to(plain)
    assert wrong(prefix, rows) == expected


def test_what_was_written_down_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    for text in ("[", "[1]", '[["a"]]', "{", "7"):
        path.write_text(text)
        with pytest.raises(FactError) as raised:
            image_baseline.read(str(path))
        assert raised.value.message.startswith(f"{path} cannot be read: ")


@pytest.fixture
def prefix(pristine: Prefix, tmp_path: Path) -> Prefix:
    return copied(pristine, tmp_path / "venv")
