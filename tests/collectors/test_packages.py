"""The packages collector on trees of metadata as pip, setuptools, conda and accidents leave them."""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_LZMA, ZipFile, ZipInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.lock.creation import capture
from envlock.lock.document import dump
from envlock.runtime.collectors import take_snapshot
from envlock.runtime.collectors.packages import collect, strip_url_secrets
from envlock.runtime.distributions import (
    find_distributions,
    find_package_folder,
    get_import_path,
    list_entries_of_pythonpath,
    list_pth_files,
    normalise,
)
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from tests.machines import distribution, machine, write

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PACKED = f"# pack-refs with: peeled\n{'f' * 40} refs/heads/b\n{COMMIT} refs/heads/a/b\n"
DIGEST = "ab" * 32
MALFORMED = Unavailable("its direct_url.json does not follow the packaging specification", "malformed")
NO_FOLDER = Unavailable("the subdirectory in its direct_url.json is not a plain path in the checkout", "malformed")


def facts(**changes: Any) -> dict[str, Any]:
    return {"version": "1.0", "wheel_tags": None, "installer": None, "origin": None, **changes}


def found(tmp_path: Path, site: Path | None = None) -> Any:
    return collect(machine(tmp_path / "root", site=site or tmp_path / "site"))


def test_a_wheel_from_an_index(tmp_path: Path) -> None:
    wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\nTag: py2-none-any\n\n"
    distribution(tmp_path / "site", "Some.Pkg_x", "1.0+cu12", {"WHEEL": wheel, "INSTALLER": "uv\n"})
    expected = facts(version="1.0+cu12", wheel_tags=["py2-none-any", "py3-none-any"], installer="uv")
    assert found(tmp_path) == {"some-pkg-x": expected}


def test_no_site_packages_at_all(tmp_path: Path) -> None:
    assert found(tmp_path) == {}


def test_envlock_itself_is_left_out(tmp_path: Path) -> None:
    distribution(tmp_path / "site", "tf_envlock", "0.1.0")
    assert found(tmp_path) == {}


@pytest.mark.parametrize(
    ("folder", "files", "expected"),
    [
        ("numpy-1.0-py3.11.egg-info", {"PKG-INFO": "Name: numpy\n"}, {"numpy": facts()}),
        ("numpy-1.0-py3.11-linux-x86_64.egg-info", {"PKG-INFO": ""}, {"numpy": facts()}),
        ("numpy-1.0.egg-info", {"PKG-INFO": ""}, {"numpy": facts()}),
        ("my_pkg.egg-info", {"PKG-INFO": "Name: my-pkg\nVersion: 1.0\n\nVersion: 9"}, {"my-pkg": facts()}),
        ("my_pkg.egg-info", {"PKG-INFO": "Version:1.0\n"}, {"my-pkg": facts()}),
        (
            "my_pkg.egg-info",
            {"PKG-INFO": "Name: x\n\nVersion: 9\n"},
            {"my-pkg": facts(version=Unavailable("its metadata gives no version", "no-metadata"))},
        ),
        (
            "broken.dist-info",
            {"RECORD": ""},
            {"broken": facts(version=Unavailable("its metadata gives no version", "no-metadata"))},
        ),
        (
            "numpy-1.0.dist-info",
            {"RECORD": ""},
            {"numpy": facts(version=Unavailable("its metadata gives no version", "no-metadata"))},
        ),
        (
            "numpy-1.0.dist-info",
            {"METADATA": "", "RECORD": ""},
            {"numpy": facts(version=Unavailable("its metadata gives no version", "no-metadata"))},
        ),
        ("~umpy-1.0.dist-info", {"METADATA": ""}, {}),
        ("-umpy-1.0.dist-info", {"METADATA": ""}, {}),
        (".dist-info", {"METADATA": ""}, {}),
        ("not a name-1.0.dist-info", {"METADATA": ""}, {}),
        ("föö-1.0.dist-info", {"METADATA": ""}, {}),
        ("a\nb-1.0.dist-info", {"METADATA": ""}, {}),
        ("numpy-1.0.dist-info.bak", {"METADATA": ""}, {}),
    ],
)
def test_metadata_folders_of_all_kinds(
    folder: str, files: dict[str, str | bytes], expected: Any, tmp_path: Path
) -> None:
    site = tmp_path / "site-packages"
    write(site / folder, files)
    assert found(tmp_path, site) == expected


