"""What counts as the source of an editable install, and when it is read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from envlock.runtime import source_files
from envlock.runtime.collectors.packages import collect
from envlock.runtime.data_contents import NOTES, name_note, render_note
from envlock.runtime.data_files import Survey
from envlock.runtime.distributions import find_distributions
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.judgement import verify
from envlock.runtime.source_files import survey_source
from tests.locks import document
from tests.machines import distribution, machine, write

FLAT = {"pyproject.toml": "", "mine/__init__.py": "", "mine/weights.bin": "1"}
COUNTED = ["mine/__init__.py", "mine/weights.bin"]


def install(folder: Path, files: dict[str, str], root: str = "", **variables: str) -> Host:
    """Return a machine with a project that a line of a .pth file adds to the import path."""
    project = write(folder / "project", dict(files))
    site = write(folder / "site-packages", {"mine.pth": f"{project / root}\n"})
    origin = {"url": project.as_uri(), "dir_info": {"editable": True}}
    distribution(site, "mine", "1.0", {"RECORD": "mine.pth,,\n", "direct_url.json": json.dumps(origin)})
    return machine(folder / "root", site=site, environ=variables)


def counted(folder: Path, files: dict[str, str], root: str = "") -> list[str]:
    found = survey(folder, install(folder, files, root))
    return [os.fsdecode(file.name) for file in found.files]


def survey(folder: Path, host: Host) -> Survey:
    found = survey_source(find_distributions(host)["mine"], str(folder / "project"))
    assert isinstance(found, Survey)
    return found


@pytest.mark.parametrize(
    "extra",
    [
        *("data/train.csv", "results.txt", "README.md", "docs/index.md", "envlock.lock", "logs/events.out"),
        *("mine/__pycache__/a.pyc", ".git/HEAD", ".venv/lib/x.py", ".mypy_cache/x.py", "mine/.ipynb_checkpoints/a.py"),
        *("mine.egg-info/PKG-INFO", "build/lib/mine/__init__.py", "node_modules/a/b.py", "mine/old.py~"),
        *("my-script.py", "no-package/a.py", "mine/site-packages/six.py"),
    ],
)
def test_what_no_import_reaches_does_not_count(extra: str, tmp_path: Path) -> None:
    assert counted(tmp_path, {**FLAT, extra: "x"}) == COUNTED


@pytest.mark.parametrize(
    "extra",
    [
        *("other.py", "ext.cpython-311-x86_64-linux-gnu.so", "tools/helper.py", "ns/inner/__init__.py", "alone.pyc"),
        *("mine/data/table.csv", "mine/deep/er/model.h5", "build/__init__.py", "data/loader.py"),
    ],
)
def test_what_an_import_reaches_counts(extra: str, tmp_path: Path) -> None:
    assert counted(tmp_path, {**FLAT, extra: "x"}) == sorted([*COUNTED, extra])


def test_an_environment_in_the_project_does_not_count(tmp_path: Path) -> None:
    files = {**FLAT, "env/pyvenv.cfg": "", "env/lib/x.py": "", "conda/conda-meta/history": "", "conda/y.py": ""}
    assert counted(tmp_path, files) == COUNTED


def test_a_folder_that_is_there_to_be_imported_counts_whole(tmp_path: Path) -> None:
    files = {"pyproject.toml": "", "src/ns/model.json": "", "src/ns/a.py": "", "tests/test_a.py": "", "a.py": ""}
    assert counted(tmp_path, files, "src") == ["ns/a.py", "ns/model.json"]


def test_bytecode_beside_its_source_does_not_count(tmp_path: Path) -> None:
    assert counted(tmp_path, {**FLAT, "mine/a.py": "", "mine/a.pyc": ""}) == [
        "mine/__init__.py",
        "mine/a.py",
        COUNTED[1],
    ]


def test_links_are_followed_and_circles_end(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", {"b.py": ""})
    host = install(tmp_path, FLAT)
    package = tmp_path / "project" / "mine"
    (package / "more").symlink_to(tmp_path / "elsewhere")
    (package / "round").symlink_to(package)
    (package / "broken.py").symlink_to(tmp_path / "nothing")
    os.mkfifo(package / "pipe.py")
    assert [os.fsdecode(file.name) for file in survey(tmp_path, host).files] == [
        COUNTED[0],
        "mine/more/b.py",
        COUNTED[1],
    ]


def test_too_many_files_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "LIMIT", 3)
    host = install(tmp_path, {**FLAT, "a.py": "", "b.py": ""})
    assert collect(host)["mine"]["source"] == Unavailable("its source has more than 3 files and folders", "too-many")


def test_where_it_lies_and_when_it_was_written_changes_nothing(tmp_path: Path) -> None:
    first, second = (collect(install(tmp_path / name, FLAT))["mine"]["source"] for name in ("a", "b"))
    assert first == second


@pytest.mark.parametrize(
    ("origin", "installer", "is_held"),
    [
        ({"url": "file:///somewhere/mine", "dir_info": {}}, "pip", True),
        ({"url": "file:///somewhere/mine-1.0.whl", "archive_info": {}}, "uv", True),
        ({"url": "file:///somewhere/mine-1.0.whl", "archive_info": {"hashes": {"sha256": "a" * 64}}}, "pip", False),
        ({"url": "file:///somewhere", "vcs_info": {"vcs": "git", "commit_id": "a" * 40}}, "pip", False),
        ({"url": "file:///home/conda/feedstock_root/work", "dir_info": {}}, "conda", False),
        ({"url": "https://example.org/mine-1.0.whl", "archive_info": {}}, "pip", False),
    ],
)
def test_the_installed_code_of_a_folder_or_file_of_this_machine(
    origin: dict[str, Any], installer: str, is_held: bool, tmp_path: Path
) -> None:
    found = []
    for digest in ("aaaa", "bbbb"):
        record = f"mine.py,sha256={digest},4\n../../../bin/mine,sha256={digest},9\nmine-1.0.dist-info/RECORD,,\n"
        files = {"direct_url.json": json.dumps(origin), "RECORD": record, "INSTALLER": installer}
        site = tmp_path / digest
        distribution(site, "mine", "1.0", files)
        found.append(collect(machine(tmp_path / "root", site=site))["mine"].get("source"))
    assert (found[0] != found[1]) is is_held


def leave_note(folder: Path, host: Host) -> Path:
    """Write a note that the source has a certain digest, as `envlock capture` does; return its file."""
    (info,) = (folder / "site-packages").glob("*.dist-info")
    note = Path(host.environ["XDG_CACHE_HOME"], "envlock", NOTES, name_note(str(info)))
    note.parent.mkdir(mode=0o700, parents=True)
    note.write_bytes(render_note(survey(folder, host).state, "sha256:" + "a" * 64))
    note.chmod(0o600)
    return note


def test_a_note_spares_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = install(tmp_path, FLAT, XDG_CACHE_HOME=str(tmp_path / "cache"))
    leave_note(tmp_path, host)
    monkeypatch.setattr(source_files, "read_source", None)
    assert collect(host)["mine"]["source"] == "sha256:" + "a" * 64


@pytest.mark.parametrize("how", ["another state", "another user's"])
def test_a_note_that_may_be_wrong_is_not_believed(how: str, tmp_path: Path) -> None:
    host = install(tmp_path, FLAT, XDG_CACHE_HOME=str(tmp_path / "cache"))
    note = leave_note(tmp_path, host)
    if how == "another state":
        (tmp_path / "project/mine/weights.bin").write_text("2")
    else:
        note.chmod(0o666)
    assert collect(host)["mine"]["source"] != "sha256:" + "a" * 64


def test_the_projects_own_source_is_not_read_for_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = install(tmp_path, FLAT)
    lock = document(project={"name": "mine"})
    monkeypatch.setattr(source_files, "survey_source", None)
    verify(lock, host=host)
    assert host.own_package == "mine"
