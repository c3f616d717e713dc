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

from envlock.image import payload
from envlock.image.additions import Additions, CopiedFile
from envlock.image.layers import Wheel
from envlock.image.plan import EPOCH, BuildPlan
from envlock.runtime.errors import OutsideError, UsageError, WriteError
from tests.image.plans import WHEELS, planned, wheelhouse


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


def written(house: Path, made: BuildPlan | None = None) -> dict[str, bytes]:
    found = {}
    for name, held in payload.list_tars(made or planned("wheels")).items():
        stream = io.BytesIO()
        payload.write(held, EPOCH, house, stream)
        found[name] = stream.getvalue()
    return found


@pytest.mark.usefixtures("_umask")
def test_another_place_and_another_umask_give_the_same_bytes(house: Path, tmp_path: Path) -> None:
    first = written(house)
    os.umask(0o077)
    other = wheelhouse(tmp_path / "elsewhere" / "wheels")
    for wheel in other.iterdir():
        os.utime(wheel, (1, 1))
    assert written(other) == first


def test_every_member_is_plain_sorted_and_timeless(house: Path) -> None:
    for data in written(house).values():
        found = members(data)
        names = [info.name for info in found]
        assert names == sorted(set(names))
        assert {(info.mtime, info.uid, info.gid, info.uname, info.gname) for info in found} == {(EPOCH, 0, 0, "", "")}
        assert {(info.isdir(), info.mode) for info in found} == {(True, 0o755), (False, 0o644)}
        assert {parent.as_posix() for name in names for parent in Path(name).parents} - {"."} <= set(names)


def test_a_tar_a_layer(house: Path) -> None:
    found = {name: [info.name for info in members(data) if info.isfile()] for name, data in written(house).items()}
    tools = {name.removeprefix("opt/envlock/") for name in found.pop("runtime.tar")}
    own = {name for name in tools if name.startswith("envlock/")}
    assert {"envlock/__init__.py", "envlock/runtime/assertion.py", "envlock/runtime/data/policy.json"} <= own
    assert {name for name in own if not name.startswith(("envlock/runtime/", "envlock/fleet/"))} == {
        "envlock/__init__.py",
        "envlock/__main__.py",
    }
    assert tools - own == {"donor.py", "entrypoint.py", "install.py", "unpack.py"}
    assert found.pop("lock.tar") == ["opt/envlock/envlock.lock", "opt/envlock/unset.json"]
    wheels = {name: [Path(file).name for file in files] for name, files in found.items()}
    assert wheels == {
        "nvidia.tar": [WHEELS["nvidia-nccl-cu12"][1], "requirements.txt"],
        "tensorflow.tar": ["requirements.txt", WHEELS["tensorflow"][1]],
        "packages.tar": [
            *(WHEELS["keras"][1], WHEELS["numpy"][1], WHEELS["nvidia-ml-py"][1], "requirements.txt"),
            WHEELS["tensorflow-datasets"][1],
        ],
    }
    assert {Path(file).parent.as_posix() for file in found["nvidia.tar"]} == {"wheels/nvidia"}


