"""Input files: what a lockfile records of them, and what differs; contents, names and links of every kind."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from envlock.runtime import data_contents, data_files
from envlock.runtime.data_contents import NOTES, is_settled, name_note, read_contents, read_note, render_note
from envlock.runtime.data_files import Survey, survey
from envlock.runtime.errors import FactError, UsageError
from envlock.runtime.facts import Unavailable
from envlock.runtime.input_data import (
    add_data,
    choose_severity,
    compare_data,
    describe_depth,
    find_base,
    look_at,
)
from envlock.runtime.lockfile import read_file
from envlock.runtime.policies import Policy
from envlock.runtime.report import ERROR, INFO, UNKNOWN, UNREAD, WARNING, Report
from envlock.runtime.user_cache import make_cache
from tests.locks import document, encode

EXACT = Policy("strict", {"data": "exact"})
FILES = {"a.csv": b"1,2\n", "sub/b.csv": b"3\n"}


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "data", FILES)


def find(path: Path) -> Survey:
    found = survey(str(path))
    assert found is not None
    return found


def entry(path: Path) -> dict[str, object]:
    found = find(path)
    return found.to_json(read_contents(str(path), found))


def test_digests_are_those_of_the_page(data: Path) -> None:
    """As docs/reference/formats.md defines them, so that another program can compute them."""
    listing = hashlib.sha256(b"a.csv\0004\nsub/b.csv\0002\n").hexdigest()
    lines = "".join(f"{name}\0{hashlib.sha256(content).hexdigest()}\n" for name, content in FILES.items())
    content = f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"
    assert entry(data) == {"files": 2, "bytes": 6, "listing": listing, "content": content}
    one = hashlib.sha256(b"\0" + hashlib.sha256(b"3\n").hexdigest().encode() + b"\n").hexdigest()
    assert entry(data / "sub/b.csv")["content"] == f"sha256:{one}"
    assert survey(str(data / "none")) is None


NAMES = some.text(some.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=8)


@given(
    some.dictionaries(NAMES, some.binary(max_size=9), max_size=4),
    some.dictionaries(NAMES, some.binary(max_size=9), max_size=4),
)
def test_two_folders_have_one_digest_exactly_if_they_are_equal(
    tmp_path_factory: pytest.TempPathFactory, one: dict[str, bytes], other: dict[str, bytes]
) -> None:
    entries = []
    for files in (one, other):
        folder = tmp_path_factory.mktemp("data")
        for name, content in files.items():
            if name not in (".", ".."):
                (folder / name).write_bytes(content)
        entries.append(entry(folder))
    for files in (one, other):
        for name in (".", ".."):
            files.pop(name, None)
    assert (entries[0] == entries[1]) == (one == other)
    sizes = [{name: len(content) for name, content in files.items()} for files in (one, other)]
    assert (entries[0]["listing"] == entries[1]["listing"]) == (sizes[0] == sizes[1])


def test_links_are_followed(data: Path, tmp_path: Path) -> None:
    before = entry(data)
    (data / "a.csv").rename(tmp_path / "elsewhere")
    (data / "a.csv").symlink_to(tmp_path / "elsewhere")
    (data / "sub").rename(tmp_path / "folder")
    (data / "sub").symlink_to(tmp_path / "folder")
    (tmp_path / "link").symlink_to(data)
    assert entry(tmp_path / "link") == entry(data) == before


LEAVE_OUT = "hint: correct it, or leave it out of `data` in [tool.envlock]"


def refusal(path: Path) -> str:
    """Return why a data path is refused."""
    with pytest.raises(FactError) as caught:
        survey(str(path))
    return str(caught.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda data: os.mkfifo(data / "x"), "it is neither a file nor a folder"),
        (lambda data: (data / "x").symlink_to("nowhere"), "its link leads nowhere"),
        (lambda data: (data / "x").symlink_to("."), "it leads back to a folder above it"),
        (lambda data: (data / "x").symlink_to("x"), "Too many levels of symbolic links"),
    ],
    ids=["pipe", "dangling", "circle", "itself"],
)
def test_what_cannot_be_read_is_said_by_name(make: object, said: str, data: Path) -> None:
    assert callable(make)
    make(data)
    assert refusal(data) == f"cannot read the data {data}/x: {said}\n{LEAVE_OUT}"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "it is neither a file nor a folder"),
        (lambda path: path.symlink_to("nowhere"), "its link leads nowhere"),
        (lambda path: path.symlink_to("x"), "Too many levels of symbolic links"),
    ],
    ids=["pipe", "dangling", "itself"],
)
def test_a_data_path_that_cannot_be_read_is_said(make: Callable[[Path], None], said: str, tmp_path: Path) -> None:
    make(tmp_path / "x")
    assert refusal(tmp_path / "x") == f"cannot read the data {tmp_path}/x: {said}\n{LEAVE_OUT}"


def test_a_folder_that_may_not_be_listed_is_said(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("os.scandir", refuse)  # to root, no mode forbids anything
    assert refusal(data) == f"cannot read the data {data}: Permission denied\n{LEAVE_OUT}"


def test_a_file_that_goes_while_it_is_looked_at_is_said(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with os.scandir(tmp_path) as entries:
        (entry,) = entries
    (tmp_path / "x").unlink()
    with pytest.raises(FactError) as caught:
        data_files._examine(entry)
    assert caught.value.message == f"cannot read the data {tmp_path}/x: it was removed while it was examined"


def test_a_huge_folder_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "LIMIT", 3)
    assert len(find(data).files) == 2
    (data / "c").touch()
    assert refusal(data) == (
        f"{data} has more than 3 files and folders\nhint: pack them into fewer files, or name a list of them, "
        "such as a `.dvc` file, in `data`"
    )


def test_a_change_while_it_is_read_is_an_error(data: Path) -> None:
    found = find(data)

    def change(size: int) -> None:
        (data / "a.csv").write_bytes(b"4,5\n")

    with pytest.raises(FactError, match=r"/data: it was changed while it was read\n"):
        read_contents(str(data), found, advance=change)
    found = find(data)
    (data / "a.csv").unlink()
    with pytest.raises(FactError, match="No such file"):
        read_contents(str(data), found)


def test_progress_is_told_in_bytes(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_contents, "CHUNK", 3)
    told: list[int] = []
    read_contents(str(data), find(data), advance=told.append)
    assert told == [3, 1, 2]


def note(data: Path, cache: Path, content: str) -> dict[str, str]:
    """Write the note of a digest as a capture does."""
    environ = {"XDG_CACHE_HOME": str(cache)}
    file = Path(make_cache(environ, NOTES), name_note(str(data)))
    file.write_bytes(render_note(find(data).state, content))
    file.chmod(0o600)
    return environ


def test_a_note_holds_until_a_file_changes(data: Path, tmp_path: Path) -> None:
    content = f"sha256:{'ab' * 32}"
    environ = note(data, tmp_path / "cache", content)
    assert read_note(environ, str(data), find(data)) == content
    times = (data / "a.csv").stat()
    (data / "a.csv").write_bytes(b"9,9\n")
    os.utime(data / "a.csv", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert read_note(environ, str(data), find(data)) is None, "the time of the last change is not in a user's hand"


def test_a_note_that_others_can_write_does_not_count(data: Path, tmp_path: Path) -> None:
    environ = note(data, tmp_path / "cache", f"sha256:{'ab' * 32}")
    Path(make_cache(environ, NOTES), name_note(str(data))).chmod(0o666)
    assert read_note(environ, str(data), find(data)) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole + b"more\n",
        lambda whole: whole.replace(b"sha256", b"sh\xff256"),
        lambda whole: whole.replace(b"sha256", b"x" * (1001 - len(whole) + len("sha256"))),
        lambda whole: b"",
    ],
    ids=["more", "bytes", "long", "empty"],
)
def test_a_note_that_is_damaged_does_not_count(damage: Callable[[bytes], bytes], data: Path, tmp_path: Path) -> None:
    environ = note(data, tmp_path / "cache", f"sha256:{'ab' * 32}")
    file = Path(make_cache(environ, NOTES), name_note(str(data)))
    file.write_bytes(damage(file.read_bytes()))
    assert read_note(environ, str(data), find(data)) is None


def test_a_note_is_in_the_cache_under_the_digest_of_the_real_path(data: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(data)
    name = hashlib.sha256(os.fsencode(data.resolve())).hexdigest()
    assert name_note(str(tmp_path / "link")) == name


def test_files_that_have_just_changed_are_not_settled(data: Path) -> None:
    found = find(data)
    assert not is_settled(found, time.time_ns())
    assert is_settled(found, time.time_ns() + 10**10)
    last = max(file.changed for file in found.files) + data_contents.SETTLED
    assert (is_settled(found, last), is_settled(found, last + 1)) == (False, True)


# Statements of others on what should be at a path: (files that are there, the path, other content of the same size).

DIGEST = hashlib.sha256(b"1,2\n").hexdigest()
MD5 = hashlib.md5(b"1,2\n", usedforsecurity=False).hexdigest()
WRITTEN_BY_DVC = "md5:fe081c27ab75778609f2ff29cecdaef0.dir"
KEY = f"SHA256E-s4--{DIGEST}.csv"


def dvc(path: str, digest: str, size: int, files: str = "") -> bytes:
    return f"outs:\n- md5: {digest}\n  size: {size}\n{files}  hash: md5\n  path: {path}\n".encode()


def state_by_dvc(root: Path) -> Path:
    write(root, {"a.csv": b"1,2\n", "a.csv.dvc": dvc("a.csv", MD5, 4)})
    return root / "a.csv"


def state_by_dvc_of_a_folder(root: Path) -> Path:
    write(root / "data", FILES)
    write(root, {"data.dvc": dvc("data", WRITTEN_BY_DVC[4:], 6, "  nfiles: 2\n")})
    return root / "data"


def state_by_git_annex(root: Path) -> Path:
    write(root / f".git/annex/objects/X1/9q/{KEY}", {KEY: b"1,2\n"})
    (root / "a.csv").symlink_to(f".git/annex/objects/X1/9q/{KEY}/{KEY}")
    return root / "a.csv"


def state_by_a_cache_of_models(root: Path) -> Path:
    """Hugging Face's: the name of the blob that a link leads to is the SHA-256 of its content."""
    write(root / "models--a--b/blobs", {DIGEST: b"1,2\n"})
    (root / "models--a--b/snapshots/main").mkdir(parents=True)
    (root / "models--a--b/snapshots/main/a.csv").symlink_to(f"../../blobs/{DIGEST}")
    return root / "models--a--b/snapshots/main"