def test_an_egg_info_file(tmp_path: Path) -> None:
    write(tmp_path / "site", {"numpy-1.0-py3.11.egg-info": "Name: numpy\nVersion: 1.0\n"})
    assert found(tmp_path) == {"numpy": facts()}


def test_two_versions_over_each_other_are_ambiguous(tmp_path: Path) -> None:
    distribution(tmp_path / "site", "numpy", "1.0")
    distribution(tmp_path / "site", "NumPy", "2.0")
    expected = Unavailable(
        "versions 1.0 and 2.0 are installed over one another; uninstall it until no metadata folder of that name is left "
        "(remove those that stay), and install it again",
        "ambiguous",
    )
    assert found(tmp_path) == {"numpy": facts(version=expected)}


def test_the_first_folder_on_the_path_wins(tmp_path: Path) -> None:
    distribution(tmp_path / "a", "numpy", "1.0")
    distribution(tmp_path / "b", "numpy", "2.0")
    host = machine(tmp_path / "root")
    host.path = [str(tmp_path / "gone"), str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "a")]
    assert collect(host) == {"numpy": facts()}


def test_what_setuptools_brings_along_is_not_installed(tmp_path: Path) -> None:
    """TensorFlow imports setuptools, which from 71.0 on appends this folder: nothing is another package for it."""
    site = tmp_path / "site-packages"
    distribution(site, "setuptools", "84.2.1")
    distribution(site / "setuptools" / "_vendor", "tomli", "2.0.1")
    host = machine(tmp_path / "root", site=site)
    before = collect(host)
    host = machine(tmp_path / "root", site=site)
    host.path.append(str(site / "setuptools" / "_vendor"))
    assert collect(host) == before


def test_the_current_folder_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(tmp_path, "stray", "1.0")
    monkeypatch.chdir(tmp_path)
    assert found(tmp_path, tmp_path) == {}
    host = machine(tmp_path / "root", site=tmp_path, environ={"PYTHONPATH": str(tmp_path)})
    assert set(find_distributions(host)) == {"stray"}


def test_the_folder_of_the_script_is_not_installed_and_where_there_is_no_script_none_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = machine(tmp_path / "root", site=tmp_path / "site")
    host.path = [str(tmp_path / "project"), str(tmp_path / "site")]
    program = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", program)
    assert get_import_path(host) == host.path
    program.__file__ = str(tmp_path / "project" / "train.py")
    assert get_import_path(host) == [str(tmp_path / "site")]


@pytest.mark.parametrize("name", ["site-packages", "dist-packages"])
def test_a_program_among_the_packages_leaves_them_installed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = machine(tmp_path / "root", site=tmp_path / name)
    program = ModuleType("__main__")
    program.__file__ = str(tmp_path / name / "pytest.py")
    monkeypatch.setitem(sys.modules, "__main__", program)
    assert get_import_path(host) == [str(tmp_path / name)]


def test_a_folder_that_is_twice_on_the_path_is_looked_at_once(tmp_path: Path) -> None:
    distribution(tmp_path / "a", "numpy", "1.0")
    write(tmp_path / "a", {"a.pth": ""})
    distribution(tmp_path / "b", "keras", "3.0")
    (tmp_path / "link").symlink_to("a")
    host = machine(tmp_path / "root")
    host.path = [str(tmp_path / name) for name in ("a", "link", "b")]
    found = find_distributions(host)
    assert (list(found), find_distributions(host) is found) == (["numpy", "keras"], True)
    assert list_pth_files(host) == {str(tmp_path / "a"): ["a.pth"], str(tmp_path / "b"): []}


def test_pythonpath_has_entries_that_are_not_empty() -> None:
    assert list_entries_of_pythonpath(Host(environ={"PYTHONPATH": "/a b::/c"})) == ["/a b", "/c"]
    assert list_entries_of_pythonpath(Host(environ={})) == []


def test_names_and_versions_have_a_longest(tmp_path: Path) -> None:
    for length in (128, 129):
        distribution(tmp_path / "site", "n" * length, "1.0")
        distribution(tmp_path / "site", f"v{length}", "1" * length)
    found = find_distributions(machine(tmp_path / "root", site=tmp_path / "site"))
    versions = {name: each.version for name, each in found.items()}
    assert versions == {"n" * 128: "1.0", "v128": "1" * 128, "v129": ""}


def test_pth_files_are_known_by_their_folder(tmp_path: Path) -> None:
    write(tmp_path / "site", {"a.pth": "", "b.txt": ""})
    assert list_pth_files(machine(tmp_path / "root", site=tmp_path / "site")) == {str(tmp_path / "site"): ["a.pth"]}


