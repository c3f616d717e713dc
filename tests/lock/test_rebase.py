"""Two commands write one lockfile: neither loses what the other has changed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.lock.document import load, save
from envlock.lock.rebase import apply_changes
from envlock.runtime.errors import WriteError
from tests.conftest import Command
from tests.locks import document, encode

NAMES = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["exact", "ignore", "superset"]))


def with_overrides(overrides: dict[str, str]) -> dict[str, Any]:
    return document(policy={"name": "strict", "overrides": overrides})


@given(NAMES, NAMES, NAMES)
def test_each_override_is_the_one_that_a_command_has_changed(
    read: dict[str, str], ours: dict[str, str], theirs: dict[str, str]
) -> None:
    merged: Any = apply_changes(*map(with_overrides, (read, ours, theirs)))
    found = merged["policy"]["overrides"]
    for name in "abc":
        wanted = theirs.get(name) if ours.get(name) == read.get(name) else ours.get(name)
        assert found.get(name) == wanted


def test_facts_are_of_one_command_as_a_whole_and_what_was_made_of_other_facts_goes() -> None:
    read = {**document(), "numerics": {"battery": 1}}
    ours = {**read, "facts": {"python": {"version": "3.12"}}, "numerics": {"battery": 2}}
    theirs = {**read, "facts": {"python": {"implementation": "pypy"}}, "base_image": {"name": "x"}}
    assert apply_changes(read, ours, theirs) == {**ours, "base_image": {"name": "x"}}
    read, theirs = {**read, "image": {"base": "x"}}, {**theirs, "image": {"base": "x"}}
    assert not {"numerics", "image"}.intersection(apply_changes(read, {**read, "facts": ours["facts"]}, theirs))


def test_two_commands_at_once_both_write_what_they_say(envlock: Command, tmp_path: Path) -> None:
    """Both said that they wrote the lockfile, and one of two overrides was lost, in three trials of three."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "envlock.lock").write_bytes(encode(document()))
    names = ["six", "wrapt", "joblib"]
    started = [
        subprocess.Popen(
            [*envlock.argv, "ignore", f"packages.{name}", "--reason", "a reason"],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name in names
    ]
    assert [child.wait(60) for child in started] == [0, 0, 0]
    wanted = {f"packages.{name}": "ignore" for name in names}
    assert load(tmp_path / "envlock.lock").policy.overrides == wanted
    settings = (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f'"{path}"' in settings for path in wanted)


def test_what_was_removed_meanwhile_is_written_again(tmp_path: Path) -> None:
    file = tmp_path / "envlock.lock"
    file.write_bytes(encode(document()))
    lock = load(file)
    file.unlink()
    save(lock, file, lock)
    assert load(file) == lock


@pytest.mark.parametrize("aim", ["../victim.txt", "../nothing", "../other.lock", "notes.txt"])
def test_a_link_that_a_repository_carries_replaces_no_file_of_the_user(aim: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").touch()
    (project / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "victim.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "other.lock").write_bytes(encode(document()))
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    lock = load(tmp_path / "other.lock")
    link = project / "envlock.lock"
    link.symlink_to(aim)
    with pytest.raises(WriteError) as caught:
        save(lock, link)
    target = (project / aim).resolve()
    why = f"it is a symbolic link to {target}, which is not a lockfile of the project {project}"
    assert caught.value.message == f"cannot write lockfile {link}: {why}"
    assert {file: file.read_bytes() for file in before} == before
    assert not (tmp_path / "nothing").exists()


def test_a_link_to_a_lockfile_of_the_project_is_followed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "cpu.lock").write_bytes(encode(document()))
    (tmp_path / "envlock.lock").symlink_to("locks/cpu.lock")
    lock = load(tmp_path / "envlock.lock")
    save(lock, tmp_path / "envlock.lock")
    assert (tmp_path / "envlock.lock").is_symlink()
    assert load(tmp_path / "locks" / "cpu.lock") == lock


def test_a_section_that_one_side_does_not_have_is_not_pieced_together() -> None:
    read, ours, theirs = document(), document(project={"name": "ours"}), document(project={"name": "theirs"})
    assert apply_changes(read, ours, theirs)["project"] == {"name": "ours"}