def state_by_git_lfs(root: Path) -> Path:
    write(root / f".git/lfs/objects/{DIGEST[:2]}/{DIGEST[2:4]}", {DIGEST: b"1,2\n"})
    write(root, {".gitattributes": b"*.csv filter=lfs diff=lfs merge=lfs -text\n", "a.csv": b"1,2\n"})
    return root / "a.csv"


def state_by_a_list_of_digests(root: Path) -> Path:
    write(root, {"a.csv": b"1,2\n", "a.csv.sha256": f"{DIGEST}  a.csv\n".encode()})
    return root / "a.csv"


STATEMENTS = [
    state_by_dvc,
    state_by_dvc_of_a_folder,
    state_by_git_annex,
    state_by_a_cache_of_models,
    state_by_git_lfs,
    state_by_a_list_of_digests,
]


@pytest.mark.parametrize("state", STATEMENTS)
def test_what_others_say_about_data_is_not_a_look_at_it(state: Callable[[Path], Path], tmp_path: Path) -> None:
    path = state(tmp_path / "there")
    locked = {"x": entry(path)}
    (file,) = [each for each in ([path] if path.is_file() else path.iterdir()) if each.is_file()]
    file.resolve().write_bytes(b"1,9\n")
    live = look_at(str(path.parent), {path.name: locked["x"]}, {})
    assert live == {path.name: find(path).to_json(None)}, "it is unknown, neither the same nor other data"
    (unread,) = compare_data({path.name: locked["x"]}, live, EXACT)
    assert (unread.rule, unread.severity) == (UNREAD, WARNING)
    deep = look_at(str(path.parent), {path.name: locked["x"]}, {}, deep=True)
    (changed,) = compare_data({path.name: locked["x"]}, deep, EXACT)
    assert changed.severity == ERROR
    assert changed.message.endswith("on both sides, with other contents")