def test_code_is_read_only_in_a_folder_that_everybody_may_write(house: Path, tmp_path: Path) -> None:
    for name in ("src/train.py", "go.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    digest = hashlib.sha256(b"x").hexdigest()
    files = (
        CopiedFile("go.sh", digest, True, tmp_path / "go.sh"),
        CopiedFile("src/train.py", digest, False, tmp_path / "src/train.py"),
    )
    made = replace(planned("wheels"), added=Additions(files, "/srv/app"))
    found = [(info.name, oct(info.mode)) for info in members(written(house, made)["code.tar"])]
    assert found == [
        *(("srv", "0o755"), ("srv/app", "0o1777"), ("srv/app/go.sh", "0o755"), ("srv/app/src", "0o755")),
        ("srv/app/src/train.py", "0o644"),
    ]
    (tmp_path / "go.sh").write_bytes(b"y")
    with pytest.raises(OutsideError) as raised:
        written(house, made)
    assert raised.value.message == f"{tmp_path / 'go.sh'} changed while it was read"


def test_the_locked_pip_is_the_one_that_installs(tmp_path: Path) -> None:
    pip = Wheel("pip", "25.0", "pip-25.0-py3-none-any.whl", hashlib.sha256(b"x").hexdigest())
    (tmp_path / pip.file).write_bytes(b"x")
    found = written(tmp_path, replace(planned("wheels"), wheels=(pip,)))
    assert f"wheels/pip/{pip.file}" in [info.name for info in members(found["runtime.tar"])]
    assert f"wheels/packages/{pip.file}" in [info.name for info in members(found["packages.tar"])]


def test_a_long_name_is_kept(tmp_path: Path) -> None:
    file = "a" * 120 + "-1.0-py3-none-any.whl"
    (tmp_path / file).write_bytes(b"x")
    long = replace(planned("wheels"), wheels=(Wheel("a", "1.0", file, hashlib.sha256(b"x").hexdigest()),))
    tar = written(tmp_path, long)["packages.tar"]
    assert f"wheels/packages/{file}" in [info.name for info in members(tar)]


def test_a_big_wheel_is_streamed(tmp_path: Path) -> None:
    size = 16 * 2**20
    with (tmp_path / "a-1-py3-none-any.whl").open("wb") as stream:
        stream.truncate(size)
    digest = hashlib.sha256(bytes(size)).hexdigest()
    big = {"wheels/a.whl": Wheel("a", "1", "a-1-py3-none-any.whl", digest)}
    tracemalloc.start()
    with Path(os.devnull).open("wb") as nowhere:
        payload.write(big, EPOCH, tmp_path, nowhere)
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
    assert [item.name for item in tmp_path.iterdir()] == ["wheelhouse"]


def test_a_missing_wheel(house: Path, tmp_path: Path) -> None:
    (house / WHEELS["numpy"][1]).unlink()
    with pytest.raises(OutsideError) as raised:
        payload.write_context(planned("wheels"), house, tmp_path / "out")
    assert raised.value.message == f"cannot read the wheel {house / WHEELS['numpy'][1]}: No such file or directory"


def test_a_context_is_renewed_whole(house: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    payload.write_context(planned("wheels"), house, out)
    payload.write_context(planned("ngc"), house, out)
    tars = {"runtime.tar", "lock.tar", "packages.tar"}
    assert {item.name for item in out.iterdir()} == {"Dockerfile", ".dockerignore", "apptainer.def", *tars}
    assert {name: (out / name).read_bytes() for name in tars} == written(house, planned("ngc"))


def test_the_time_of_a_tar_says_what_is_in_it(house: Path, tmp_path: Path) -> None:
    """BuildKit takes a file of the same path, size and time for one that it was sent before."""
    plan = planned("wheels")
    other = replace(plan, lock=(plan.lock or b"").replace(b"strict", b"tricts"))
    times, sizes = [], []
    for name, each in {"one": plan, "same": plan, "other": other}.items():
        payload.write_context(each, house, tmp_path / name)
        found = {file.name: file.stat() for file in (tmp_path / name).glob("*.tar")}
        times.append({tar: status.st_mtime_ns for tar, status in found.items()})
        sizes.append({tar: status.st_size for tar, status in found.items()})
    assert times[0] == times[1]
    assert sizes[0] == sizes[2]
    assert [tar for tar in times[0] if times[0][tar] != times[2][tar]] == ["lock.tar"]
    assert len(set(times[0].values())) == len(times[0])


def test_a_folder_with_something_else_is_left_alone(house: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        payload.write_context(planned("wheels"), house, tmp_path / "out")
    assert raised.value.message == f"{tmp_path / 'out'} has files that are not a build context"
    assert [item.name for item in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_a_full_disk(house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    payload.write_context(planned("wheels"), house, tmp_path / "out")
    before = {item.name: item.read_bytes() for item in (tmp_path / "out").iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(payload, "write", full)
    hints = {"out": "free disk space there", "new": "free disk space there"}
    hints[".envlock.draft/context"] = "free disk space there, or set TMPDIR to a folder with more"  # as a build has it
    for name, hint in hints.items():
        with pytest.raises(WriteError) as raised:
            payload.write_context(planned("ngc"), house, tmp_path / name)
        message = f"cannot write to {tmp_path / name}: No space left on device"
        assert (raised.value.message, raised.value.hint, raised.value.exit_code) == (message, hint, 6)
    assert {item.name: item.read_bytes() for item in (tmp_path / "out").iterdir()} == before
    assert sorted(item.name for item in tmp_path.iterdir()) == [".envlock.draft", "out", "wheelhouse"]
    assert list((tmp_path / ".envlock.draft").iterdir()) == []


def test_wheels_in_a_folder(house: Path, tmp_path: Path) -> None:
    assert payload.list_wheels(house) == sorted(file for _, file in WHEELS.values())
    assert payload.list_wheels(tmp_path / "gone") == []
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        payload.list_wheels(tmp_path / "file")
    assert raised.value.message == f"cannot read the wheelhouse {tmp_path / 'file'}: Not a directory"


def test_the_digest_of_the_inputs_changes_with_each_of_them() -> None:
    file = CopiedFile("train.py", "ab" * 32, False, Path("/p/train.py"))
    same = planned("wheels")
    first, *others = same.wheels
    plans = {
        "the same": same,
        "another base": planned("cuda"),
        "a file": replace(same, added=Additions((file,))),
        "another content": replace(same, added=Additions((replace(file, sha256="cd" * 32),))),
        "a program": replace(same, added=Additions((replace(file, is_program=True),))),
        "a link": replace(same, added=Additions((replace(file, link="x"),))),
        "another lock": replace(same, lock=b"{}"),
        "a variable": replace(same, added=Additions(environ=(("A", "1"),))),
        "a wheel less": replace(same, wheels=tuple(others)),
        "another wheel": replace(same, wheels=(replace(first, sha256="ef" * 32), *others)),
    }
    digests = {payload.compute_inputs_digest(plan) for plan in plans.values()}
    assert len(digests) == len(plans)
    moved = replace(file, source=Path("/elsewhere"))
    assert payload.compute_inputs_digest(replace(same, added=Additions((moved,)))) in digests


def test_an_import_is_asked_again_after_each_change_but_of_the_project() -> None:
    same = planned("wheels")
    first, *others = same.wheels
    own = replace(first, is_own=True)
    project = Additions((CopiedFile("train.py", "ab" * 32, False, Path("/p/train.py")),))
    plans = {
        "the same": same,
        "another base": planned("cuda"),
        "another lock": replace(same, lock=b'{"facts": {"loaded": {}}}'),
        "a variable": replace(same, added=Additions(environ=(("A", "1"),))),
        "another wheel": replace(same, wheels=(replace(first, sha256="ef" * 32), *others)),
        "a wheel of the project": replace(same, wheels=(own, *others)),
    }
    digests = {payload.compute_import_digest(plan) for plan in plans.values()}
    assert len(digests) == len(plans)
    assert payload.compute_import_digest(replace(same, added=project)) in digests
    edited = replace(same, wheels=(replace(own, sha256="ef" * 32), *others))
    assert payload.compute_import_digest(edited) in digests