def test_the_folder_of_a_package_is_the_first_that_is_one(tmp_path: Path) -> None:
    write(tmp_path, {"a/numpy/notes.txt": "", "b/numpy/__init__.py": "", "c/numpy/__init__.py": ""})
    host = machine(tmp_path / "root")
    host.path = [str(tmp_path / name) for name in "abc"]
    assert find_package_folder(host, "numpy") == str(tmp_path / "b" / "numpy")
    assert find_package_folder(host, "keras") is None


def test_a_pipe_on_the_import_path_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.zip")
    host = machine(tmp_path / "root", site=tmp_path / "site")
    host.path = [str(tmp_path / "fifo.zip"), *host.path]
    assert found_by(host) == {}


METADATA = "Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n"
PLACES = {
    "a wheel's metadata in a zip file": ("x.zip", "extra-1.0.dist-info/METADATA"),
    "in another case of letters": ("x.zip", "Extra-1.0.DIST-INFO/METADATA"),
    "in a file without an ending": ("bundle", "extra-1.0.dist-info/METADATA"),
    "a wheel": ("extra-1.0-py3-none-any.whl", "extra-1.0.dist-info/METADATA"),
    "setuptools' metadata in a zip file": ("x.zip", "extra-1.0-py3.11.egg-info/PKG-INFO"),
    "of a development install": ("x.zip", "extra.egg-info/PKG-INFO"),
    "in one file": ("x.zip", "extra-1.0.egg-info"),
    "an egg": ("extra-1.0-py3.11.egg", "EGG-INFO/PKG-INFO"),
    "an egg without a version in its name": ("extra.egg", "EGG-INFO/PKG-INFO"),
}


@pytest.mark.parametrize(
    ("place", "zipped"), [case for case in product(PLACES, (True, False)) if case != ("in one file", True)]
)
def test_what_importlib_metadata_finds_is_found(tmp_path: Path, place: str, *, zipped: bool) -> None:
    """A package that was added in a zip file on PYTHONPATH matched."""
    archive, member = PLACES[place]
    path = tmp_path / archive
    if zipped:
        with ZipFile(path, "w") as opened:
            opened.writestr(member, METADATA)
            opened.writestr("extra/__init__.py", "")
    else:
        write(path, {member: METADATA})
    host = machine(tmp_path / "root", site=tmp_path / "site")
    host.path = [str(path), *host.path]
    known = {each.metadata["Name"].lower(): each.version for each in importlib.metadata.distributions(path=host.path)}
    assert {name: fact["version"] for name, fact in found_by(host).items()} == known == {"extra": "1.0"}


def found_by(host: Host) -> Any:
    return collect(host)


def test_what_a_wheel_in_a_zip_file_says_of_itself(tmp_path: Path) -> None:
    wheel, url = "Tag: py3-none-any\n", {"url": "https://h.org/x-1.0.whl", "archive_info": {}}
    with ZipFile(tmp_path / "x.zip", "w") as archive:
        for file, text in (("WHEEL", wheel), ("INSTALLER", "uv\n"), ("direct_url.json", json.dumps(url))):
            archive.writestr(f"extra-1.0.dist-info/{file}", text)
    host = machine(tmp_path / "root", site=tmp_path / "site")
    host.path = [str(tmp_path / "x.zip"), *host.path]
    found = found_by(host)
    assert found["extra"].pop("source").startswith("sha256:")
    assert found == {
        "extra": facts(wheel_tags=["py3-none-any"], installer="uv", origin=origin(url="https://h.org/x-1.0.whl"))
    }


def test_the_content_of_a_zip_file_is_a_fact(tmp_path: Path) -> None:
    """Other code in it, with the same version, matched, under `--deep` too."""
    host = machine(tmp_path / "root", site=tmp_path / "site")
    host.path = [str(tmp_path / "x.zip"), *host.path]
    sources = []
    for code in ("X = 1", "X = 1", "X = 2"):
        with ZipFile(tmp_path / "x.zip", "w") as archive:
            for file, text in (("extra.py", code), ("extra-1.0.dist-info/METADATA", METADATA)):
                archive.writestr(ZipInfo(file), text)
        host.cache.clear()
        sources.append(found_by(host)["extra"]["source"])
    assert sources[0] == sources[1] != sources[2]