def test_a_digest_of_dvc_in_an_earlier_lockfile_can_be_computed(data: Path) -> None:
    """DVC 3.67.1 wrote this digest for these two files."""
    assert read_contents(str(data), find(data), "md5") == WRITTEN_BY_DVC
    file = data / "a.csv"
    assert read_contents(str(file), find(file), "md5") == f"md5:{MD5}"


def test_contents_are_read_only_if_asked(data: Path) -> None:
    locked = {"data": entry(data)}
    (data / "a.csv").write_bytes(b"9,9\n")
    cheap = look_at(str(data.parent), locked, {})
    (unread,) = compare_data(locked, cheap, EXACT)
    assert (unread.rule, unread.severity, unread.message) == (
        "data-unread",
        WARNING,
        "data at data: as locked by names and sizes; contents were not compared",
    )
    assert compare_data(locked, cheap, Policy("strict", {})) == [], "no rule demands equal data"
    assert "names and sizes" in describe_depth(locked, cheap)[0]
    deep = look_at(str(data.parent), locked, {}, deep=True)
    assert [finding.message for finding in compare_data(locked, deep, EXACT)] == [
        "data at data: 2 files (6 bytes) on both sides, with other contents"
    ]


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_contents_that_are_read_are_compared_by_the_digest_that_is_locked(algorithm: str, data: Path) -> None:
    found = find(data)
    locked = {"data": found.to_json(read_contents(str(data), found, algorithm))}
    assert compare_data(locked, look_at(str(data.parent), locked, {}, deep=True), EXACT) == []
    (data / "a.csv").write_bytes(b"9,9\n")
    (changed,) = compare_data(locked, look_at(str(data.parent), locked, {}, deep=True), EXACT)
    assert changed.message == "data at data: 2 files (6 bytes) on both sides, with other contents"


