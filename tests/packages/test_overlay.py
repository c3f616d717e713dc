"""One package in a folder of its own: it is kept for what decides its wheel, and is the locked one."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from envlock.evidence.bisect.bisect import read_hashes
from envlock.guest import launch
from envlock.lock.document import validate
from envlock.packages import overlay
from envlock.packages.overlay import Wanted, install_overlay
from envlock.runtime.errors import OutsideError
from tests.locks import document
from tests.packages.wheels import make_wheel

pytestmark = pytest.mark.processes


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes wheels from, and no other place."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return use(tmp_path / "index", monkeypatch, b"VERSION = 1\n")


def use(folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> Path:
    make_wheel(folder, files={"thing.py": content})
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def read_hash(index: Path) -> str:
    (wheel,) = index.glob("*.whl")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_a_wheel_is_installed_by_its_locked_hash(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = Wanted("thing", "1.0", read_hash(index))
    use(tmp_path / "other", monkeypatch, b"VERSION = 2\n")
    with pytest.raises(OutsideError) as refused:
        install_overlay(locked, tmp_path, None)
    assert refused.value.hint == f"check that an index has the locked wheel, sha256 {locked.sha256}"
    assert not list(tmp_path.glob("thing-*"))
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    made = install_overlay(locked, tmp_path, None)
    assert ((made / "thing.py").read_bytes(), made.stat().st_mode & 0o777) == (b"VERSION = 1\n", 0o700)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "other"))
    assert install_overlay(locked, tmp_path, None) == made, "it is the same wheel, wherever it is from"


def test_without_a_hash_another_index_has_another_wheel(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = Wanted("thing", "1.0")
    first = install_overlay(wanted, tmp_path, None)
    use(tmp_path / "other", monkeypatch, b"VERSION = 2\n")
    second = install_overlay(wanted, tmp_path, None)
    texts = [(made / "thing.py").read_bytes() for made in (first, second)]
    assert texts == [b"VERSION = 1\n", b"VERSION = 2\n"]


ABOUT = ("cpython-311", "cpython-311-x86_64-linux-gnu", "linux-x86_64")


@pytest.mark.parametrize("number", range(3), ids=["implementation", "ABI", "platform"])
def test_an_overlay_is_for_one_kind_of_interpreter(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    for name in (ABOUT[number], "another"):
        lines = [*ABOUT[:number], name, *ABOUT[number + 1 :]]
        answer = launch.Ended(0, "\n".join(lines).encode(), b"", 1)
        monkeypatch.setattr(launch, "ask", lambda *_, answer=answer, **__: answer)
        keys.add(overlay._make_key(Wanted("thing", "1.0", "ab" * 32), Path(sys.executable)))
    assert len(keys) == 2


def test_an_interpreter_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "ask", lambda *_, **__: launch.Ended(1, b"", b"Error: no\n", 1))
    with pytest.raises(OutsideError, match="/python does not say what it is: Error: no"):
        overlay._make_key(Wanted("thing", "1.0"), Path("/python"))


def test_the_hashes_of_a_lockfile_are_those_of_its_proven_wheels() -> None:
    wheel = {"name": "h5py-3.11.0-py3-none-any.whl", "sha256": "ab" * 32, "size": 1, "url": None, "index": None}
    known = {"version": "3.11.0", "content": None, "origin": "index", "proof": "file", "wheel": wheel, "reason": None}
    unknown = {**known, "proof": None, "wheel": None, "reason": "no index has it"}
    identity = {"packages": {"h5py": known, "keras": unknown}}
    lock = validate(document(identity=identity), "a.lock")
    assert read_hashes(lock) == {("h5py", "3.11.0"): "ab" * 32}
    assert read_hashes(validate(document(), "a.lock")) == {}
