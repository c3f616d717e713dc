"""Builds of Python that are newer than the table: found in the newest release, or a warning that says why not."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.image.bases.choose import candidates
from envlock.image.bases.needs import BaseNeeds
from envlock.image.images import refresh_tables
from envlock.packages.archives import MIRROR, fetch_python, find_newest_python
from envlock.reports.progress import Silent
from envlock.runtime.errors import OutsideError
from tests.image.bases.asking import TABLES
from tests.packages.web.hostile import Hostile, Request, answer, hostile

pytestmark = pytest.mark.network

DAY = "20991231"
BUILD = f"cpython-3.13.99+{DAY}-x86_64-unknown-linux-gnu-install_only"
LATEST = json.dumps({"version": 1, "tag": DAY, "release_url": "http://elsewhere.invalid/", "asset_url_prefix": "/"})
SUMS = f"{'a1' * 32}  {BUILD}.tar.gz\n{'b2' * 32}  {BUILD}_stripped.tar.gz\n{'c3' * 32}  LICENSE\n"
ASKED = BaseNeeds(
    tensorflow="2.21.0", python="3.13.99", compiler="Clang 30.1.0", os="ubuntu 24.04", libc="2.39", machine="x86_64"
)


def serving(**files: str | bytes) -> Callable[[Request, socket.socket], None]:
    """Return what serves a mirror: `latest` and `sums`, each as a body or as a whole answer."""
    names = {"/pbs/latest-release.json": files.get("latest", LATEST), f"/pbs/{DAY}/SHA256SUMS": files.get("sums", SUMS)}

    def reply(request: Request, sock: socket.socket) -> None:
        found = names.get(request.path, answer(b"", "404 Not Found"))
        sock.sendall(found if isinstance(found, bytes) else answer(found.encode("latin-1")))

    return reply


def mirror(server: Hostile) -> dict[str, str]:
    return {MIRROR: server.url("/pbs/")}


@pytest.mark.parametrize(("sums", "sha256", "stripped"), [(SUMS, "b2" * 32, True), (SUMS[:-300], "a1" * 32, False)])
def test_the_stripped_build_of_the_newest_release_else_the_other(sums: str, sha256: str, stripped: bool) -> None:
    sums = sums if stripped else SUMS.partition("\n")[0] + "\n"
    with hostile(serving(sums=sums)) as server:
        found = find_newest_python("3.13.99", "x86_64", mirror(server))
    assert [each.path for each in server.requests] == ["/pbs/latest-release.json", f"/pbs/{DAY}/SHA256SUMS"]
    assert (found.file, found.sha256) == (f"{BUILD}{'_stripped' if stripped else ''}.tar.gz", sha256)
    assert (found.stripped, found.compiler) == (stripped, None)


def test_without_a_mirror_the_makers_are_asked() -> None:
    table = TABLES.standalone
    assert table.make_url(f"{BUILD}.tar.gz") == f"{table.releases}/{DAY}/{BUILD.replace('+', '%2B')}.tar.gz"
    assert table.make_url(f"{BUILD}.tar.gz", "http://m/").startswith(f"http://m/{DAY}/cpython")


LIST = "it is not a list of SHA-256 digests, with each file once"
HOSTILE = [
    ({"latest": answer(b"", "404 Not Found")}, "{latest} answered 404 (Not Found)"),
    ({"latest": answer(b"", "403 Forbidden")}, "{latest} answered 403 (Forbidden)"),
    ({"latest": "<html>"}, "{latest} sent an unreadable answer: it is not JSON (line 1, column 1: a value is missing)"),
    ({"latest": "[" * 100_000}, "{latest} sent an unreadable answer: it is nested too deeply"),
    *(
        ({"latest": text}, "{latest} sent an unreadable answer: its `tag` is not the day of a release")
        for text in ("[]", "{}", '{"tag": 20991231}', '{"tag": "../../etc"}', '{"tag": "2099123\\u0663"}')
    ),
    (
        {"latest": answer(Content_Length=str(10**9))},
        "{latest} sent more than 4194304 bytes, which is too much",
    ),
    ({"sums": answer(b"", "404 Not Found")}, "{sums} answered 404 (Not Found)"),
    ({"sums": "<html>\n"}, f"{{sums}} sent an unreadable answer: {LIST}"),
    ({"sums": SUMS + SUMS}, f"{{sums}} sent an unreadable answer: {LIST}"),
    ({"sums": SUMS.replace("b2", "B2")}, f"{{sums}} sent an unreadable answer: {LIST}"),
    ({"sums": SUMS.replace("b2b2", "b2")}, f"{{sums}} sent an unreadable answer: {LIST}"),
    ({"sums": "\u00ff\x1b[31m  x\n"}, f"{{sums}} sent an unreadable answer: {LIST}"),
    ({"sums": ""}, f"release {DAY} of python-build-standalone, the newest one, has no Python 3.13.99 for x86_64"),
]


@pytest.mark.parametrize(("files", "message"), HOSTILE)
def test_what_no_release_says_is_refused(files: dict[str, str | bytes], message: str) -> None:
    with hostile(serving(**files)) as server:
        with pytest.raises(OutsideError) as raised:
            find_newest_python("3.13.99", "x86_64", mirror(server))
        latest, sums = server.url("/pbs/latest-release.json"), server.url(f"/pbs/{DAY}/SHA256SUMS")
    assert raised.value.message == message.format(latest=latest, sums=sums)
    assert raised.value.hint


class Said(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


def test_a_build_that_the_table_lacks_becomes_a_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Said()
    with hostile(serving()) as server:
        monkeypatch.setenv(MIRROR, mirror(server)[MIRROR])
        found = candidates(ASKED, refresh_tables(ASKED, said))[0]
    assert found.python_archive is not None
    assert (found.python_archive.file, found.python_archive.sha256) == (f"{BUILD}_stripped.tar.gz", "b2" * 32)
    assert (found.mismatches, said.lines) == ((), [])
    assert candidates(ASKED, TABLES)[0].python_archive is None


def test_where_it_cannot_be_had_the_tables_stand_and_a_warning_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Said()
    with hostile(serving(sums="")) as server:
        monkeypatch.setenv(MIRROR, mirror(server)[MIRROR])
        assert refresh_tables(ASKED, said) is TABLES
    assert said.lines == [
        f"warning: release {DAY} of python-build-standalone, the newest one, has no Python 3.13.99 for x86_64; "
        "update envlock, whose table may have it, or capture with a Python that is in the table"
    ]


@pytest.mark.parametrize(
    "known",
    [
        {"python": "3.13.9"},
        {"compiler": "GCC 13.2.0"},
        {"compiler": None},
        {"python": None},
        {"python": "3.14.0rc1"},
        {"python": "3.13"},
    ],
)
def test_nobody_is_asked_for_what_is_known_or_no_release(
    known: dict[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with hostile(serving()) as server:
        monkeypatch.setenv(MIRROR, mirror(server)[MIRROR])
        assert refresh_tables(replace(ASKED, **known)) is TABLES  # type: ignore[arg-type]
    assert server.requests == []


def test_an_archive_must_be_the_one_that_was_named(tmp_path: Path) -> None:
    body = b"an archive"
    with hostile(lambda request, sock: sock.sendall(answer(body))) as server:
        with pytest.raises(OutsideError) as raised:
            fetch_python(f"{BUILD}.tar.gz", "ab" * 32, tmp_path, mirror(server))
        assert raised.value.message.startswith(
            f"cannot download {BUILD}.tar.gz: {server.url('/pbs/')}{DAY}/cpython-3.13.99%2B"
        )
        assert list(tmp_path.iterdir()) == []
        assert fetch_python(f"{BUILD}.tar.gz", hashlib.sha256(body).hexdigest(), tmp_path, mirror(server))
        assert not fetch_python(f"{BUILD}.tar.gz", "ab" * 32, tmp_path, mirror(server)), "it is there"
    assert (tmp_path / f"{BUILD}.tar.gz").read_bytes() == body