def test_contents_that_are_known_are_compared_without_being_read(data: Path, tmp_path: Path) -> None:
    known = f"sha256:{'ab' * 32}"
    environ = note(data, tmp_path / "cache", known)
    locked = {"data": entry(data)}
    live = look_at(str(data.parent), locked, environ)
    assert live == {"data": {**locked["data"], "content": known}}
    (changed,) = compare_data(locked, live, EXACT)
    assert changed.message == "data at data: 2 files (6 bytes) on both sides, with other contents"
    by_dvc = {"data": {**locked["data"], "content": WRITTEN_BY_DVC}}
    assert look_at(str(data.parent), by_dvc, environ) == {"data": find(data).to_json(None)}


def test_where_names_or_sizes_differ_no_contents_are_read(data: Path) -> None:
    locked = {"data": {**entry(data), "listing": "ab" * 32}}
    live = look_at(str(data.parent), locked, {}, deep=True)
    assert live == {"data": find(data).to_json(None)}
    (changed,) = compare_data(locked, live, EXACT)
    assert changed.message == "data at data: 2 files (6 bytes) on both sides, with other names or sizes"


def test_data_that_cannot_be_read_is_unknown_and_says_why(data: Path) -> None:
    locked = {"data": entry(data)}
    (data / "x").symlink_to("nowhere")
    live = look_at(str(data.parent), locked, {})
    reason = f"cannot read the data {data}/x: its link leads nowhere"
    assert live == {"data": Unavailable(reason, "unreadable")}
    (unknown,) = compare_data(locked, live, EXACT)
    assert (unknown.severity, unknown.message) == (UNKNOWN, reason)
    assert describe_depth(locked, live) == []


def test_a_finding_has_both_sides_and_why_it_matters(data: Path) -> None:
    locked = {"a": entry(data), "b": entry(data)}
    other = {**entry(data), "files": 3}
    (changed,) = compare_data(locked, {**locked, "b": other}, EXACT)
    assert (str(changed.where), changed.why) == ("data", EXACT.row("data")["why"])
    assert (changed.expected, changed.actual) == (entry(data), other)


def test_what_was_compared_is_said_by_depth(data: Path) -> None:
    whole, names = entry(data), find(data).to_json(None)
    locked = dict.fromkeys(("a", "b", "c", "d", "e", "f"), whole)
    live = {"a": None, "b": Unavailable("no", "unreadable"), "c": whole, "d": names, "e": whole, "f": names}
    assert describe_depth(locked, live) == [
        "data: c, e as locked",
        "data: d, f as locked by names and sizes; `envlock verify --deep` also compares contents",
    ]
    assert describe_depth(locked, dict.fromkeys(locked)) == []


def judged(project: Path, rule: str, **options: Any) -> Report:
    """Return a report to which the data of a project was added, of a lockfile with a rule on it."""
    (project / "pyproject.toml").write_text("[tool.envlock]\n")
    path = project / "envlock.lock"
    if not path.exists():
        locked = {"data": entry(project / "data")}
        path.write_bytes(encode(document(data=locked, policy={"name": "strict", "overrides": {"data": rule}})))
    report = Report([], policy="strict", notes=["before"])
    return add_data(report, read_file(str(path)), str(path), **options)


