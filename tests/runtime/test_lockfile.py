"""Find a lockfile and read it: every kind of bad input is one sentence and a hint, and nothing else happens."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from envlock.runtime.collectors import take_snapshot
from envlock.runtime.errors import LockfileError
from envlock.runtime.lockfile import (
    DEPTH_LIMIT,
    SIZE_LIMIT,
    UPGRADES,
    are_facts,
    find,
    find_outside,
    find_project,
    parse,
    read_file,
)
from tests.locks import document, encode
from tests.machines import complete

RESTORE = "restore it from version control, or create it again with `envlock capture`"
REASON = {"reason": "no way", "code": "denied"}
MAKE = "create one with `envlock capture`, or name one: `envlock verify path/to/envlock.lock`"


def problem(data: bytes) -> str:
    """Return what is wrong with the bytes of a lockfile, having compared the rest of the error."""
    with pytest.raises(LockfileError) as caught:
        parse(data, "x.lock")
    message, hint = caught.value.message, caught.value.hint
    assert (caught.value.exit_code, hint, message.isprintable()) == (3, RESTORE, True)
    assert message.startswith("lockfile x.lock is not valid: ")
    return message.removeprefix("lockfile x.lock is not valid: ")


UNREADABLE_MEMORY = pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="Linux has such a file")
"""A regular file that opens and cannot be read: nothing is at address 0."""


# --- finding


def test_the_nearest_one_of_the_project_is_found(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "envlock.lock").touch()
    (tmp_path / "pyproject.toml").touch()
    assert find(str(below)) == str(tmp_path / "envlock.lock")
    (tmp_path / "a" / "envlock.lock").touch()
    assert find(str(below)) == str(tmp_path / "a" / "envlock.lock")


PLAIN, OURS = "[project]\n", "[tool.envlock]\n"
PROJECTS: dict[str, tuple[dict[str, str], str]] = {
    "nothing says where a project begins": ({}, "a/b"),
    "a pyproject.toml": ({"pyproject.toml": PLAIN}, ""),
    "the nearest pyproject.toml": ({"pyproject.toml": PLAIN, "a/pyproject.toml": PLAIN}, "a"),
    "settings of envlock before a nearer pyproject.toml": ({"pyproject.toml": OURS, "a/pyproject.toml": PLAIN}, ""),
    "the nearest settings": ({"pyproject.toml": OURS, "a/pyproject.toml": OURS}, "a"),
    "a repository": ({".git/HEAD": "", "a/x": ""}, ""),
    "a work tree, whose .git is a file": ({"a/.git": "gitdir: /x", "pyproject.toml": PLAIN}, "a"),
    "settings above the repository": ({"a/.git/HEAD": "", "pyproject.toml": OURS}, "a"),
    "a package in a repository": ({".git/HEAD": "", "a/b/pyproject.toml": PLAIN}, "a/b"),
    "a package of a repository with settings": ({".git/HEAD": "", "a/b/setup.py": "", "pyproject.toml": OURS}, ""),
}


def test_where_a_project_begins(tmp_path: Path) -> None:
    found = {}
    for case, (files, _) in PROJECTS.items():
        root = tmp_path / case
        (root / "a" / "b").mkdir(parents=True)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        found[case] = os.path.relpath(find_project(str(root / "a" / "b")), root)
    assert found == {case: folder or "." for case, (_, folder) in PROJECTS.items()}


def test_the_lock_of_another_project_is_not_found_but_can_be_named(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    (tmp_path / "a" / ".git").mkdir(parents=True)
    below.mkdir()
    (tmp_path / "envlock.lock").touch()
    assert (find(str(below)), find_outside(str(below))) == (None, str(tmp_path / "envlock.lock"))
    (tmp_path / "a" / "envlock.lock").touch()
    assert find(str(below)) == str(tmp_path / "a" / "envlock.lock")


def test_the_lockfile_of_the_current_folder_is_not_that_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name / ".git").mkdir(parents=True)
    (tmp_path / "here" / "envlock.lock").touch()
    monkeypatch.chdir(tmp_path / "here")
    assert find(str(tmp_path / "there")) is None


def test_a_project_whose_folder_ends_in_a_space_has_its_lockfile(tmp_path: Path) -> None:
    (tmp_path / "a " / "b").mkdir(parents=True)
    for name in ("envlock.lock", "pyproject.toml"):
        (tmp_path / "a " / name).touch()
    assert find(str(tmp_path / "a " / "b")) == str(tmp_path / "a " / "envlock.lock")


@UNREADABLE_MEMORY
def test_settings_that_cannot_be_read_are_not_those_of_envlock(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "pyproject.toml").symlink_to("/proc/self/mem")
    (tmp_path / "pyproject.toml").write_text(OURS, encoding="utf-8")
    assert find_project(str(tmp_path / "a")) == str(tmp_path)


def test_a_dangling_link_is_found_so_that_it_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "envlock.lock").touch()
    below = tmp_path / "below"
    below.mkdir()
    (below / "envlock.lock").symlink_to("gone")
    assert find(str(below)) == str(below / "envlock.lock")


def test_none_is_none() -> None:
    assert find("/proc/self") is None


# --- what is no readable file


def _sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(100 * 2**20)


UNREADABLE: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "missing": (lambda path: None, "lockfile not found: {}", MAKE),
    "dangling link": (lambda path: path.symlink_to("gone"), "lockfile not found: {}", MAKE),
    "folder": (Path.mkdir, "cannot read lockfile {}: it is a folder", "name the lockfile itself"),
    "fifo": (os.mkfifo, "cannot read lockfile {}: it is not a regular file", "name the lockfile itself"),
    "endless": (
        lambda path: path.symlink_to("/dev/zero"),
        "cannot read lockfile {}: it is not a regular file",
        "name the lockfile itself",
    ),
    "circle": (
        lambda path: path.symlink_to(path.name),
        "cannot read lockfile {}: Too many levels of symbolic links",
        "remove one of the symbolic links: they form a loop",
    ),
    "100 MB": (_sparse, "lockfile {} is too large: 100 MB, limit 4 MB", "name the lockfile itself"),
    "empty": (Path.touch, "lockfile {} is not valid: it is empty", RESTORE),
}


def test_what_is_no_readable_file(tmp_path: Path) -> None:
    for kind, (make, message, hint) in UNREADABLE.items():
        path = tmp_path / kind
        make(path)
        with pytest.raises(LockfileError) as caught:
            read_file(str(path))
        assert (caught.value.message, caught.value.hint) == (message.format(path), hint)


def test_a_file_of_the_largest_size_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    path.write_bytes(encode(document()).strip().rjust(SIZE_LIMIT))
    assert read_file(str(path)) == document()


@UNREADABLE_MEMORY
def test_a_file_that_opens_and_cannot_be_read() -> None:
    with pytest.raises(LockfileError) as caught:
        read_file("/proc/self/mem")
    assert str(caught.value) == "cannot read lockfile /proc/self/mem: Input/output error\nhint: check the disk"


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    path.write_bytes(encode(document()))
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # to root, no mode forbids anything
    try:
        with pytest.raises(LockfileError) as caught:
            read_file(str(path))
    finally:
        os.seteuid(user)
    assert str(caught.value) == (
        f"cannot read lockfile {path}: Permission denied\nhint: check the path and its permissions"
    )


def test_a_name_that_is_no_path() -> None:
    for name, message in (("a\0b", "'a\\x00b': not a path"), ("x" * 300, f"{'x' * 300}: File name too long")):
        with pytest.raises(LockfileError) as caught:
            read_file(name)
        assert caught.value.message == f"cannot read lockfile {message}"
        assert (caught.value.hint or "").startswith("check the path")


def test_bytes_beyond_the_limit_are_refused_unread() -> None:
    with pytest.raises(LockfileError) as caught:
        parse(b" " * (16 * 2**20 + 1), "from stdin")
    assert caught.value.message == "lockfile from stdin is too large: more than 4 MB, limit 4 MB"


# --- what is no lockfile


def test_a_lock_cut_off_at_any_byte_is_refused() -> None:
    whole = encode(document())
    for end in range(len(whole) - 2):
        assert re.match(r"it is (empty|not JSON \(line \d+, column \d+: )", problem(whole[:end])), end
    assert parse(whole[:-1], "x.lock") == document()  # only the final newline is gone


def test_a_real_lock_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    found = take_snapshot(complete(tmp_path))
    whole = encode(document(facts=found.facts, unavailable=found.unavailable))
    assert len(whole) > 5000
    for end in random.Random(1).sample(range(1, len(whole) - 2), 500):
        assert re.match(r"it is not (JSON|UTF-8) \(", problem(whole[:end])), end


def test_a_lock_with_any_byte_changed_is_refused_or_read_but_never_a_crash() -> None:
    whole, draw = encode(document()), random.Random(2)
    messages = []
    for _ in range(500):
        at = draw.randrange(len(whole))
        changed = whole[:at] + bytes([draw.randrange(256)]) + whole[at + 1 :]
        try:
            parse(changed, "x.lock")
        except LockfileError as error:
            messages.append(error.message)
    assert len(messages) > 100
    assert [message for message in messages if not message.isprintable() or len(message) > 200] == []


NO_OBJECT = [
    (b"[]", "it is a list, not an object"),
    (b"null", "it is null, not an object"),
    (b'"x"', "it is a string, not an object"),
    (b"3.5", "it is a number, not an object"),
    (b"true", "it is a boolean, not an object"),
    (b"{}", "`lock_version` must be a whole number, but it is missing"),
    (b"\xef\xbb\xbf{}", "it starts with a byte order mark (BOM)"),
    (b'{"a": "\xff"}', "it is not UTF-8 (at byte 7)"),
    (b'{"lock_version": 1, "lock_version": 1}', "the key 'lock_version' stands twice in one object"),
    (b'{"lock_version": NaN}', "NaN is not a JSON number"),
    (b'{"lock_version": Infinity}', "Infinity is not a JSON number"),
    (b'{"lock_version": 1e999}', "1e999 is too large for a number"),
    (b'{"lock_version": 1%s}' % (b"0" * 5000), "a number has 5001 digits"),
    (b'{"facts": "\\ud800"}', "a string holds half a surrogate pair"),
    (b'{"facts": ' + b'{"a":' * 10_000, "it is nested too deeply"),
    (b'{"facts": ' + b"[" * 10_000, "it is nested too deeply"),
]


def test_what_is_no_json_object() -> None:
    assert [(data, problem(data)) for data, _ in NO_OBJECT] == NO_OBJECT


def test_a_missing_field_is_named() -> None:
    fields = ["created_by", "facts", "unavailable", "policy"]
    said = [problem(encode(document(**{field: ...}))) for field in fields]
    assert said == [f"`{field}` is missing" for field in fields]


@pytest.mark.parametrize("sign", ["\u202e", "\x1b", "\n", "\u2066"])
@pytest.mark.parametrize("key", ["$schema", "created_by"])
def test_a_text_that_no_fact_is_has_no_control_characters_either(key: str, sign: str) -> None:
    changed = document(**{key: f"envlock {sign}1"})
    assert problem(encode(changed)) == f"`{key}` has a character that controls a terminal or the order of text"


KINDS: dict[str, Any] = {"null": None, "a boolean": True, "a number": 1, "a string": "x", "a list": [], "an object": {}}


FIELDS = {
    "$schema": ("a string", "`$schema` must be a string, but is {}"),
    "created_by": ("a string", "`created_by` must be a string, but is {}"),
    "facts": ("an object", "`facts` must be an object, but is {}"),
    "unavailable": ("an object", "`unavailable` must be an object, but is {}"),
    "policy": ("-", "`policy` must be an object of `name` and `overrides`"),
    "lock_version": ("a number", "`lock_version` must be a whole number, but it is {}"),
}
MISSING = {("lock_version", "null"): "`lock_version` must be a whole number, but it is missing"}


def test_a_field_of_another_type_is_named() -> None:
    for (field, (wanted, clause)), (kind, value) in product(FIELDS.items(), KINDS.items()):
        changed = document(**{field: value})
        if kind == wanted:
            assert parse(encode(changed), "x.lock") == changed
        else:
            assert problem(encode(changed)) == MISSING.get((field, kind), clause.format(kind))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"lock_version": 1.0}, "`lock_version` must be a whole number, but it is a number"),
    ({"lock_version": 0}, "unknown lock_version 0"),
    ({"lock_version": -1}, "unknown lock_version -1"),
    ({"fact": {}}, "it has an unknown field `fact`"),
    ({"a\x1b[2Jb": {}}, "it has an unknown field `a\\x1b[2Jb`"),
    ({"k" * 99: {}}, f"it has an unknown field `{'k' * 57}...`"),
    ({"k" * 61: {}}, f"it has an unknown field `{'k' * 57}...`"),
    ({"k" * 60: {}}, f"it has an unknown field `{'k' * 60}`"),
    ({"image": []}, "`image` must be an object, but is a list"),
    ({"facts": {"gpus": {}}}, "`facts` has an unknown section `gpus`"),
    ({"facts": {"cpu": {"flags": [["a"]]}}}, "`facts.cpu.flags` must be a list of plain values"),
    ({"facts": {"cpu": {"flags": [{}]}}}, "`facts.cpu.flags` must be a list of plain values"),
    ({"facts": {"loaded": []}}, "`facts.loaded` must be an object, but is a list"),
    ({"facts": {"loaded": {"standard": ["x"]}}}, "`facts.loaded.standard` must be an object of strings"),
    ({"facts": {"loaded": {"interpreter": {"python": 1}}}}, "`facts.loaded.interpreter` must be an object of strings"),
    ({"facts": {"loaded": {"arithmetic": []}}}, "`facts.loaded.arithmetic` must be a string, but is a list"),
    ({"facts": {"loaded": {"libm": "x"}}}, "`facts.loaded.libm` must be a list of strings"),
    ({"facts": {"loaded": {"unexplained": [1]}}}, "`facts.loaded.unexplained` must be a list of strings"),
    ({"unavailable": {"a.b": "x"}}, "`unavailable.a.b` must be an object of `reason` and `code`"),
    ({"unavailable": {"a": {"reason": "x"}}}, "`unavailable.a` must be an object of `reason` and `code`"),
    ({"unavailable": {"a": {"reason": "x", "code": 1}}}, "`unavailable.a` must hold strings"),
    ({"unavailable": {"a": {"reason": None, "code": "x"}}}, "`unavailable.a` must hold strings"),
    ({"unavailable": {"cpu": REASON}}, "`cpu` is in `facts` and in `unavailable`"),
    ({"unavailable": {"cpu.flags": REASON}}, "`cpu.flags` is in `facts` and in `unavailable`"),
    ({"unavailable": {"tensorflow": REASON}}, "`tensorflow` is in `facts` and in `unavailable`"),
    (
        {"machines": [{"facts": {"cpu": {"flags": []}}, "unavailable": {"cpu.flags": REASON}}]},
        "`cpu.flags` is in `facts` and in `unavailable`",
    ),
    ({"policy": {"name": "strict"}}, "`policy` must be an object of `name` and `overrides`"),
    ({"policy": {"name": 1, "overrides": {}}}, "`policy.name` must be a string, but is a number"),
    ({"policy": {"name": "strict", "overrides": []}}, "`policy.overrides` must be an object of strings"),
    ({"policy": {"name": "strict", "overrides": {"a": 1}}}, "`policy.overrides` must be an object of strings"),
]


def test_a_wrong_structure_is_named() -> None:
    assert [(changes, problem(encode(document(**changes)))) for changes, _ in WRONG] == WRONG


DATA: dict[str, Any] = {"files": 1, "bytes": 1, "listing": "ab" * 32, "content": None}
KEYS = "must be an object of `files`, `bytes`, `listing` and `content`"
COUNTS = "must have whole numbers of `files` and `bytes`"
LISTING = "must have a SHA-256 in `listing`"
CONTENT = "must have a SHA-256, an MD5 or null in `content`"
WRONG_DATA: list[tuple[Any, str]] = [
    ([], "`data` must be an object, but is a list"),
    (dict.fromkeys(map(str, range(101)), DATA), "`data` has 101 paths, more than 100"),
    # Nothing outside the project is looked at because a lockfile says so.
    ({"/etc": DATA}, "`data` has a path outside the project: `/etc`"),
    ({"../x": DATA}, "`data` has a path outside the project: `../x`"),
    ({"a/..": DATA}, "`data` has a path outside the project: `a/..`"),
    ({"": DATA}, "`data` has a path outside the project: ``"),
    ({"a\0b": DATA}, "`data` has a path outside the project: `a\\x00b`"),
    ({"data": None}, f"`data.data` {KEYS}"),
    ({"data": {}}, f"`data.data` {KEYS}"),
    ({"data": {**DATA, "more": 1}}, f"`data.data` {KEYS}"),
    ({"data": {**DATA, "files": True}}, f"`data.data` {COUNTS}"),
    ({"data": {**DATA, "bytes": "1"}}, f"`data.data` {COUNTS}"),
    ({"data": {**DATA, "listing": None}}, f"`data.data` {LISTING}"),
    ({"data": {**DATA, "listing": "ab" * 31}}, f"`data.data` {LISTING}"),
    ({"data": {**DATA, "content": 1}}, f"`data.data` {CONTENT}"),
    # What envlock does not compute would never be compared, not even when all data is read.
    ({"data": {**DATA, "content": f"sha512:{'ab' * 64}"}}, f"`data.data` {CONTENT}"),
    ({"data": {**DATA, "content": f"sha256:{'ab' * 31}"}}, f"`data.data` {CONTENT}"),
    ({"data": {**DATA, "content": f"sha256:{'X' * 64}"}}, f"`data.data` {CONTENT}"),
    ({"data": {**DATA, "content": f"sha256:{'AB' * 32}"}}, f"`data.data` {CONTENT}"),
    ({"data": {**DATA, "content": f"sha256:{'ab' * 32}.dir"}}, f"`data.data` {CONTENT}"),
    ({"data": {**DATA, "content": ""}}, f"`data.data` {CONTENT}"),
]
HEX = "0123456789abcdef"
CONTENTS = [None, f"sha256:{HEX * 4}", f"md5:{HEX * 2}", f"md5:{HEX * 2}.dir"]


@pytest.mark.parametrize("content", CONTENTS)
def test_contents_have_a_digest_of_envlock_or_of_dvc_or_none(content: str | None) -> None:
    whole = document(data={"data": {**DATA, "content": content}})
    assert parse(encode(whole), "x.lock") == whole


def test_data_of_another_structure_is_named() -> None:
    assert [(section, problem(encode(document(data=section)))) for section, _ in WRONG_DATA] == WRONG_DATA


def test_as_much_as_a_lockfile_may_have_is_read() -> None:
    paths = [f"a{number}" for number in range(1000)]
    most = document(
        data=dict.fromkeys(paths[:100], DATA),
        facts={},
        unavailable=dict.fromkeys(paths, REASON),
        policy={"name": "strict", "overrides": dict.fromkeys(paths, "ignore")},
        machines=[{"facts": {}, "unavailable": {}}] * 100,
    )
    assert parse(encode(most), "x.lock") == most


@pytest.mark.parametrize(
    ("facts", "unavailable", "answer"),
    [
        ({"cpu": {"flags": []}}, {"gpu": REASON}, True),
        ({"gpus": {}}, {}, False),
        ({}, {"gpu": "x"}, False),
        ({"gpu": {}}, {"gpu": REASON}, False),
        ([], {}, False),
    ],
)
def test_what_another_process_calls_facts_are_facts_or_not(facts: Any, unavailable: Any, answer: bool) -> None:
    assert are_facts(facts, unavailable) is answer


def test_facts_nested_too_deeply_are_refused() -> None:
    facts: dict[str, Any] = {"cpu": {}}
    node = facts["cpu"]
    for _ in range(DEPTH_LIMIT - 2):
        node["n"] = node = {}
    assert parse(encode(document(facts=facts)), "x.lock")["facts"] == facts
    node["n"] = {"n": {}}
    assert problem(encode(document(facts=facts))) == f"`facts.cpu{'.n' * 11}` is nested too deeply"


def test_what_a_fact_holds_is_compared_not_refused() -> None:
    """A value of another type is a difference, which `compare` names by its path."""
    values: list[Any] = [None, True, 1, 1.5, "x", [], [1, "x", None], {}, {"deep": {"er": 1}}]
    for value in values:
        facts = {"cpu": {"flags": value, "new": value}}
        assert parse(encode(document(facts=facts)), "x.lock")["facts"] == facts


# --- versions


def test_a_newer_version_says_who_wrote_it_and_what_to_do() -> None:
    writers: list[Any] = ["envlock 9.0", None, "\x1b[2J", "w" * 60, {}]
    for writer in writers:
        with pytest.raises(LockfileError) as caught:
            parse(encode({"lock_version": 2, "created_by": writer, "new": 1}), "x.lock")
        by = ", written by envlock 9.0" if writer == "envlock 9.0" else ""
        assert str(caught.value) == (
            f"lockfile x.lock has lock_version 2{by}; this envlock reads up to 1\n"
            "hint: upgrade envlock, or capture again with this one: `envlock capture`"
        )


def _from_0(old: dict[str, Any]) -> dict[str, Any]:
    """Take a made-up version 0, which had one string for the policy and no `unavailable`."""
    return {**old, "unavailable": {}, "policy": {"name": old["policy"].lower(), "overrides": {}}}


def test_an_older_version_is_upgraded_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ancient = encode(document(lock_version=-1, unavailable=..., policy=..., tier="Strict"))
    old = encode(document(lock_version=0, unavailable=..., policy="Strict"))
    monkeypatch.setitem(UPGRADES, 0, _from_0)
    monkeypatch.setitem(UPGRADES, -1, lambda d: {**{k: v for k, v in d.items() if k != "tier"}, "policy": d["tier"]})
    assert parse(old, "x.lock") == document(unavailable={})
    assert parse(ancient, "x.lock") == document(unavailable={})
    (tmp_path / "old.lock").write_bytes(old)
    assert read_file(str(tmp_path / "old.lock")) == document(unavailable={})


def test_an_invalid_document_of_an_older_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UPGRADES, 0, _from_0)
    for policy in (..., 3, ["strict"]):
        with pytest.raises(LockfileError) as caught:
            parse(encode(document(lock_version=0, policy=policy)), "x.lock")
        expected = "lockfile x.lock is not valid: it is not a valid document of lock_version 0"
        assert caught.value.message == expected


def test_what_an_upgrade_gives_is_checked_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UPGRADES, 0, lambda old: {**old, "facts": []})
    with pytest.raises(LockfileError) as caught:
        parse(encode(document(lock_version=0)), "x.lock")
    assert caught.value.message == "lockfile x.lock is not valid: `facts` must be an object, but is a list"


@pytest.mark.parametrize("data", [b"<<<<<<< HEAD\n{}\n", b'{\n<<<<<<< ours\n  "a": 1\n=======\n>>>>>>> theirs\n}\n'])
def test_conflict_markers_are_recognised(data: bytes) -> None:
    with pytest.raises(LockfileError) as caught:
        parse(data, "x.lock")
    assert (caught.value.message, caught.value.hint) == (
        "lockfile x.lock is not valid: it has conflict markers",
        "take one side, then run `envlock capture`",
    )


@pytest.mark.parametrize(
    ("project", "problem"),
    [
        ({"name": 1}, "`project.name` must be a string, but is a number"),
        ({"name": ["x"]}, "`project.name` must be a string, but is a list"),
        ({"entry": [1], "held": {}}, "`project.entry` must be a list of strings"),
        ({"tooling": "ruff"}, "`project.tooling` must be a list of strings"),
        ({"entry": []}, "`project` must have both `entry` and `held`, or neither"),
        ({"held": {}}, "`project` must have both `entry` and `held`, or neither"),
        ({"entry": [], "held": ["numpy"]}, "`project.held` must be an object of strings"),
        ({"entry": [], "held": {}, "observed": {"numpy": 1}}, "`project.observed` must be an object of strings"),
        (None, "`project` must be an object, but is null"),
    ],
)
def test_a_project_that_is_none(project: Any, problem: str) -> None:
    with pytest.raises(LockfileError) as caught:
        parse(encode(document(project=project)), "x.lock")
    assert caught.value.message == f"lockfile x.lock is not valid: {problem}"


def test_jax_and_pytorch_have_left_keras() -> None:
    """Older lockfiles have them there, where Keras computes with them; they are compared as before."""
    jax = {"version": "0.10.2", "settings": {"JAX_ENABLE_X64": "1"}}
    old = document(
        facts={"keras": {"version": "3.15.1", "jax": jax}},
        unavailable={"keras.torch": REASON, "keras.config": REASON},
        policy={"name": "strict", "overrides": {"keras.jax.version": "same_minor", "keras.version": "same_minor"}},
    )
    found = parse(encode(old), "x.lock")
    assert found["facts"] == {"keras": {"version": "3.15.1"}, "jax": jax}
    assert found["unavailable"] == {"torch": REASON, "keras.config": REASON}
    assert found["policy"]["overrides"] == {"jax.version": "same_minor", "keras.version": "same_minor"}
