"""From an installed wheel to its proof over real HTTP: whatever a hostile or broken index does proves nothing."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from envlock.lock.models import PackageIdentity
from envlock.packages.indexes import online as online_module
from envlock.packages.indexes.index_settings import Index
from envlock.packages.indexes.online import Online
from envlock.packages.installed_distributions import InstalledPackage
from envlock.packages.prover import prove
from envlock.runtime.errors import OutsideError
from envlock.runtime.files.record_rows import get_common_content, parse_rows
from envlock.web.client import Client
from tests.packages.conftest import QUICK
from tests.packages.server import TROUBLES, IndexServer
from tests.packages.wheels import make_wheel, record_in

pytestmark = pytest.mark.network

Ask = Callable[..., PackageIdentity]
SECONDS = 100
"""Much more than any trouble may take with the short limits of these tests, also on a busy machine."""


@pytest.fixture
def wheel(index: IndexServer) -> Path:
    """Return the wheel that is installed; large enough that its RECORD is not all of it."""
    return make_wheel(index.folder, files={"thing.py": b"x = 1\n", "thing.bin": Random(1).randbytes(400_000)})


def sha256(file: Path) -> str:
    """Return what a file's hash is, whatever the index says."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture
def ask(index: IndexServer, client: Client, wheel: Path, tmp_path: Path) -> Ask:
    """Return a function that looks the installed wheel up on the index."""

    def ask(record: bytes | None = None, *, where: Client = client) -> PackageIdentity:
        common = get_common_content(parse_rows((record or record_in(wheel)).decode()))
        each = InstalledPackage("thing", "1.0", ("py3-none-any",), "index", None, common, None)
        online = Online(where, (Index(index.url),), tmp_path / "cache")
        return prove([each], online, known={}).packages["thing"]

    return ask


def test_the_wheel_is_found_by_ranges_read_whole_and_kept(
    ask: Ask, index: IndexServer, wheel: Path, tmp_path: Path
) -> None:
    found = ask()
    assert found.wheel is not None
    assert (found.proof, found.wheel.name, found.wheel.size) == ("file", wheel.name, wheel.stat().st_size)
    assert (found.wheel.url, found.wheel.index) == (index.file_url(wheel.name), index.url)
    assert found.wheel.sha256 == sha256(wheel)
    kept = tmp_path / "cache" / "wheels" / found.wheel.sha256 / wheel.name
    assert kept.read_bytes() == wheel.read_bytes()
    before = len(index.asked("/files/"))
    assert ask() == found
    assert len(index.asked("/files/")) == before + 1  # its RECORD; all else came from the cache


def test_a_wheel_of_other_files_costs_a_part_of_it(ask: Ask, index: IndexServer, wheel: Path) -> None:
    other = record_in(wheel).replace(b"thing.py,sha256=", b"thing.py,sha256=x")
    reason = f"the installed files are not those of {wheel.name}: thing.py has a different hash"
    assert ask(other).reason == reason
    assert all("range" in request.headers for request in index.asked("/files/"))


def test_a_damaged_file_in_the_cache_is_fetched_again(ask: Ask, wheel: Path, tmp_path: Path) -> None:
    found = ask()
    kept = next((tmp_path / "cache").rglob("*.whl"))
    kept.write_bytes(kept.read_bytes()[:-1] + b"?")
    assert ask() == found
    assert kept.read_bytes() == wheel.read_bytes()


HARMLESS = (
    "no hash",
    "html only",
    "mislabelled",
    "no ranges",
    "no suffix ranges",
    "no validators",
    "ignores conditions",
    "other range",
    "429",
)


@pytest.mark.parametrize("trouble", HARMLESS)
def test_what_an_index_may_do_still_proves(ask: Ask, index: IndexServer, trouble: str) -> None:
    index.troubles.add(trouble)
    found = ask()
    assert found.wheel is not None
    assert found.wheel.sha256 == sha256(index.folder / found.wheel.name)


HOSTILE = {
    "wrong hash": "thing: {file} is not the expected file: its sha256 is {sha256}, not {wrong}",
    "wrong size": "thing: {name} has {size} bytes, but its index says {larger}",
    "login page": "thing: {page} is not a page of a package index: it is a web page without links to packages, such "
    "as a login page",
    "garbage": "thing: {page} is not a page of a package index: it is neither JSON nor HTML",
    "truncated range": None,
    "swapped": None,
    "breaks off": None,
    "500": "thing: {page} answered 500 (Internal Server Error)",
    "redirect loop": "thing: {page} redirects more than 5 times",
    "slow loris": None,
    "private": "thing: {page} answered 401 (Unauthorized)",
}
"""Trouble -> the whole message, or None where it depends on which request is hit."""


def test_every_trouble_is_tried() -> None:
    assert set(HOSTILE) | set(HARMLESS) == set(TROUBLES)


@pytest.mark.parametrize("trouble", HOSTILE)
def test_what_is_wrong_is_an_error_in_bounded_time_and_proves_nothing(
    ask: Ask, index: IndexServer, wheel: Path, trouble: str, tmp_path: Path
) -> None:
    index.troubles.add(trouble)
    start = time.monotonic()
    with pytest.raises(OutsideError) as caught:
        ask()
    assert time.monotonic() - start < SECONDS
    assert (caught.value.exit_code, caught.value.hint is None) == (5, False)
    print(f"{trouble}: {caught.value.message}")
    expected = HOSTILE[trouble]
    if expected is not None:
        size, page = wheel.stat().st_size, f"{index.url}thing/"
        hashes = {"sha256": sha256(wheel), "wrong": hashlib.sha256(b"something else").hexdigest()}
        file = {"file": index.file_url(wheel.name), "name": wheel.name, "size": size, "larger": size + 1}
        assert caught.value.message == expected.format(page=page, **hashes, **file)
    assert list((tmp_path / "cache").rglob("*.whl")) == []  # nothing under its name


def test_a_private_index_is_asked_with_the_password_and_nothing_of_it_is_kept(
    index: IndexServer, ask: Ask, tmp_path: Path
) -> None:
    index.troubles.add("private")
    found = ask(where=Client(limits=QUICK, credentials=lambda _: ("user", "s3cret")))
    assert found.wheel is not None
    assert "s3cret" not in found.model_dump_json()


@pytest.mark.processes
def test_the_keyring_opens_a_private_index(
    index: IndexServer, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "keyring"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho user; echo s3cret\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NETRC", raising=False)
    index.troubles.add("private")
    place = online_module.configure_indexes([index.url], tmp_path, tmp_path / "cache")
    assert [file.name for file in place.files("thing")] == [wheel.name]
