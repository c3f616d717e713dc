"""What pip is asked for, and what is made of its answers: over real sockets, with the pip beside envlock."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envlock.lock.document import validate
from envlock.packages.index import (
    NoWheelError,
    Offer,
    PackageIndex,
    Target,
    Wanted,
    _list_uv_indexes,
    make_target,
)
from envlock.packages.local_wheels import Workshop
from envlock.packages.proofs import NO_WHEEL
from envlock.packages.sources import Source
from envlock.runtime.errors import OutsideError, UsageError
from tests.locks import document
from tests.packages.projects import make_archive
from tests.packages.server import IndexServer, index_server
from tests.packages.wheels import make_wheel

THING = Wanted("thing", "1.0")
WHEEL = "thing-1.0-py3-none-any.whl"
TARGET = Target("3.11", "cp311", ("manylinux2014_x86_64",))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[IndexServer]:
    """Return a running index with two wheels."""
    for name in ("thing", "other"):
        make_wheel(tmp_path / "index", name)
    with index_server(tmp_path / "index") as running:
        yield running


@pytest.fixture
def index(server: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PackageIndex:
    """Return it as pip asks it, once."""
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_RESUME_RETRIES", "0")
    monkeypatch.setenv("ENVLOCK_INDEX_URL", server.url)
    return PackageIndex(TARGET, tmp_path / "cache")


@pytest.mark.slow
def test_what_an_index_has_is_downloaded_once(index: PackageIndex, server: IndexServer) -> None:
    asked = [THING, Wanted("other", "1.0"), Wanted("none", "1.0"), Wanted("--index-url", "1.0"), Wanted("a", "1\n-i x")]
    found = index.find(asked)
    thing = found["thing"]
    assert isinstance(thing, Offer)
    sha256 = hashlib.sha256((server.folder / WHEEL).read_bytes()).hexdigest()
    assert (thing.name, thing.sha256, thing.path.parent.name) == (WHEEL, sha256, sha256)
    assert (thing.url, thing.index_url, thing.yanked) == (server.file_url(WHEEL), server.url, False)
    assert isinstance(found["other"], Offer)
    assert isinstance(found["none"], NoWheelError)
    assert str(found["none"]) == NO_WHEEL
    assert isinstance(found["--index-url"], NoWheelError)
    assert isinstance(found["a"], NoWheelError)
    requests = len(server.requests)
    assert index.fetch([THING._replace(sha256=sha256)]) == {"thing": thing._replace(url="", index_url="")}
    assert len(server.requests) == requests


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("500", "too many 500 error responses"),
        ("private", "cannot be read: 401 Client Error"),
        ("garbage", "pip exited with code 2"),
        (
            "redirect loop",
            "pip exited with code 1: Could not install packages due to an OSError",
        ),
        ("wrong hash", "pip exited with code 1: THESE PACKAGES DO NOT MATCH THE HASHES"),
        ("endless page", "an index sends a file of more than 8 GiB or a page of 0.1"),
        ("endless file", "an index sends a file of more than 0.001 GiB or a page of 1"),
    ],
)
def test_an_index_in_trouble_is_not_one_without_the_package(
    index: PackageIndex, server: IndexServer, trouble: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trouble == "endless page":
        monkeypatch.setattr("envlock.packages.index.MOST_MEMORY", 0.1)
    if trouble == "endless file":
        monkeypatch.setattr("envlock.packages.index.LARGEST_FILE", 0.001)
    server.troubles.add(trouble)
    try:
        (error,) = index.find([THING]).values()
    except OutsideError as raised:
        error = raised
    assert isinstance(error, OutsideError)
    assert not isinstance(error, NoWheelError)
    assert message in error.message
    assert error.message.isprintable()


@pytest.mark.slow
def test_a_login_is_used_and_never_shown(
    index: PackageIndex, server: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.troubles.add("private")
    monkeypatch.setenv("ENVLOCK_INDEX_URL", server.url.replace("://", "://user:s3cret@"))
    found = index.find([THING])
    assert isinstance(found["thing"], Offer)
    assert "s3cret" not in repr(found)
    server.troubles.add("500")
    with pytest.raises(OutsideError) as caught:
        index.find([THING])
    assert "s3cret" not in str(caught.value)


def test_where_uv_looks_is_told_to_pip(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[[tool.uv.index]]\nname = "own"\nurl = "https://own.example/simple"\n'
        '[[tool.uv.index]]\nurl = "https://first.example/simple"\ndefault = true\n'
        '[[tool.uv.index]]\nurl = "https://flat.example/"\nformat = "flat"\n'
    )
    environ = {
        "UV_INDEX": "more=https://more.example/simple",
        "UV_INDEX_OWN_USERNAME": "me@here",
        "UV_INDEX_OWN_PASSWORD": "s3cret",
    }
    assert list(_list_uv_indexes(environ, tmp_path)) == [
        ("--extra-index-url", "https://more.example/simple"),
        ("--extra-index-url", "https://me%40here:s3cret@own.example/simple"),
        ("--index-url", "https://first.example/simple"),
        ("--find-links", "https://flat.example/"),
    ]


@pytest.mark.parametrize("address", ["https://x.example/ --pre", "https://x.example/\n--pre", "https://x.example/'"])
def test_an_address_is_never_an_option(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "uv.toml").write_text(f"[[index]]\nurl = {json.dumps(address)}\n")
    with pytest.raises(UsageError) as caught:
        PackageIndex(TARGET, tmp_path).list_options()
    assert "x.example" not in str(caught.value)


@pytest.mark.parametrize(
    ("facts", "version", "abi"),
    [
        ({"version": "3.12.4", "abi": "cpython-312-x86_64-linux-gnu"}, "3.12", "cp312"),
        ({"version": "3.14.0", "abi": "cpython-314t-x86_64-linux-gnu"}, "3.14", "cp314t"),
        ({"version": "3.10.13", "abi": "pypy310-pp73"}, "3.10", "pypy310_pp73"),
        ({"version": "3.9.2"}, "3.9", "cp39"),
    ],
)
def test_wheels_are_for_the_locked_python(facts: dict[str, str], version: str, abi: str) -> None:
    lock = validate(document(facts={"python": {"implementation": "cpython", **facts}}, unavailable={}), "of a test")
    assert make_target(lock, ["any"]) == Target(version, abi, ("any",))


CONFIG = """
[global]
quiet = 3
require-hashes = true
require-virtualenv = true
no-index = true
extra-index-url = https://127.0.0.1:9/simple
find-links = {links}
requirement = {links}/other.txt
constraint = {links}/other.txt
editable = {links}
platform = win32
abi = cp35m
[install]
user = true
"""


@pytest.mark.slow
def test_settings_of_pip_change_neither_what_is_asked_nor_what_it_tells(
    index: PackageIndex, server: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(tmp_path / "links", "linked")
    make_wheel(server.folder, "foreign").rename(server.folder / "foreign-1.0-cp311-cp35m-win32.whl")
    (tmp_path / "links" / "other.txt").write_text("thing==2.0\nother==2.0\n")
    (tmp_path / "pip.conf").write_text(CONFIG.format(links=tmp_path / "links"))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.delenv("PIP_FIND_LINKS")
    names = ["thing", "linked", "foreign"]
    found = index.find([Wanted(name, "1.0") for name in names])
    assert [isinstance(found[name], Offer) for name in names] == [True, False, False]
    assert {type(found[name]) for name in names[1:]} == {NoWheelError}
    server.troubles.add("private")
    with pytest.raises(OutsideError, match="401 Client Error"):
        index.find([Wanted("thing", "1.1")])


@pytest.mark.slow
def test_a_wheel_of_a_folder_is_of_no_index(
    index: PackageIndex, server: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path / "links", "linked")
    monkeypatch.delenv("ENVLOCK_INDEX_URL")
    monkeypatch.setenv("PIP_INDEX_URL", server.url)
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    found = index.find([Wanted("linked", "1.0")])["linked"]
    assert isinstance(found, Offer)
    assert (found.url, found.index_url) == (wheel.as_uri(), "")


@pytest.mark.slow
def test_sources_are_built_from_the_same_indexes(
    index: PackageIndex, server: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_archive(server.folder, "packed")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    workshop = Workshop(Path(sys.executable), index.cache, build=True, index=index)
    made = workshop.wheel("packed", Source("requirement", "packed==1.0"))
    assert made is not None
    assert made.path.name == "packed-1.0-py3-none-any.whl"