def bad_zips(tmp_path: Path) -> dict[str, bytes]:
    """Return files that are zip files no more, or such as nobody should read."""
    with ZipFile(tmp_path / "good.zip", "w", ZIP_DEFLATED) as archive:
        archive.writestr("extra-1.0.dist-info/WHEEL", "Tag: py3-none-any\n" * 100)
        archive.writestr("extra-1.0.dist-info/direct_url.json", "{" * 5_000_000)
    good = (tmp_path / "good.zip").read_bytes()
    with ZipFile(tmp_path / "lzma.zip", "w", ZIP_LZMA) as archive:
        archive.writestr("extra-1.0.dist-info/WHEEL", "Tag: py3-none-any\n")
    at = good.index(b"PK\3\4") + 60
    return {
        "empty": b"",
        "cut": good[:-30],
        "damaged data": good[:at] + bytes(20) + good[at + 20 :],
        "damaged table": good[:-60] + bytes(30) + good[-30:],
        "a method that Python does not import": (tmp_path / "lzma.zip").read_bytes(),
        "encrypted": good.replace(b"PK\1\2\x14\3\x14\0\0\0", b"PK\1\2\x14\3\x14\0\1\0"),
        "too far": good[:-6] + b"\xff\xff\xff\x7f" + good[-2:],
    }


BAD = (
    *("empty", "cut", "damaged data", "damaged table", "a method that Python does not import", "encrypted"),
    "too far",
)


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_zip_file_hurts_nothing(tmp_path: Path, kind: str) -> None:
    (tmp_path / "x.zip").write_bytes(bad_zips(tmp_path)[kind])
    host = machine(tmp_path / "root", site=tmp_path / "site")
    host.path = [str(tmp_path / "x.zip"), *host.path]
    assert set(found_by(host)) <= {"extra"}
    take_snapshot(host)


@pytest.mark.parametrize("kind", ["table", "zip64", "distributions"])
def test_a_zip_file_with_more_than_can_be_looked_at_leaves_the_packages_unknown(tmp_path: Path, kind: str) -> None:
    with ZipFile(tmp_path / "x.zip", "w") as archive:
        for number in range(1001 if kind == "distributions" else 1):
            archive.writestr(f"extra{number}-1.0.dist-info/METADATA", "")
    data = (tmp_path / "x.zip").read_bytes()
    if kind == "table":
        data = data[:-10] + b"\xff\xff\xff\x7f" + data[-6:]
    elif kind == "zip64":
        data = data[:-22] + b"PK\6\7" + bytes(16) + data[-22:]
    (tmp_path / "x.zip").write_bytes(data)
    host = machine(tmp_path / "root", site=tmp_path / "site")
    host.path = [str(tmp_path / "x.zip"), *host.path]
    reason = "cannot read a file: a zip file on the import path has too many files to look at"
    assert take_snapshot(host).unavailable["packages"] == {"reason": reason, "code": "unreadable"}


def origin(**changes: Any) -> dict[str, Any]:
    none = {"url": None, "editable": False, "vcs": None, "commit": None, "sha256": None}
    return {**none, **changes}


