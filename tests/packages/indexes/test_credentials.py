"""Passwords from the usual places: found, used for their host only, and never printed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from envlock.packages.indexes import credentials as module
from envlock.packages.indexes.credentials import find_credentials, use_keyring
from envlock.packages.indexes.index_settings import Index, choose_indexes
from envlock.packages.indexes.page import list_index_files
from envlock.web.client import Client
from tests.packages.conftest import QUICK
from tests.packages.server import IndexServer
from tests.packages.wheels import make_wheel

pytestmark = pytest.mark.processes

HOST = "https://index.example.org"


def _index(path: str = "/simple", **kwargs: str) -> Index:
    return Index(HOST + path, **kwargs)  # type: ignore[arg-type]


def test_what_stood_in_the_url_counts_for_all_of_its_host() -> None:
    look = find_credentials([_index(user="me", password="pw")], {})
    assert look(f"{HOST}/files/x.whl") == ("me", "pw")
    assert look("https://files.example.org/x.whl") is None
    assert look("http://index.example.org/simple") is None
    assert look(f"{HOST}:8443/simple") is None


def test_the_nearest_of_several_on_one_host() -> None:
    look = find_credentials(
        [_index("/a/simple", user="a", password="1"), _index("/ab/simple", user="b", password="2")], {}
    )
    assert look(f"{HOST}/a/simple/x/") == ("a", "1")
    assert look(f"{HOST}/ab/files/x.whl") == ("b", "2")


@pytest.mark.parametrize(
    ("index", "environ", "expected"),
    [
        (_index(name="my-index"), {"UV_INDEX_MY_INDEX_USERNAME": "u", "UV_INDEX_MY_INDEX_PASSWORD": "p"}, ("u", "p")),
        (_index(name="my.index"), {"UV_INDEX_MY_INDEX_PASSWORD": "p"}, ("", "p")),
        (_index(name="x", user="u"), {"UV_INDEX_X_PASSWORD": "p"}, ("u", "p")),
        (_index(name="x", user="u", password="q"), {"UV_INDEX_X_PASSWORD": "p"}, ("u", "q")),
        (_index(user="token"), {}, ("token", "")),
        (_index(name="x"), {}, None),
        (_index(), {"UV_INDEX__PASSWORD": "p"}, None),
    ],
)
def test_variables_of_uv(index: Index, environ: dict[str, str], expected: tuple[str, str] | None) -> None:
    assert find_credentials([index], {"HOME": "/nowhere", **environ})(HOST) == expected


def test_netrc(tmp_path: Path) -> None:
    file = tmp_path / ".netrc"
    file.write_text("machine index.example.org login me password pw\n")
    for environ in ({"HOME": str(tmp_path)}, {"NETRC": str(file)}):
        assert find_credentials([], environ)(f"{HOST}/simple/") == ("me", "pw")
        assert find_credentials([], environ)("https://other.example.org/") is None
    assert find_credentials([_index(user="you", password="2")], {"NETRC": str(file)})(HOST) == ("you", "2")


def test_the_default_login_of_netrc_goes_to_indexes_only(tmp_path: Path) -> None:
    """A page names the hosts of its files; pip would send it to each of them."""
    file = tmp_path / ".netrc"
    file.write_text("machine files.example.org login me password pw\ndefault login everywhere password secret\n")
    look = find_credentials([_index()], {"NETRC": str(file)})
    hosts = (HOST, "https://files.example.org/thing.whl", "http://127.0.0.2/thing.whl", "https://cdn.example.net/x.whl")
    assert [look(host) for host in hosts] == [("everywhere", "secret"), ("me", "pw"), None, None]


@pytest.mark.parametrize("text", ["machine", "garbage here\n", "\0", "machine x login"])
def test_a_netrc_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / ".netrc").write_text(text)
    assert find_credentials([], {"HOME": str(tmp_path)})(HOST) is None


@pytest.fixture
def fake_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a `keyring` on PATH that notes its calls; return its notes."""
    notes = tmp_path / "notes"
    program = tmp_path / "bin" / "keyring"
    program.parent.mkdir()
    program.write_text(
        f"""#!/bin/sh
echo "$@" >> {notes}
test "$(cut -d' ' -f6 /proc/$$/stat)" = $$ || echo "has a terminal to ask on" >> {notes}
read line && echo answered >> {notes}
case "$*" in
  "get https://index.example.org/simple me") echo s3cret;;
  "--mode creds get plain.example.org") echo you; echo s3cret2;;
  *slow*) exec sleep 600;;
  *) echo "no such entry" >&2; exit 1;;
esac
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return notes


def test_the_keyring_is_asked_once_for_each_host(fake_keyring: Path) -> None:
    ask = use_keyring([_index(user="me"), Index("https://plain.example.org/simple")])
    for _ in range(2):
        assert ask(f"{HOST}/simple/x/") == ("me", "s3cret")
        assert ask("https://plain.example.org/x") == ("you", "s3cret2")
        assert ask("https://unknown.example.org/x") is None
    assert fake_keyring.read_text().splitlines() == [
        f"get {HOST}/simple me",
        "--mode creds get https://plain.example.org/simple",
        "--mode creds get plain.example.org",
        "--mode creds get unknown.example.org",
    ]


def test_a_keyring_that_does_not_answer(fake_keyring: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.3)
    start = time.monotonic()
    assert use_keyring([])("https://slow.example.org/") is None
    assert time.monotonic() - start < 300


def test_no_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert use_keyring([])(HOST) is None


@pytest.mark.network
@pytest.mark.parametrize("way", ["URL", "netrc", "keyring"])
def test_a_private_index(index: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    wheel = make_wheel(index.folder)
    index.troubles.add("private")
    url, environ = index.url, {"HOME": str(tmp_path)}
    if way == "URL":
        url = url.replace("://", "://user:s3cret@")
    elif way == "netrc":
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login user password s3cret\n")
    else:
        program = tmp_path / "keyring"
        program.write_text("#!/bin/sh\necho user; echo s3cret\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = choose_indexes(environ, asked=[url], folder=tmp_path)
    client = Client(
        credentials=find_credentials(found.indexes, environ), last_resort=use_keyring(found.indexes), limits=QUICK
    )
    offered = list_index_files(client, found.indexes[0], "thing")
    assert [file.name for file in offered] == [wheel.name]
    assert "s3cret" not in f"{found}{offered}"
    assert client.get(offered[0].url, limit=10**6).body == wheel.read_bytes()
