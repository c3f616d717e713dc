"""The tar of a context: the same bytes wherever it is written, and nothing half-written."""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.containers import payload
from envlock.containers.plan import EPOCH, Wheel
from envlock.runtime.errors import OutsideError, UsageError
from tests.containers.plans import WHEELS, planned, wheelhouse


@pytest.fixture
def house(tmp_path: Path) -> Path:
    return wheelhouse(tmp_path / "wheelhouse")


@pytest.fixture
def _umask() -> Iterator[None]:
    old = os.umask(0o022)
    yield
    os.umask(old)


def members(data: bytes) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return tar.getmembers()


def written(house: Path, route: str = "wheels") -> bytes:
    stream = io.BytesIO()
    payload.write(planned(route), house, stream)
    return stream.getvalue()


@pytest.mark.usefixtures("_umask")
def test_another_place_and_another_umask_give_the_same_bytes(house: Path, tmp_path: Path) -> None:
    first = written(house)
    os.umask(0o077)
    other = wheelhouse(tmp_path / "elsewhere" / "wheels")
    for wheel in other.iterdir():
        os.utime(wheel, (1, 1))
    assert written(other) == first


def test_every_member_is_plain_sorted_and_timeless(house: Path) -> None:
    found = members(written(house))
    names = [info.name for info in found]
    assert names == sorted(set(names))
    assert {(info.mtime, info.uid, info.gid, info.uname, info.gname) for info in found} == {(EPOCH, 0, 0, "", "")}
    assert {(info.isdir(), info.mode) for info in found} == {(True, 0o755), (False, 0o644)}
    assert {info.name.partition("/")[0] for info in found} == {"opt"}
    assert {"opt", "opt/envlock", "opt/envlock/envlock/runtime"} <= set(names)


def test_it_holds_the_runtime_half_and_nothing_of_the_other(house: Path) -> None:
    names = {info.name.removeprefix("opt/envlock/") for info in members(written(house)) if info.isfile()}
    own = {name for name in names if name.startswith("envlock/")}
    assert {"envlock/__init__.py", "envlock/runtime/assertion.py", "envlock/runtime/data/policy.json"} <= own
    assert {name for name in own if not name.startswith("envlock/runtime/")} == {"envlock/__init__.py"}
    assert names - own == {
        *("entrypoint.py", "install.py", "step.py", "envlock.lock", "requirements.lock", "unset.json"),
        *(f"wheelhouse/{file}" for _, file in WHEELS.values()),
    }
    assert not [name for name in names if name.endswith(".pyc")]


def test_a_long_name_is_kept(tmp_path: Path) -> None:
    file = "a" * 120 + "-1.0-py3-none-any.whl"
    (tmp_path / file).write_bytes(b"x")
    long = replace(planned("wheels"), wheels=(Wheel("a", "1.0", file, hashlib.sha256(b"x").hexdigest()),))
    stream = io.BytesIO()
    payload.write(long, tmp_path, stream)
    assert f"opt/envlock/wheelhouse/{file}" in [info.name for info in members(stream.getvalue())]


def test_a_big_wheel_is_streamed(tmp_path: Path) -> None:
    size = 16 * 2**20
    with (tmp_path / "a-1-py3-none-any.whl").open("wb") as stream:
        stream.truncate(size)
    digest = hashlib.sha256(bytes(size)).hexdigest()
    big = replace(planned("wheels"), wheels=(Wheel("a", "1", "a-1-py3-none-any.whl", digest),))
    tracemalloc.start()
    with Path(os.devnull).open("wb") as nowhere:
        payload.write(big, tmp_path, nowhere)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * 2**20


def test_a_wrong_wheel_leaves_nothing_behind(house: Path, tmp_path: Path) -> None:
    file = WHEELS["numpy"][1]
    (house / file).write_bytes(b"another")
    with pytest.raises(OutsideError) as raised:
        payload.write_context(planned("wheels"), house, tmp_path / "out")
    assert re.fullmatch(
        rf"\S+/{re.escape(file)} is not the locked wheel: locked sha256 [0-9a-f]{{64}}, "
        r"live [0-9a-f]{64}",
        raised.value.message,
    )
    assert list((tmp_path / "out").iterdir()) == []
    assert sorted(item.name for item in tmp_path.iterdir()) == ["out", "wheelhouse"]


def test_a_missing_wheel(house: Path, tmp_path: Path) -> None:
    (house / WHEELS["numpy"][1]).unlink()
    with pytest.raises(OutsideError) as raised:
        payload.write_context(planned("wheels"), house, tmp_path / "out")
    assert raised.value.message == f"cannot read the wheel {house / WHEELS['numpy'][1]}: No such file or directory"


def test_the_context_is_three_files_and_is_renewed(house: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for _ in range(2):
        payload.write_context(planned("wheels"), house, out)
        assert {item.name for item in out.iterdir()} == payload.OWN
    assert (out / "payload.tar").read_bytes() == written(house)


def test_a_folder_with_something_else_is_left_alone(house: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        payload.write_context(planned("wheels"), house, tmp_path / "out")
    assert raised.value.message == f"{tmp_path / 'out'} has files that are not a build context"
    assert [item.name for item in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_a_full_disk(house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(payload, "write", full)
    with pytest.raises(OutsideError) as raised:
        payload.write_context(planned("wheels"), house, tmp_path / "out")
    assert (raised.value.message, raised.value.exit_code) == (
        f"cannot write to {tmp_path / 'out'}: No space left on device",
        5,
    )
    assert list((tmp_path / "out").iterdir()) == []


def test_wheels_in_a_folder(house: Path, tmp_path: Path) -> None:
    assert payload.wheels_in(house) == sorted(file for _, file in WHEELS.values())
    assert payload.wheels_in(tmp_path / "gone") == []
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        payload.wheels_in(tmp_path / "file")
    assert raised.value.message == f"cannot read the wheelhouse {tmp_path / 'file'}: Not a directory"