@pytest.mark.parametrize(
    ("direct_url", "expected"),
    [
        (
            {"url": "https://u:SECRET@h.org/x.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            origin(url="https://h.org/x.git", vcs="git", commit=COMMIT),
        ),
        (
            {
                "url": "https://h.org/x.git",
                "vcs_info": {"vcs": "git", "commit_id": COMMIT},
                "subdirectory": "python/pkg",
            },
            origin(url="https://h.org/x.git", vcs="git", commit=COMMIT, subdirectory="python/pkg"),
        ),
        *(
            (
                {"url": "https://h.org/x.git", "vcs_info": {"vcs": "git"}, "subdirectory": folder},
                origin(url="https://h.org/x.git", vcs="git", subdirectory=NO_FOLDER),
            )
            for folder in ("../x", "/home/SECRET", "a\u202e", "", 7, "x" * 201)
        ),
        (
            {"url": "https://h.org/x-1.0.whl?t=SECRET#SECRET", "archive_info": {"hashes": {"sha256": DIGEST}}},
            origin(url="https://h.org/x-1.0.whl", sha256=DIGEST),
        ),
        (
            {"url": "https://h.org/x-1.0.whl", "archive_info": {"hash": f"sha256={DIGEST}"}},
            origin(url="https://h.org/x-1.0.whl", sha256=DIGEST),
        ),
        (
            {"url": "https://h.org/x-1.0.whl", "archive_info": {"hash": "md5=SECRET"}},
            origin(url="https://h.org/x-1.0.whl"),
        ),
        (
            {"url": "git@h.org:team/x.git", "vcs_info": {"vcs": "git", "commit_id": "main"}},
            origin(url="ssh://git@h.org/team/x.git", vcs="git"),
        ),
        ({"url": "file:///home/SECRET/src", "dir_info": {}}, origin(url="file:")),
        (
            {"url": "file:///home/SECRET/x-1.0-py3-none-any.whl", "archive_info": {}},
            origin(url="file:x-1.0-py3-none-any.whl"),
        ),
        ({"url": "https://h.org/\u202e", "dir_info": {}}, origin()),
        ({"url": "https://h.org/x", "vcs_info": {"vcs": "g\x1bt", "commit_id": 7}}, origin(url="https://h.org/x")),
        ({}, MALFORMED),
        ([], MALFORMED),
        ({"url": None}, MALFORMED),
        ({"url": 7}, MALFORMED),
        ({"url": "https://h.org", "dir_info": None}, MALFORMED),
        ({"url": "https://h.org", "vcs_info": "git"}, MALFORMED),
        ({"url": "https://h.org", "archive_info": {"hashes": ["sha256"]}}, MALFORMED),
        ({"url": "https://h.org", "archive_info": {"hash": 7}}, MALFORMED),
    ],
)
def test_where_a_package_came_from(direct_url: Any, expected: Any, tmp_path: Path) -> None:
    distribution(tmp_path / "site", "mine", "1.0", {"direct_url.json": json.dumps(direct_url)})
    assert found(tmp_path) == {"mine": facts(origin=expected)}


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"NaN", b'{"url": "a", "url": "b"}', b"[" * 9999])
def test_a_direct_url_that_is_no_json(text: bytes, tmp_path: Path) -> None:
    distribution(tmp_path / "site", "mine", "1.0", {"direct_url.json": text})
    assert found(tmp_path) == {"mine": facts(origin=MALFORMED)}


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://h.org/a/b", "https://h.org/a/b"),
        ("https://h.org:8443/a", "https://h.org:8443/a"),
        ("https://SECRET@h.org/a", "https://h.org/a"),
        ("https://u:SECRET@h.org", "https://h.org"),
        ("https://u:p@SECRET@h.org/a", "https://h.org/a"),
        ("git+ssh://git@h.org/a.git", "git+ssh://git@h.org/a.git"),
        ("ssh://git@h.org/a.git", "ssh://git@h.org/a.git"),
        ("ssh://git:SECRET@h.org:2222/a.git", "ssh://git@h.org:2222/a.git"),
        ("ssh://alice@h.org/a.git", "ssh://h.org/a.git"),
        ("ssh://git%3ASECRET@h.org/a.git", "ssh://h.org/a.git"),
        ("https://git@h.org/a.git", "https://h.org/a.git"),
        ("git@h.org:team/x.git", "ssh://git@h.org/team/x.git"),
        ("git@h.org:/srv/x.git", "ssh://git@h.org/srv/x.git"),
        ("git@h.org:SECRET@x/y", None),
        ("git@h.org:2222:x", None),
        ("git@h.org", None),
        ("git@SECRET:p@h.org:x", None),
        ("https://u:SECRET%40w@h.org/a", "https://h.org/a"),
        ("https://u%2F:SECRET%3A%2F%25@h.org:8443/a", "https://h.org:8443/a"),
        ("https://h%2Eorg/a", None),
        ("https://h.org/a?token=SECRET", "https://h.org/a"),
        ("https://h.org/a#SECRET", "https://h.org/a"),
        ("https://h.org?SECRET", "https://h.org"),
        ("https://u:SECRET#x@h.org/a", None),
        ("https://u:SECRET?x@h.org/a", None),
        ("https://u:SECRET/x@h.org/a", None),
        ("https://SECRET/x@h.org/a", None),
        ("https:/u:SECRET@h.org/a", None),
        ("SECRET", None),
        ("u@h.org:SECRET", None),
        ("SECRET/x://h.org", None),
        ("HTTPS://u:SECRET@h.org/a", "https://h.org/a"),
        ("FILE:///home/SECRET/src", "file:"),
        ("git+file:///home/SECRET/src", "file:"),
        ("Git+File:///home/SECRET/x-1.0.tar.gz", "file:x-1.0.tar.gz"),
        ("https://user%3ASECRET%40host/a", None),
        ("https://u:SECRET/x%40h.org/a", None),
        ("https://u:SECRET/a", None),
        ("https://h.org/a%2Fb", "https://h.org/a%2Fb"),
        ("https://[::1]:8443/a", "https://[::1]:8443/a"),
        ("https://h.org/\n", None),
        ("https://h.org/é", None),
        ("", None),
    ],
)
def test_a_public_url_has_no_credentials(url: str, public: str | None) -> None:
    assert strip_url_secrets(url) == public


