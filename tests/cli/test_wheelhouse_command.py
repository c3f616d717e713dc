"""`envlock export --wheelhouse` as a shell sees it, against a server on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.locks import encode
from tests.packages.file_server import files
from tests.packages.identified import doubt, lock_document, proof, wheel
from tests.packages.web.hostile import Hostile, Request, always, answer
from tests.packages.wheels import make_wheel

MADE = [make_wheel(Path(tempfile.mkdtemp()), name) for name in ("aa", "bb")]
CONTENT = {each.name: each.read_bytes() for each in MADE}
AA, BB = CONTENT
PATHS = {f"/files/{name}": content for name, content in CONTENT.items()}
FILL = ("export", "--wheelhouse", "wheelhouse", "-o", "pylock.toml")
AGAIN = "hint: run it again: finished files are kept\n"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Return variables under which no setting of this machine counts."""
    nobody = {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "PIP_NO_INDEX": "1"}
    return {**nobody, "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}


def _lock(folder: Path, server: Hostile, changes: Mapping[str, Any] | None = None, **more: Any) -> None:
    """Write a lock of `aa` and `bb`, and of what else is given."""
    known = {
        name[:2]: proof("1.0", wheel(name, content, **{"url": server.url(f"/files/{name}"), **(changes or {})}))
        for name, content in CONTENT.items()
    }
    (folder / "envlock.lock").write_bytes(encode(lock_document({**known, **more})))


def _house(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (folder / "wheelhouse").iterdir()}


def test_it_fetches_what_is_proven_and_says_what_is_not(
    envlock: Command, tmp_path: Path, environ: dict[str, str]
) -> None:
    with files(PATHS) as server:
        _lock(tmp_path, server, mine=doubt("0.1", "it is an editable install\xa0oops"))
        first = envlock(*FILL, environ=environ)
        second = envlock(*FILL, environ=environ)
        other = envlock("export", "--wheelhouse", "deep/other", "-o", "pylock.toml", environ=environ)
    left_out = "wrote pylock.toml\nerror: 1 package not exported:\n  mine 0.1: it is an editable install\\xa0oops\n"
    assert (first.returncode, first.stdout) == (1, "")
    lines = first.stderr.splitlines(keepends=True)
    assert sorted(lines[:2]) == [f"fetched {AA}\n", f"fetched {BB}\n"]
    assert "".join(lines[2:]) == f"wheelhouse: 2 wheels (2 fetched)\n{left_out}"
    assert (second.returncode, second.stderr) == (1, f"wheelhouse: 2 wheels (2 already there)\n{left_out}")
    assert (other.returncode, other.stderr) == (1, f"deep/other: 2 wheels (2 from the cache)\n{left_out}")
    assert _house(tmp_path) == CONTENT
    assert sorted(request.path for request in server.requests) == sorted(PATHS)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (always(answer(b"", "404 Not Found")), "404"),
        (always(answer(CONTENT[BB])), "DO NOT MATCH THE HASHES"),
    ],
)
def test_a_wheel_that_is_not_the_proven_one_is_not_kept(
    reply: Any, reason: str, envlock: Command, tmp_path: Path, environ: dict[str, str]
) -> None:
    with files(PATHS, {f"/files/{AA}": reply}) as server:
        _lock(tmp_path, server)
        done = envlock(*FILL, environ=environ)
    # A slow machine is also told how far it is.
    lines = done.stderr.splitlines()[-4:]
    assert (done.returncode, done.stdout, lines.pop(0)) == (5, "", "wheelhouse: 1 wheel (1 fetched)")
    assert lines[0].startswith("  aa 1.0: pip exited with code ")
    assert reason in lines[0]
    assert lines[1:] == ["error: 1 of 2 wheels could not be downloaded (listed above)", AGAIN.rstrip("\n")]
    assert _house(tmp_path) == {BB: CONTENT[BB]}
    assert [file.name for file in (tmp_path / "cache").rglob("*.whl")] == [BB]


def test_what_has_no_address_any_more_is_looked_for_by_name_and_hash(
    envlock: Command, tmp_path: Path, environ: dict[str, str]
) -> None:
    """From a folder of the settings where the lock has no address, and where its address is dead."""
    links = tmp_path / "links"
    links.mkdir()
    (links / AA).write_bytes(CONTENT[AA])
    (links / BB).write_bytes(b"another file of that name")
    environ = {**environ, "PIP_FIND_LINKS": str(links)}
    with files({}) as server:
        _lock(tmp_path, server, {"url": None, "index": None})
        nowhere = envlock(*FILL, environ=environ)
        shutil_house = _house(tmp_path)
        (links / BB).write_bytes(CONTENT[BB])
        _lock(tmp_path, server)
        found = envlock(*FILL, environ=environ)
    assert (nowhere.returncode, shutil_house) == (5, {AA: CONTENT[AA]})
    assert "\n  bb 1.0: " in nowhere.stderr
    assert (found.returncode, _house(tmp_path)) == (0, CONTENT)


