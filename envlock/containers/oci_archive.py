"""An image as a file: an OCI archive, always with the same bytes, which `docker load` can read,
too.

Sources: https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md. An engine saves
such a layout, or that of Docker before 25, with `manifest.json`:
https://github.com/moby/docker-image-spec/blob/v1.3.1/spec.md.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import IO, cast

from envlock.containers.payload import Hashing
from envlock.images.referrers import INDEX, MANIFEST
from envlock.runtime.errors import OutsideError

CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
BLOBS = "blobs/sha256"


def write(saved: Path, image: str, name: str | None, epoch: int, stream: IO[bytes]) -> str:
    """Write the archive of an image, and return the digest of its manifest.

    Args:
        saved: the file that an engine has saved it to.
        image: its ID.
        name: its name with a tag, if it has one.
        epoch: the time of the archive's members.
        stream: to write to.

    Raises:
        OutsideError: the engine saved a different image.
        OSError: the stream cannot be written.
    """
    try:
        with (
            tarfile.open(saved) as old,
            tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as new,
        ):
            archive = _Archive(new, epoch)
            config, members = _read_saved_image(old)
            # Apptainer, and skopeo without root, create no folder that is not a member.
            for folder in ("blobs", BLOBS):
                archive.add_folder(folder)
            if _compute_digest(config) != image:
                raise _make_error(f"its config is not that of {image}")
            digests = json.loads(config)["rootfs"]["diff_ids"]
            if len(digests) != len(members):
                raise _make_error(f"it has {len(members)} layers of {len(digests)}")
            sizes: dict[str, int] = {}
            for digest, member in zip(digests, members, strict=True):
                if digest not in sizes:
                    sizes[digest] = _copy_layer(old, member, digest, archive)
            layers = [(digest, sizes[digest]) for digest in digests]
            return _add_documents(config, layers, name, archive)
    except (tarfile.TarError, EOFError, KeyError, TypeError, ValueError) as error:
        raise _make_error(str(error)) from None


class _Archive:
    """The archive that is written; all of its members have one time."""

    def __init__(self, tar: tarfile.TarFile, epoch: int) -> None:
        self._tar = tar
        self._epoch = epoch

    def add(self, path: str, size: int, content: IO[bytes]) -> None:
        info = tarfile.TarInfo(path)
        info.size, info.mtime, info.mode = size, self._epoch, 0o644
        self._tar.addfile(info, content)

    def add_folder(self, path: str) -> None:
        info = tarfile.TarInfo(path)
        info.type, info.mtime, info.mode = tarfile.DIRTYPE, self._epoch, 0o755
        self._tar.addfile(info)


def _read_saved_image(old: tarfile.TarFile) -> tuple[bytes, list[str]]:
    """Return the config of a saved image, and the members that contain its layers."""
    if "manifest.json" in old.getnames():
        (listed,) = json.loads(_read(old, "manifest.json"))
        return _read(old, listed["Config"]), list(listed["Layers"])
    (entry,) = json.loads(_read(old, "index.json"))["manifests"]
    manifest = json.loads(_read(old, _get_blob_path(entry["digest"])))
    config = _read(old, _get_blob_path(manifest["config"]["digest"]))
    return config, [_get_blob_path(layer["digest"]) for layer in manifest["layers"]]


def _get_blob_path(digest: str) -> str:
    return f"{BLOBS}/{digest.removeprefix('sha256:')}"


def _read(old: tarfile.TarFile, name: str) -> bytes:
    with _open(old, name) as stream:
        return stream.read()


def _open(old: tarfile.TarFile, name: str) -> IO[bytes]:
    stream = old.extractfile(name)
    if stream is None:
        raise _make_error(f"{name} is not a file")
    return stream


def _copy_layer(old: tarfile.TarFile, name: str, digest: str, archive: _Archive) -> int:
    """Add a layer, uncompressed, and return its size."""
    with (
        _open(old, name) as member,
        tempfile.TemporaryFile(dir=Path(str(old.name)).parent) as unpacked,
    ):
        source: IO[bytes] = member
        if member.read(2) == b"\x1f\x8b":  # gzip's first bytes
            member.seek(0)
            with gzip.open(member) as packed:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
            source = unpacked
        size = source.seek(0, io.SEEK_END)
        source.seek(0)
        hashing = Hashing(source)
        archive.add(_get_blob_path(digest), size, cast(IO[bytes], hashing))
    if f"sha256:{hashing.digest.hexdigest()}" != digest:
        raise _make_error(f"a layer is not {digest}")
    return size


def _add_documents(
    config: bytes, layers: list[tuple[str, int]], name: str | None, archive: _Archive
) -> str:
    """Add the documents that describe the blobs, and return the digest of the manifest."""
    manifest = _dump(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _describe(CONFIG, config),
            "layers": [
                {"mediaType": LAYER, "digest": digest, "size": size} for digest, size in layers
            ],
        }
    )
    entry = _describe(MANIFEST, manifest)
    legacy: dict[str, object] = {
        "Config": _get_blob_path(_compute_digest(config)),
        "RepoTags": [],
        "Layers": [_get_blob_path(digest) for digest, _ in layers],
    }
    if name is not None:
        tag = name.rpartition("/")[2].partition(":")[2] or "latest"
        # containerd, and Docker on it, read the first; the second is the specification's own:
        # https://github.com/opencontainers/image-spec/blob/v1.1.1/annotations.md
        entry["annotations"] = {
            "io.containerd.image.name": name,
            "org.opencontainers.image.ref.name": tag,
        }
        legacy["RepoTags"] = [name]
    files = {
        _get_blob_path(_compute_digest(config)): config,
        _get_blob_path(_compute_digest(manifest)): manifest,
        "index.json": _dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}),
        "manifest.json": _dump([legacy]),
        "oci-layout": _dump({"imageLayoutVersion": "1.0.0"}),
    }
    for path, content in files.items():
        archive.add(path, len(content), io.BytesIO(content))
    return _compute_digest(manifest)


def _describe(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": _compute_digest(content), "size": len(content)}


def _compute_digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _dump(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def _make_error(reason: str) -> OutsideError:
    return OutsideError(
        f"the container engine saved another image than this one: {reason}", hint="build it again"
    )
