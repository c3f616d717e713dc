"""What an index offers: both forms of the Simple API, folders, and pages that are something else."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envlock.packages.indexes import page as module
from envlock.packages.indexes.index_settings import Index
from envlock.packages.indexes.page import IndexFile, list_index_files
from envlock.web.client import Client
from envlock.web.web_errors import PASSWORD, WebError
from tests.packages.server import IndexServer
from tests.packages.wheels import make_wheel
from tests.web.hostile import always, answer, hostile

pytestmark = pytest.mark.network

DIGEST = "a" * 64


def _expected(server: IndexServer, wheel: Path, *, size: bool) -> IndexFile:
    return IndexFile(
        name=wheel.name,
        url=server.file_url(wheel.name),
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        size=wheel.stat().st_size if size else None,
        index_url=server.url,
    )


@pytest.mark.parametrize(
    ("trouble", "size"), [(None, True), ("html only", False), ("mislabelled", True), ("429", True)]
)
def test_both_forms_say_the_same(client: Client, index: IndexServer, trouble: str | None, size: bool) -> None:
    wheels = [make_wheel(index.folder, "Some_Thing", version) for version in ("1.0", "2.0")]
    index.troubles |= {trouble} if trouble else set()
    found = list_index_files(client, Index(index.url), "some.THING")
    assert found == [_expected(index, wheel, size=size) for wheel in wheels]
    assert index.requests[-1].path == "/simple/some-thing/"
    assert index.requests[-1].headers["accept"].startswith("application/vnd.pypi.simple.v1+json,")


def test_mislabelled_html_is_read_as_html(client: Client, index: IndexServer) -> None:
    wheel = make_wheel(index.folder)
    index.troubles |= {"mislabelled", "html only"}
    assert list_index_files(client, Index(index.url), "thing") == [_expected(index, wheel, size=False)]


def test_a_project_that_the_index_does_not_know(client: Client, index: IndexServer) -> None:
    assert list_index_files(client, Index(index.url.rstrip("/")), "unknown") == []


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (
            "login page",
            "is not a page of a package index: it is a web page without links to packages, such as a login page",
        ),
        ("garbage", "is not a page of a package index: it is neither JSON nor HTML"),
        ("500", "answered 500 (Internal Server Error)"),
        ("redirect loop", "redirects more than 5 times"),
        ("private", "answered 401 (Unauthorized)"),
        ("slow loris", "is too slow: it "),
    ],
)
def test_an_index_in_trouble(client: Client, index: IndexServer, trouble: str, message: str) -> None:
    make_wheel(index.folder)
    index.troubles.add(trouble)
    with pytest.raises(WebError) as caught:
        list_index_files(client, Index(index.url), "thing")
    assert caught.value.message.startswith(f"{index.url}thing/ {message}")
    assert (caught.value.hint == PASSWORD) == (trouble == "private")


def _page(client: Client, body: bytes | dict[str, Any], path: str = "/simple/") -> list[IndexFile]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    with hostile(always(answer(data))) as server:
        found = list_index_files(client, Index(server.url(path)), "thing")
    return [
        IndexFile(**{**vars(file), "url": file.url.replace(server.url(""), "HOST"), "index_url": ""}) for file in found
    ]


def _json(**row: Any) -> dict[str, Any]:
    whole = {"filename": "thing-1-py3-none-any.whl", "url": "/t.whl", "hashes": {}, **row}
    return {"meta": {"api-version": "1.0"}, "name": "thing", "files": [whole]}


def test_what_html_can_say(client: Client) -> None:
    body = f"""<base href="/other/"><!-- <a href="no-1.tar.gz"> -->
    <a href="thing-1.tar.gz#sha256={DIGEST.upper()}" data-gpg-sig="true" data-yanked="broken">any text</a>
    <A HREF='https://user:pw@files.example.org/x/thing-1%2Bcu-py3-none-any.whl?token=1#md5=0'
    data-dist-info-metadata="true" data-core-metadata="sha256={DIGEST}">thing</A>
    <a href="mailto:a@b">x</a><a>none</a><a href="thing-2.zip">unclosed
    """.encode()
    assert _page(client, body) == [
        IndexFile("thing-1.tar.gz", "HOST/other/thing-1.tar.gz", sha256=DIGEST, yanked=True),
        IndexFile(
            "thing-1+cu-py3-none-any.whl",
            "https://files.example.org/x/thing-1%2Bcu-py3-none-any.whl?token=1",
            metadata_sha256=DIGEST,
        ),
        IndexFile("thing-2.zip", "HOST/other/thing-2.zip"),
    ]


def test_what_json_can_say(client: Client) -> None:
    body = _json(
        url="../x/t.whl",
        hashes={"sha256": DIGEST, "blake2b": "0"},
        size=7,
        yanked="broken",
        **{"core-metadata": {"sha256": DIGEST}, "dist-info-metadata": True, "gpg-sig": False, "new": [1]},
    )
    body["meta"]["api-version"] = "1.999"
    name = "thing-1-py3-none-any.whl"
    assert _page(client, body) == [IndexFile(name, "HOST/simple/x/t.whl", DIGEST, 7, True, DIGEST)]


@pytest.mark.parametrize(
    "row",
    [
        {"url": "file:///etc/passwd"},
        {"url": "ftp://example.org/x.whl"},
        {"url": "javascript:alert(1)"},
        {"url": "http://host:port/x"},
        {"filename": "../../thing.whl"},
        {"filename": "/thing.whl"},
        {"filename": "thing\n.whl"},
        {"filename": "thing\0.whl"},
        {"filename": ".."},
        {"filename": ""},
        {"filename": "x" * 300},
        {"filename": "thing-1\u202e-py3-none-any.whl"},
        {"filename": "thing-1-py3-none-any\ud800.whl"},
        {"url": "https://files.example/\ud800.whl"},
    ],
)
def test_files_that_lead_elsewhere_are_not_offered(client: Client, row: dict[str, str]) -> None:
    good = _json()["files"][0]
    body = _json(**row)
    body["files"].append(good)
    assert [file.name for file in _page(client, body)] == [good["filename"]]


@pytest.mark.parametrize(
    ("page", "link", "offered"),
    [
        ("https://index.example/simple/", "https://files.example/thing-1-py3-none-any.whl", True),
        ("https://index.example/simple/", "http://index.example/thing-1-py3-none-any.whl", False),
        ("https://index.example/simple/", "http://mitm.example/thing-1-py3-none-any.whl", False),
        ("http://index.example/simple/", "http://files.example/thing-1-py3-none-any.whl", True),
        ("http://index.example/simple/", "http://169.254.169.254/thing-1-py3-none-any.whl", False),
        ("https://index.example/simple/", "https://127.0.0.1/thing-1-py3-none-any.whl", False),
        ("https://index.example/simple/", "https://localhost:8443/thing-1-py3-none-any.whl", False),
        ("https://index.example/simple/", "https://[::1]/thing-1-py3-none-any.whl", False),
        ("https://index.example/simple/", "https://[::ffff:127.0.0.1]/thing-1-py3-none-any.whl", False),
        ("https://index.example/simple/", "https://[fe80::1%25eth0]/thing-1-py3-none-any.whl", False),
        ("https://index.example/simple/", "https://0.0.0.0/thing-1-py3-none-any.whl", False),
        ("https://index.example/simple/", "https://2130706433/thing-1-py3-none-any.whl", False),
        ("https://index.example/simple/", "https://0x7f.1/thing-1-py3-none-any.whl", False),
        ("http://127.0.0.1:8080/simple/", "http://127.0.0.1:9090/thing-1-py3-none-any.whl", True),
        ("https://index.example/simple/", "https://10.0.0.7/thing-1-py3-none-any.whl", True),
    ],
)
def test_a_page_offers_nothing_in_clear_or_at_this_machines_own_addresses(page: str, link: str, offered: bool) -> None:
    body = f'<a href="{link}">thing-1-py3-none-any.whl</a>'.encode()
    assert bool(module._page(body, page, Index(page), "thing")) is offered


@pytest.mark.parametrize("digest", ["", "a" * 63, "z" * 64, "../" * 20])
def test_a_hash_that_is_none_is_not_taken_for_one(client: Client, digest: str) -> None:
    assert _page(client, _json(hashes={"sha256": digest}))[0].sha256 is None


NO_PAGE = "is not a page of a package index: "


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "it is neither JSON nor HTML"),
        (b"Not for you", "it is neither JSON nor HTML"),
        (b"{", "it is not JSON of the Simple API"),
        (b'{"error": 1}', "it is not JSON of the Simple API"),
        (b'{"files": 1, "meta": {"api-version": "1.0"}}', "it is not JSON of the Simple API"),
        (b'{"files": [], "meta": {"api-version": "2.0"}}', "its protocol version is too new"),
        (b'{"files": [[]], "meta": {"api-version": "1.0"}}', "it describes a file in violation of the specification"),
        (b'{"files": [{}], "meta": {"api-version": "1.0"}}', "it describes a file in violation of the specification"),
        (json.dumps(_json(url="http://[/x")).encode(), "it describes a file in violation of the specification"),
        (b'{"a":' * 100_000, "it is not JSON of the Simple API"),
        (b'<meta name="pypi:repository-version" content="2.0">', "its protocol version is too new"),
        (b'<meta name="pypi:repository-version" content="soon">', "its HTML cannot be read"),
        (b"<html>Welcome", "it is a web page without links to packages, such as a login page"),
        (b'<a href="http://[/thing-1.whl">', "its HTML cannot be read"),
        (b"<html>" + b"<a " * 20_000, "its HTML cannot be read"),
    ],
)
def test_what_is_no_page_of_an_index(client: Client, body: bytes, why: str) -> None:
    with hostile(always(answer(body))) as server, pytest.raises(WebError) as caught:
        list_index_files(client, Index(server.url("/?token=s3cret")), "thing")
    assert caught.value.message == f"{server.url('/')} {NO_PAGE}{why}"


@pytest.mark.parametrize(
    "head", [b"<title>Links for thing</title>", b'<meta name="pypi:repository-version" content="1.0">']
)
def test_a_page_without_files_is_one(client: Client, head: bytes) -> None:
    assert _page(client, b"<!DOCTYPE html>" + head) == []


@given(st.binary(max_size=300) | st.text(alphabet="<a href=>\"'!-/&#;[]{}:", max_size=200).map(str.encode))
def test_no_page_is_a_bug(body: bytes) -> None:
    found = []
    with suppress(WebError):
        found = module._page(body, "http://127.0.0.1/simple/thing/", Index("http://127.0.0.1/simple/"), "thing")
    assert all(file.url.startswith(("http:", "https:")) for file in found)


HOSTILE = (
    "<a ",
    "<!--",
    "<!-- >",
    "<?",
    "</a ",
    "<a href='",
    "<a/",
    "<![CDATA[",
    "<script>",
    "<div>",
    "<a>",
    "</x>",
    "&",
)


@given(st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=3), st.sampled_from(HOSTILE))
@settings(max_examples=10)
def test_no_page_takes_longer_than_its_length_asks_for(begin: list[str], again: str) -> None:
    """The page of 60 KB that took a minute, and its like: here 100 KB, of which 1 s is allowed for."""
    body = f"<{''.join(begin)}{again * (100_000 // len(again))}".encode()
    start = time.thread_time()
    with suppress(WebError):
        module._page(body, "http://127.0.0.1/simple/thing/", Index("http://127.0.0.1/simple/"), "thing")
    assert time.thread_time() - start < 1


@pytest.mark.parametrize(
    ("limit", "value", "why"),
    [("SECONDS", -1, "reading it took longer than -1 s"), ("FILES", 2, "it offers more than 2 files")],
)
@pytest.mark.parametrize("body", ['<a href="thing-1.zip">' * 3, json.dumps({**_json(), "files": _json()["files"] * 3})])
def test_a_page_that_takes_for_ever_is_given_up(
    body: str, limit: str, value: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, limit, value)
    with pytest.raises(WebError) as caught:
        module._page(body.encode(), "http://host/", Index("http://host/"), "thing")
    assert caught.value.message == f"http://host/ {NO_PAGE}{why}"


def _folder(tmp_path: Path) -> tuple[list[Path], Path]:
    folder = tmp_path / "a folder"
    wheels = [make_wheel(folder, "thing", "1.0"), make_wheel(folder, "thing_else", "1.0")]
    (folder / "thing-0.9.tar.gz").write_bytes(b"sdist")
    (folder / "notes.txt").write_text("no package")
    (folder / "broken.whl").symlink_to(folder / "nowhere")
    return wheels, folder


def test_a_folder_of_files(client: Client, tmp_path: Path) -> None:
    wheels, folder = _folder(tmp_path)
    place = Index(folder.as_uri(), "links")
    assert list_index_files(client, place, "Thing") == [
        IndexFile("thing-0.9.tar.gz", (folder / "thing-0.9.tar.gz").as_uri(), size=5, index_url=place.url),
        IndexFile(wheels[0].name, wheels[0].as_uri(), size=wheels[0].stat().st_size, index_url=place.url),
    ]
    assert [file.name for file in list_index_files(client, place, "thing-else")] == [wheels[1].name]
    assert list_index_files(client, Index((tmp_path / "gone").as_uri(), "links"), "thing") == []


def test_an_index_on_disk(client: Client, tmp_path: Path) -> None:
    place = Index((tmp_path / "simple").as_uri())
    wheel = make_wheel(tmp_path / "simple" / "some-thing", "some_thing")
    page = tmp_path / "simple" / "paged" / "index.html"
    page.parent.mkdir()
    page.write_text(f'<a href="../w/paged-1.zip#sha256={DIGEST}">x</a><a href="http://127.0.0.1/paged-2.zip">x</a>')
    assert [file.url for file in list_index_files(client, place, "some.thing")] == [wheel.as_uri()]
    assert [(file.url, file.sha256) for file in list_index_files(client, place, "paged")] == [
        ((tmp_path / "simple/w/paged-1.zip").as_uri(), DIGEST),
        ("http://127.0.0.1/paged-2.zip", None),
    ]
    assert list_index_files(client, place, "unknown") == []


def test_a_page_of_links_to_files_of_many_projects(client: Client) -> None:
    body = b'<a href="thing-1.tar.gz">a</a><a href="other-1.tar.gz">b</a><a href="thing_else-1-py3-none-any.whl">c</a>'
    with hostile(always(answer(body))) as server:
        found = list_index_files(client, Index(server.url("/links.html"), "links"), "thing")
    assert [file.name for file in found] == ["thing-1.tar.gz"]
    assert server.requests[0].path == "/links.html"