def test_what_no_index_has_is_told(envlock: Command, tmp_path: Path, environ: dict[str, str]) -> None:
    with files({}) as server:
        _lock(tmp_path, server, {"url": None, "index": None})
        done = envlock(*FILL, environ=environ)
    reason = (
        "no index has a file of its name and hash; `envlock capture --hashes --build` builds it, or copy it into the folder from "
        "the machine that locked it"
    )
    assert done.returncode == 5
    assert done.stderr.endswith(
        f"wheelhouse: 0 wheels\n  aa 1.0: {reason}\n  bb 1.0: {reason}\n"
        f"error: 2 of 2 wheels could not be downloaded (listed above)\n{AGAIN}"
    )


def test_an_index_that_is_named_is_asked_in_place_of_the_locks_address(
    envlock: Command, tmp_path: Path, environ: dict[str, str]
) -> None:
    def page(name: str) -> bytes:
        return answer(f'<!DOCTYPE html><a href="/files/{name}">{name}</a>'.encode(), Content_Type="text/html")

    pages = {f"/simple/{name[:2]}/": always(page(name)) for name in CONTENT}
    with files({}) as old, files(PATHS, pages) as server:
        _lock(tmp_path, old)
        done = envlock(*FILL, environ={**environ, "ENVLOCK_INDEX_URL": server.url("/simple")})
    assert (done.returncode, old.requests) == (0, []), done.stderr
    assert _house(tmp_path) == CONTENT


def test_wheels_of_other_locks_stay(envlock: Command, tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "wheelhouse").mkdir()
    for name in ("zz-1.0-py3-none-any.whl", "notes.txt"):
        (tmp_path / "wheelhouse" / name).write_bytes(b"old")
    with files(PATHS) as server:
        _lock(tmp_path, server)
        kept = envlock(*FILL, environ=environ)
    assert kept.stderr.endswith("wheelhouse also holds 1 wheel of other locks\nwrote pylock.toml\n")
    assert sorted(_house(tmp_path)) == [AA, BB, "notes.txt", "zz-1.0-py3-none-any.whl"]


@pytest.mark.slow
def test_an_interrupt_is_exit_130_at_once(envlock: Command, tmp_path: Path, environ: dict[str, str]) -> None:
    asked, finished = threading.Event(), threading.Event()

    def slow(request: Request, sock: socket.socket) -> None:
        asked.set()
        finished.wait(200)

    with files(PATHS, {f"/files/{AA}": slow}) as server:
        _lock(tmp_path, server)
        plain = {"PATH": os.environ["PATH"], "PYTHONSAFEPATH": "1", **environ}
        process = subprocess.Popen([*envlock.argv, *FILL], cwd=tmp_path, env=plain, stderr=subprocess.PIPE)
        assert asked.wait(60)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)  # much less than the server would take
        finished.set()
    assert (process.returncode, err) == (130, b"")
    assert _house(tmp_path) == {}


def test_a_cache_that_cannot_be_made_is_wrong_use(envlock: Command, tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "cache").write_bytes(b"a file")
    with files(PATHS) as server:
        _lock(tmp_path, server)
        done = envlock(*FILL, environ=environ)
        moved = envlock(*FILL, environ={**environ, "XDG_CACHE_HOME": str(tmp_path / "other")})
    assert (done.returncode, done.stderr) == (
        2,
        f"error: cannot use {tmp_path}/cache/envlock as a cache: Not a directory\n"
        "hint: set XDG_CACHE_HOME to a folder of your own\n",
    )
    assert (moved.returncode, _house(tmp_path)) == (0, CONTENT)


def test_a_folder_that_cannot_be_made_is_wrong_use(envlock: Command, tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "wheelhouse").write_bytes(b"a file")
    with files(PATHS) as server:
        _lock(tmp_path, server)
        done = envlock(*FILL, environ=environ)
    assert (done.returncode, done.stderr) == (
        2,
        "error: cannot fill folder wheelhouse: File exists\nhint: name another one\n",
    )