PIECES = st.text(st.sampled_from("@:/?#.-%[]ab1"), max_size=8)


@given(before=PIECES, after=PIECES, scheme=st.sampled_from(["https://", "git+https://", "ssh://"]))
def test_what_stands_before_an_at_sign_is_never_kept(before: str, after: str, scheme: str) -> None:
    public = strip_url_secrets(f"{scheme}{before}SECRET{after}@h.org/x.git")
    assert public is None or "SECRET" not in public


@pytest.mark.parametrize(
    ("files", "commit"),
    [
        ({".git/HEAD": COMMIT + "\n"}, COMMIT),
        ({".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": COMMIT + "\n"}, COMMIT),
        (
            {".git/HEAD": "ref: refs/heads/a/b\n", ".git/packed-refs": PACKED},
            COMMIT,
        ),
        (
            {
                ".git": "gitdir: repo/worktrees/w\n",
                "repo/worktrees/w/HEAD": "ref: refs/heads/w\n",
                "repo/worktrees/w/commondir": "../..\n",
                "repo/refs/heads/w": COMMIT,
            },
            COMMIT,
        ),
        ({".git/HEAD": "ref: refs/heads/unborn\n"}, None),
        ({".git/HEAD": "ref: ../secret\n", "secret": COMMIT}, None),
        ({".git/HEAD": "ref: /etc/passwd\n"}, None),
        ({".git/HEAD": "garbage"}, None),
        ({".git/HEAD": ""}, None),
        ({".git/config": ""}, None),
        ({".git": "gitdir: nowhere\n"}, None),
        ({".git": "nothing of the kind"}, None),
        ({".git": "gitdir: a\0b"}, None),
        ({"setup.py": ""}, None),
    ],
)  # fmt: skip
def test_the_commit_of_an_editable_package(files: dict[str, str | bytes], commit: str | None, tmp_path: Path) -> None:
    source = write(tmp_path / "my source", files)
    direct_url = {"url": source.as_uri(), "dir_info": {"editable": True}}
    distribution(tmp_path / "site", "mine", "1.0", {"direct_url.json": json.dumps(direct_url)})
    here = found(tmp_path)["mine"]
    assert here["origin"] == origin(url="file:", editable=True, commit=commit)


@given(st.text(st.sampled_from("Aa-_.0"), min_size=1).filter(lambda name: name.strip("-_.")))
def test_a_normal_name_is_its_own_normal_name(name: str) -> None:
    assert normalise(normalise(name)) == normalise(name) == normalise(name.replace("_", ".-").upper())


@pytest.mark.parametrize(
    "files",
    [
        {"WHEEL": "Tag: nonsense\n"},
        {"WHEEL": "Tag: \n"},
        {"WHEEL": b"Tag: \xff-\xff-\xff\n"},
        {"WHEEL": "Tag: a-b-c\x1b\n"},
        {"WHEEL": f"Tag: {'a' * 300}-b-c\n"},
        {"INSTALLER": "\x1b[2J"},
        {"INSTALLER": b"\xff"},
        {"INSTALLER": "x" * 99},
        {"direct_url.json": json.dumps({"url": "https://h.org/" + "x" * 2000})},
    ],
)
def test_garbage_in_metadata_never_keeps_a_lock_from_being_made(files: dict[str, str | bytes], tmp_path: Path) -> None:
    distribution(tmp_path / "site", "mine", "1.0", files)
    lock = capture(live=take_snapshot(machine(tmp_path / "root", site=tmp_path / "site")))
    assert b'"mine": {' in dump(lock)


@pytest.mark.parametrize("version", ["1.0\n", "$(rm)", "1.0;x", "x" * 129, "\u0661", "-1"])
def test_a_version_that_is_none_never_keeps_a_lock_from_being_made(version: str, tmp_path: Path) -> None:
    distribution(tmp_path / "site", "mine", version)
    distribution(tmp_path / "site", "mine", version + "x")
    lock = capture(live=take_snapshot(machine(tmp_path / "root", site=tmp_path / "site")))
    assert [path for path in lock.unavailable if path.startswith("packages")] == ["packages.mine.version"]