def test_a_report_says_how_far_the_data_was_compared(data: Path, tmp_path: Path) -> None:
    cheap = "data: data as locked by names and sizes; `envlock verify --deep` also compares contents"
    report = judged(tmp_path, "exact")
    assert (report.notes, report.match) == (["before", cheap], True)
    assert report.headline == "matches under policy strict, with data by names and sizes only"
    report = judged(tmp_path, "exact", deep=True)
    assert (report.match, report.notes) == (True, ["before", "data: data as locked"])
    (data / "a.csv").write_bytes(b"9,9\n")
    assert judged(tmp_path, "exact").match
    report = judged(tmp_path, "exact", deep=True)
    assert (report.exit_code, report.headline, report.notes) == (
        1,
        "does not match under policy strict: there is other data at 1 path",
        ["before"],
    )


def test_a_report_has_what_the_cache_of_the_user_knows(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = note(data, tmp_path / "cache", f"sha256:{'ab' * 32}")
    monkeypatch.setenv("XDG_CACHE_HOME", environ["XDG_CACHE_HOME"])
    assert judged(tmp_path, "exact").exit_code == 1


@pytest.mark.parametrize(
    ("variable", "overrides", "severity"),
    [("", None, INFO), ("1", None, WARNING), ("", False, WARNING), ("1", True, INFO)],
)
def test_a_rule_that_lets_data_pass_can_be_switched_off(
    variable: str, overrides: bool | None, severity: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVLOCK_NO_OVERRIDES", variable)
    judged(tmp_path, "ignore")
    (data / "c.csv").touch()
    assert [each.severity for each in judged(tmp_path, "ignore", overrides=overrides).findings] == [severity]


def test_data_is_judged_by_the_policy_that_is_named(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nonsense"):
        judged(tmp_path, "exact", policy="nonsense")


def test_each_difference_is_data_and_no_fact(data: Path) -> None:
    locked = {"data": entry(data), "none": entry(data)}
    (data / "c.csv").write_bytes(b"")
    found = compare_data(locked, look_at(str(data.parent), locked, {}), EXACT)
    assert [finding.message for finding in found] == [
        "data at data: locked 2 files (6 bytes), live 3 files (6 bytes)",
        "data at none: locked 2 files (6 bytes), live absent",
    ]
    report = Report(found, policy="strict")
    assert report.headline == "does not match under policy strict: there is other data at 2 paths"
    assert report.exit_code == 1
    unreadable = compare_data(locked, {"data": Unavailable("no", "unreadable"), "none": entry(data)}, EXACT)
    assert [finding.severity for finding in unreadable] == [UNKNOWN, ERROR]
    assert (found[0].fix, found[0].source) == ("Restore the data, or lock this data with `envlock capture`.", "design")


@pytest.mark.parametrize(
    ("rules", "overrides", "severity"),
    [
        ({}, True, WARNING),
        ({"cpu.flags": "superset"}, True, WARNING),
        ({"data": "exact"}, True, ERROR),
        ({"data": "exact"}, False, ERROR),
        ({"data": "ignore"}, True, INFO),
        ({"data": "ignore"}, False, WARNING),
    ],
)
@pytest.mark.parametrize("name", ["strict", "bits", "same-arch", "functional"])
def test_data_decides_only_where_a_rule_names_it(
    name: str, rules: dict[str, str], overrides: bool, severity: str
) -> None:
    policy = Policy(name, rules)
    assert choose_severity(policy, overrides=overrides) == severity
    (gone,) = compare_data({"data": {"files": 1, "bytes": 1}}, {"data": None}, policy, overrides=overrides)
    assert gone.severity == severity


def test_the_rules_of_the_lockfile_apply_where_nobody_says_otherwise() -> None:
    policy = Policy("strict", {"data": "ignore"})
    (gone,) = compare_data({"data": {"files": 1, "bytes": 1}}, {"data": None}, policy)
    assert (choose_severity(policy), gone.severity) == (INFO, INFO)


def test_paths_begin_at_the_project_of_the_lockfile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("image", "project"):
        write(tmp_path / name, {"pyproject.toml": b"[tool.envlock]\n"})
    write(tmp_path / "project", {"data/a": b""})
    monkeypatch.chdir(tmp_path / "project")
    assert find_base(str(tmp_path / "image/envlock.lock"), {"data": {}}) == str(tmp_path / "project")
    write(tmp_path / "image", {"data/a": b""})
    assert find_base(str(tmp_path / "image/envlock.lock"), {"data": {}}) == str(tmp_path / "image")
