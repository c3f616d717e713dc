"""A base gets the interpreter of the lock: a build of python-build-standalone, by hash, on a real engine."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from envlock.image.bases.candidate import PythonArchive
from envlock.image.standalone import write
from envlock.runtime.errors import OutsideError
from tests.exhaustive import exhaustive
from tests.image.bed.images import python_layer
from tests.image.bed.session import CACHE, Bed
from tests.image.project import Project
from tests.image.stocked import captured, demo_wheel

FILE = "cpython-3.11.2+20230507-x86_64-unknown-linux-gnu-install_only.tar.gz"
PLACES = {"./usr/bin/": "python/bin/", "./usr/lib/python3.11/": "python/lib/python3.11/"}


def archive(layer: Path, folder: Path) -> PythonArchive:
    """Write Debian's own Python as python-build-standalone packs one: it finds its library beside its program."""
    target = folder / FILE
    with tarfile.open(layer) as old, tarfile.open(target, "w:gz", compresslevel=1) as new:
        for member in old:
            place = next((place for place in PLACES if member.name.startswith(place)), None)
            if (
                place is None
                or (place == "./usr/bin/" and "python3" not in member.name)
                or not (member.isfile() or member.issym())
            ):
                continue
            member.name = PLACES[place] + member.name.removeprefix(place)
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return PythonArchive(FILE, hashlib.sha256(target.read_bytes()).hexdigest())


@exhaustive
@pytest.mark.engine
def test_a_base_gets_the_build_of_python_that_the_lock_names(bed: Bed, tmp_path: Path) -> None:
    wheelhouse = tmp_path / "wheelhouse"
    demo_wheel(wheelhouse, "alpha", "1.0")
    lock: dict[str, Any] = captured(bed, bed.python, wheelhouse, system=False)
    build = archive(python_layer(CACHE).file, wheelhouse)
    name, _, digest = bed.python.partition("@")
    repository, _, tag = name.rpartition(":")
    pinned = {"name": repository, "tag": tag, "digest": digest, "manifest": None, "platform": "linux/amd64"}
    kept = {"route": "wheels", "reason": "A test.", "python_archive": {"file": build.file, "sha256": build.sha256}}
    made = Project(bed, tmp_path, {**lock, "base_image": {**pinned, **kept}})
    done = made("build", "--tag", "test/standalone:1")
    assert done.returncode == 0, done.stderr
    assert "test/standalone:1 was verified inside: it matches under policy strict\n" in done.stderr
    script = "import os, sys; print(os.path.realpath(sys.executable), sys.base_prefix)"
    ran = bed.engine.docker("run", "--rm", "--network=none", "test/standalone:1", "python", "-c", script)
    assert ran.stdout == "/opt/python/bin/python3.11 /opt/python\n"
    again = made("build", "--rebuild")
    assert (again.returncode, again.stderr.endswith("identical: the same image ID\n")) == (0, True), again.stderr


def small(folder: Path, name: str = "python/bin/python3", mode: int = 0o755, seconds: int = 7) -> PythonArchive:
    file = folder / FILE
    with tarfile.open(file, "w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime, member.uid = 3, mode, seconds, 1000
        tar.addfile(member, io.BytesIO(b"abc"))
    return PythonArchive(FILE, hashlib.sha256(file.read_bytes()).hexdigest())


def test_the_tar_of_a_python_is_the_same_bytes_whenever_it_was_packed(tmp_path: Path) -> None:
    first, second = io.BytesIO(), io.BytesIO()
    write(small(tmp_path, seconds=7, mode=0o755), tmp_path, 315532800, first)
    write(small(tmp_path, seconds=8, mode=0o775), tmp_path, 315532800, second)
    assert first.getvalue() == second.getvalue()
    first.seek(0)
    with tarfile.open(fileobj=first) as tar:
        found = {item.name: (item.mode, item.mtime, item.uid) for item in tar}
    epoch = 315532800
    assert found == {
        "opt": (0o755, epoch, 0),
        "opt/python": (0o755, epoch, 0),
        "opt/python/bin": (0o755, epoch, 0),
        "opt/python/bin/python3": (0o755, epoch, 0),
    }


@pytest.mark.parametrize("name", ["etc/passwd", "python/../../etc/passwd", "/python/x", "python"])
def test_an_archive_that_is_not_a_python_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(OutsideError, match="which does not belong to a Python"):
        write(small(tmp_path, name), tmp_path, 0, io.BytesIO())


def test_another_archive_than_the_named_one_is_refused(tmp_path: Path) -> None:
    small(tmp_path)
    with pytest.raises(OutsideError) as caught:
        write(PythonArchive(FILE, "0" * 64), tmp_path, 0, io.BytesIO())
    assert caught.value.message.startswith(f"{tmp_path / FILE} is not the named build of Python: wanted sha256 000")
