"""Downloads: whole or not at all, going on where they broke off, and never another file than the one meant."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from envlock.packages.indexes import download as part_module
from envlock.packages.indexes.download import Downloaded, WrongFileError, download, open_part
from envlock.runtime.errors import EnvlockError, UsageError
from envlock.web.client import Client
from tests.packages.server import IndexServer
from tests.web.hostile import Request, always, answer, hostile

pytestmark = pytest.mark.network

DATA = random.Random(1).randbytes(300_000)
SHA256 = hashlib.sha256(DATA).hexdigest()
DONE = Downloaded(SHA256, len(DATA))


@pytest.fixture
def url(index: IndexServer) -> str:
    """Return where the file is."""
    (index.folder / "thing.whl").write_bytes(DATA)
    return index.file_url("thing.whl")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Return where it is to be."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "thing.whl"


def _fails(*args: Any, **kwargs: Any) -> EnvlockError:
    with pytest.raises(EnvlockError) as caught:
        download(*args, **{"sha256": SHA256, "size": len(DATA), **kwargs})
    return caught.value


def _left(target: Path) -> list[str]:
    return sorted(each.name for each in target.parent.iterdir())


@pytest.mark.parametrize(("sha256", "size"), [(SHA256, len(DATA)), (SHA256, None), (None, len(DATA)), (None, None)])
def test_a_download(client: Client, url: str, target: Path, sha256: str | None, size: int | None) -> None:
    told: list[int] = []
    assert download(client, url, target, sha256=sha256, size=size, on_bytes=told.append) == DONE
    assert (target.read_bytes() == DATA, _left(target), sum(told)) == (True, ["thing.whl"], len(DATA))
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~umask


def _wrong(url: str, why: str) -> str:
    return f"{url} is not the expected file: {why}"


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"sha256": "0" * 64}, f"its sha256 is {SHA256}, not {'0' * 64}"),
        ({"size": len(DATA) + 1}, f"it has {len(DATA)} bytes, not {len(DATA) + 1}"),
        ({"size": 7}, "it has more than 7 bytes"),
    ],
)
def test_another_file(client: Client, url: str, target: Path, wanted: dict[str, Any], why: str) -> None:
    target.write_bytes(b"what was there before")
    error = _fails(client, url, target, **wanted)
    assert isinstance(error, WrongFileError)
    assert (error.message, error.exit_code) == (_wrong(url, why), 5)
    assert (_left(target), target.read_bytes()) == (["thing.whl"], b"what was there before")


def test_it_goes_on_in_the_same_call(client: Client, index: IndexServer, url: str, target: Path) -> None:
    told: list[int] = []
    index.troubles.add("breaks off")

    def tell(count: int) -> None:
        told.append(count)
        if sum(told) > len(DATA) * 0.7:
            index.troubles.discard("breaks off")

    assert download(client, url, target, sha256=SHA256, size=None, on_bytes=tell) == DONE
    ranges = [request.headers.get("range") for request in index.requests]
    assert ranges[0] is None
    assert ranges[1] == f"bytes={len(DATA) // 2}-"
    assert index.requests[1].headers["if-range"].startswith('"')
    assert sum(told) == len(DATA)


def test_it_goes_on_in_another_call(client: Client, index: IndexServer, url: str, target: Path) -> None:
    index.troubles.add("breaks off")
    error = _fails(client, url, target)
    assert error.message.startswith(f"{url} ended after ")
    assert _left(target) == ["thing.whl.part", "thing.whl.part.json"]
    assert "127.0.0.1" not in target.with_name("thing.whl.part.json").read_text()
    index.troubles.clear()
    before = len(index.requests)
    assert download(client, url, target, sha256=SHA256, size=None) == DONE
    assert len(index.requests) == before + 1
    assert int(index.requests[-1].headers["range"].removeprefix("bytes=").removesuffix("-")) > len(DATA) // 2
    assert _left(target) == ["thing.whl"]


def _broken_off(client: Client, index: IndexServer, url: str, target: Path) -> None:
    index.troubles.add("breaks off")
    _fails(client, url, target)
    index.troubles.clear()


def test_a_file_that_changed_in_between_begins_anew(client: Client, index: IndexServer, url: str, target: Path) -> None:
    _broken_off(client, index, url, target)
    new = DATA[::-1]
    (index.folder / "thing.whl").write_bytes(new)
    told: list[int] = []
    assert download(client, url, target, sha256=None, size=None, on_bytes=told.append).size == len(new)
    assert (target.read_bytes() == new, sum(told)) == (True, len(new))
    assert min(told) < 0


@pytest.mark.parametrize("validators", [True, False])
def test_a_part_of_something_else_does_not_spoil_it(
    client: Client, index: IndexServer, url: str, target: Path, validators: bool
) -> None:
    index.troubles |= set() if validators else {"no validators"}
    _broken_off(client, index, url, target)
    part = target.with_name("thing.whl.part")
    part.write_bytes(b"x" * part.stat().st_size)
    assert download(client, url, target, sha256=SHA256, size=None) == DONE


def test_without_hash_and_validator_nothing_is_gone_on_with(
    client: Client, index: IndexServer, url: str, target: Path
) -> None:
    index.troubles |= {"no validators", "breaks off"}
    _fails(client, url, target, sha256=None)
    index.troubles = {"no validators"}
    download(client, url, target, sha256=None, size=None)
    assert "range" not in index.requests[-1].headers


def test_a_part_of_another_url_is_not_gone_on_with(client: Client, index: IndexServer, url: str, target: Path) -> None:
    _broken_off(client, index, url, target)
    assert download(client, f"{url}?other", target, sha256=SHA256, size=None) == DONE
    assert "range" not in index.requests[-1].headers


@pytest.mark.parametrize("notes", [b"", b"[]", b"{", b"[" * 100_000, b'{"url": 1, "validator": []}', b"\xff"])
def test_notes_that_are_none(client: Client, index: IndexServer, url: str, target: Path, notes: bytes) -> None:
    target.with_name("thing.whl.part").write_bytes(DATA[:1000])
    target.with_name("thing.whl.part.json").write_bytes(notes)
    assert download(client, url, target, sha256=None, size=None) == DONE


@pytest.mark.parametrize("extra", [b"", b"more"])
def test_a_part_that_is_whole_or_too_long(
    client: Client, index: IndexServer, url: str, target: Path, extra: bytes
) -> None:
    _broken_off(client, index, url, target)
    target.with_name("thing.whl.part").write_bytes(DATA + extra)
    assert download(client, url, target, sha256=SHA256, size=None) == DONE


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("500", "answered 500 (Internal Server Error)"),
        ("redirect loop", "redirects more than 5 times"),
        ("slow loris", "is too slow: it sent fewer than 1000 bytes a second for 0.4 s"),
        ("private", "answered 401 (Unauthorized)"),
    ],
)
def test_a_server_in_trouble(
    client: Client, index: IndexServer, url: str, target: Path, trouble: str, message: str
) -> None:
    index.troubles.add(trouble)
    error = _fails(client, url, target)
    assert error.message == f"{url} {message}"
    assert not target.exists()


def test_a_file_that_is_not_there(client: Client, index: IndexServer, target: Path) -> None:
    assert _fails(client, index.file_url("x"), target).message == f"{index.file_url('x')} answered 404 (Not Found)"


def test_another_part_than_the_one_asked_for(client: Client, index: IndexServer, url: str, target: Path) -> None:
    _broken_off(client, index, url, target)
    index.troubles.add("other range")
    assert _fails(client, url, target).message == f"{url} sent the wrong part of the file"
    assert not target.exists()


def test_a_file_without_end(client: Client, target: Path) -> None:
    def endless(request: Request, sock: socket.socket) -> None:
        sock.sendall(answer(b"", Content_Length=""))
        while True:
            sock.sendall(b"x" * 65536)

    with hostile(endless) as server:
        error = _fails(client, server.url("/x"), target)
    assert error.message == _wrong(server.url("/x"), f"it has more than {len(DATA)} bytes")
    assert _left(target) == []


def test_no_message_holds_a_signature(client: Client, target: Path) -> None:
    with hostile(always(answer(b"x"))) as server:
        error = _fails(client, server.url("/x?signature=s3cret"), target)
    assert "s3cret" not in str(error)


def test_a_file_on_disk(client: Client, tmp_path: Path, target: Path) -> None:
    source = tmp_path / "a file"
    source.write_bytes(DATA)
    assert download(client, source.as_uri(), target, sha256=SHA256, size=len(DATA)) == DONE
    assert _fails(client, source.as_uri(), target, sha256="0" * 64).message.startswith(
        f"{source} is not the expected file: its sha256 is "
    )
    error = _fails(client, (tmp_path / "gone").as_uri(), target)
    assert error.message == f"cannot read {tmp_path / 'gone'}: No such file or directory"


def test_a_folder_that_is_not_there(client: Client, url: str, tmp_path: Path) -> None:
    error = _fails(client, url, tmp_path / "gone" / "x.whl")
    assert isinstance(error, UsageError)
    assert error.message == f"cannot write {tmp_path / 'gone' / 'x.whl'}: No such file or directory"


def test_a_disk_that_is_full(client: Client, url: str, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: object, chunk: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(part_module.Part, "append", full)
    error = _fails(client, url, target)
    assert isinstance(error, UsageError)
    assert (error.message, error.hint) == (
        f"cannot write {target}: No space left on device",
        "free disk space, and run it again; partial downloads are kept",
    )


def test_a_part_that_is_a_link_is_not_followed(client: Client, url: str, target: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    target.with_name("thing.whl.part").symlink_to(victim)
    assert isinstance(_fails(client, url, target), UsageError)
    assert victim.read_bytes() == b"mine"


def test_many_at_once(client: Client, url: str, target: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: download(client, url, target, sha256=SHA256, size=None), range(24)))
    assert done == [DONE] * 24
    assert (target.read_bytes() == DATA, _left(target)) == (True, ["thing.whl"])


def test_the_second_one_has_a_file_of_its_own(client: Client, url: str, target: Path) -> None:
    with open_part(target) as first:
        first.append(b"half")
        assert download(client, url, target, sha256=SHA256, size=None) == DONE
        assert _fails(client, url, target, sha256="0" * 64).exit_code == 5
        assert _left(target) == ["thing.whl", "thing.whl.part"]
    assert target.read_bytes() == DATA


def test_a_part_that_another_one_finishes_in_between(
    client: Client, url: str, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, part = part_module._lock, target.with_name("thing.whl.part")
    finished: list[Path] = []

    def late(handle: int) -> bool:
        if not finished:
            finished.append(part.rename(target.with_name("other.whl")))
            finished[0].write_bytes(b"finished by the other one")
        return lock(handle)

    monkeypatch.setattr(part_module, "_lock", late)
    assert download(client, url, target, sha256=SHA256, size=None) == DONE
    assert finished[0].read_bytes() == b"finished by the other one"


PROCESS = """
import sys
from pathlib import Path
from envlock.packages.indexes.download import download
from envlock.web.client import Client
print(download(Client(), sys.argv[1], Path(sys.argv[2]), sha256=sys.argv[3], size=None).sha256)
"""


@pytest.mark.slow
@pytest.mark.processes
def test_two_processes(url: str, target: Path) -> None:
    argv = [sys.executable, "-c", PROCESS, url, str(target), SHA256]
    plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    started = [subprocess.Popen(argv, stdout=subprocess.PIPE, env=plain, text=True) for _ in range(2)]
    assert [process.communicate(timeout=60)[0].strip() for process in started] == [SHA256] * 2
    assert (target.read_bytes() == DATA, _left(target)) == (True, ["thing.whl"])
