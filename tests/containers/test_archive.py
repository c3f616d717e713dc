"""An image as an OCI archive: the same bytes whoever saved it, read by other engines."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from envlock.containers.oci_archive import write
from envlock.runtime.errors import OutsideError
from tests.containers.bed import podman as bed_podman
from tests.containers.bed.debian import BedError
from tests.containers.bed.fixtures import StartEngine, absent
from tests.containers.bed.session import CACHE, Bed
from tests.containers.engines.test_commands import run
from tests.containers.project import Project
from tests.containers.stocked import captured, demo_wheel
from tests.exhaustive import exhaustive

LAYERS = (b"one" * 999, b"two" * 999, b"one" * 999)
"""Twice the same: an image may hold a layer again."""


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


CONFIG = json.dumps(
    {"rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(layer)}" for layer in LAYERS]}}
).encode()
IMAGE = f"sha256:{digest(CONFIG)}"


def tar(folder: Path, files: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    with tarfile.open(folder / "saved.tar", "w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return folder / "saved.tar"


def by_old_docker(folder: Path) -> Path:
    """As Docker 20: a folder a layer, and a link where it is there already."""
    manifest = [
        {"Config": f"{IMAGE[7:]}.json", "RepoTags": ["x:1"], "Layers": ["a/layer.tar", "b/layer.tar", "c/layer.tar"]}
    ]
    files = {"a/layer.tar": LAYERS[0], "b/layer.tar": LAYERS[1], f"{IMAGE[7:]}.json": CONFIG}
    return tar(folder, {**files, "manifest.json": json.dumps(manifest).encode()}, {"c/layer.tar": "../a/layer.tar"})


def by_podman(folder: Path) -> Path:
    """As podman: an OCI layout, its layers packed."""
    packed = [gzip.compress(layer) for layer in LAYERS]
    manifest = json.dumps(
        {"config": {"digest": IMAGE}, "layers": [{"digest": f"sha256:{digest(layer)}"} for layer in packed]}
    ).encode()
    index = json.dumps({"manifests": [{"digest": f"sha256:{digest(manifest)}"}]}).encode()
    blobs = {f"blobs/sha256/{digest(content)}": content for content in (*packed, CONFIG, manifest)}
    return tar(folder, {**blobs, "index.json": index})


def written(saved: Path, name: str | None = None) -> tuple[str, bytes]:
    stream = io.BytesIO()
    return write(saved, IMAGE, name, 315532800, stream), stream.getvalue()


def test_the_same_bytes_whoever_saved_it(tmp_path: Path) -> None:
    made = [written(by(tmp_path), "team/train:1") for by in (by_old_docker, by_podman)]
    assert made[0] == made[1]


def test_it_is_an_oci_layout(tmp_path: Path) -> None:
    found, content = written(by_podman(tmp_path), "team/train:1")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        folders, members = archive.getmembers()[:2], archive.getmembers()[2:]
        told = [(item.name, item.mtime, item.mode, item.uid, item.isdir()) for item in folders]
        assert told == [(name, 315532800, 0o755, 0, True) for name in ("blobs", "blobs/sha256")]
        assert {(item.mtime, item.mode, item.uid, item.isfile()) for item in members} == {(315532800, 0o644, 0, True)}
        files = {item.name: (archive.extractfile(item) or io.BytesIO()).read() for item in members}
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = json.loads(files["index.json"])["manifests"]
    assert (entry["digest"], entry["annotations"]["org.opencontainers.image.ref.name"]) == (found, "1")
    manifest = json.loads(files[f"blobs/sha256/{found[7:]}"])
    assert manifest["config"]["digest"] == IMAGE
    assert [files[f"blobs/sha256/{each['digest'][7:]}"] for each in manifest["layers"]] == list(LAYERS)
    assert all(name.rpartition("/")[2] == digest(data) for name, data in files.items() if name.startswith("blobs/"))


def test_an_archive_without_a_name(tmp_path: Path) -> None:
    _, content = written(by_podman(tmp_path))
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        index = json.load(archive.extractfile("index.json") or io.BytesIO())
    assert "annotations" not in index["manifests"][0]


def broken(folder: Path) -> Iterator[tuple[Path, str]]:
    manifest = json.dumps([{"Config": "c", "Layers": ["a"]}]).encode()
    yield tar(folder, {"c": b"{}", "a": b"", "manifest.json": manifest}), f"its config is not that of {IMAGE}"
    yield tar(folder, {"c": CONFIG, "a": b"", "manifest.json": manifest}), "it has 1 layers of 3"
    three = json.dumps([{"Config": "c", "Layers": ["a", "a", "a"]}]).encode()
    yield tar(folder, {"c": CONFIG, "a": b"", "manifest.json": three}), f"a layer is not sha256:{digest(LAYERS[0])}"
    yield tar(folder, {"c": CONFIG, "manifest.json": three}), "\"filename 'a' not found\""


def test_what_is_another_image_is_refused(tmp_path: Path) -> None:
    said = []
    for saved, reason in broken(tmp_path):
        with pytest.raises(OutsideError) as raised:
            written(saved)
        said.append((raised.value.message, f"the container engine saved another image than this one: {reason}"))
    assert [found for found, _ in said] == [wanted for _, wanted in said]


@pytest.fixture
def project(bed: Bed, tmp_path: Path) -> Project:
    wheelhouse = tmp_path / "wheelhouse"
    demo_wheel(wheelhouse, "alpha", "1.0")
    lock: dict[str, Any] = captured(bed, bed.python, wheelhouse, system=False)
    return Project(bed, tmp_path, lock)


@exhaustive
@pytest.mark.engine
def test_other_engines_load_it(bed: Bed, project: Project, start_engine: StartEngine) -> None:
    made = []
    for engine in ("buildx", "docker"):
        done = project(
            "build", "--base", bed.python, "-t", "team/train:1", "--archive", f"{engine}.tar", "--engine", engine
        )
        assert done.returncode == 0, done.stderr
        made.append(project.image["id"])
    done = project("build", "--base", bed.python, "-t", "team/train:1", "--archive", "again.tar")
    assert "wrote again.tar: OCI archive, manifest sha256:" in done.stderr
    files = {name: (project.folder / f"{name}.tar").read_bytes() for name in ("buildx", "again", "docker")}
    assert files["buildx"] == files["again"]
    assert (files["docker"] == files["buildx"]) == (made[0] == made[1])
    old = start_engine("20")
    old.docker("load", "-i", project.folder / "again.tar")
    assert old.docker("image", "inspect", "-f", "{{.Id}}", "team/train:1").stdout.strip() == made[0]
    assert old.docker("run", "--rm", "--network=none", "team/train:1", "alpha").stdout == "1.0\n"
    try:
        store = bed_podman.configured(bed_podman.unpacked(CACHE))
    except BedError as reason:
        absent(reason)
    try:
        pulled = run(bed, store, project.folder, "podman", "pull", "-q", f"oci-archive:{project.folder}/again.tar")
        assert pulled.stdout.strip() == made[0].removeprefix("sha256:"), pulled.stderr
        saved = run(
            bed, store, project.folder, "buildah", "push", "-q", pulled.stdout.strip(), "oci-archive:by-podman.tar"
        )
        assert saved.returncode == 0, saved.stderr
        assert write(project.folder / "by-podman.tar", made[0], "team/train:1", 315532800, io.BytesIO()) in done.stderr
    finally:
        store.remove()


CASES: dict[str, Callable[[Path], Any]] = {
    "missing": lambda folder: folder / "none" / "x.tar",
    "folder": lambda folder: folder,
}


@pytest.mark.engine
@pytest.mark.parametrize("case", CASES)
def test_a_file_that_cannot_be_is_told_before_anything_is_built(case: str, bed: Bed, tmp_path: Path) -> None:
    made = Project(bed, tmp_path, {})
    file = CASES[case](tmp_path)
    done = made("build", "--archive", str(file))
    assert (done.returncode, done.stderr) == (
        2,
        f"error: cannot write {file}\nhint: name a file in a writable folder, such as `--archive train.tar`\n",
    )
