"""An image as a file: an OCI archive, the same bytes for the same image, which Docker's own `load` reads too.

Sources: https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md; what an engine saves is such a layout
or what Docker wrote before 25, with `manifest.json`: https://github.com/moby/docker-image-spec/blob/v1.3.1/spec.md.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, cast

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
        stream: what is written to.

    Raises:
        OutsideError: the engine saved something else than this image.
        OSError: the stream does not take it.
    """
    try:
        with (
            tarfile.open(saved) as old,
            tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as new,
        ):
            config, layers = _contents(old)
            for folder in (
                "blobs",
                BLOBS,
            ):  # Apptainer and a skopeo without root make no folder that is not named
                _add_folder(new, folder, epoch)
            if f"sha256:{hashlib.sha256(config).hexdigest()}" != image:
                raise _other(f"its config is not that of {image}")
            digests = json.loads(config)["rootfs"]["diff_ids"]
            if len(digests) != len(layers):
                raise _other(f"it has {len(layers)} layers of {len(digests)}")
            sizes: dict[str, int] = {}
            for digest, layer in zip(digests, layers, strict=True):
                if digest not in sizes:
                    sizes[digest] = _layer(old, layer, digest, epoch, new)
            return _documents(
                config, [(digest, sizes[digest]) for digest in digests], name, epoch, new
            )
    except (tarfile.TarError, EOFError, KeyError, TypeError, ValueError) as error:
        raise _other(str(error)) from None


def _contents(old: tarfile.TarFile) -> tuple[bytes, list[str]]:
    """Return the config of a saved image, and the members that are its layers."""
    names = set(old.getnames())
    if "manifest.json" in names:
        (listed,) = json.loads(_read(old, "manifest.json"))
        return _read(old, listed["Config"]), list(listed["Layers"])
    (entry,) = json.loads(_read(old, "index.json"))["manifests"]
    manifest = json.loads(_read(old, _blob(entry["digest"])))
    return _read(old, _blob(manifest["config"]["digest"])), [
        _blob(each["digest"]) for each in manifest["layers"]
    ]


def _blob(digest: str) -> str:
    return f"{BLOBS}/{digest.removeprefix('sha256:')}"


def _read(old: tarfile.TarFile, name: str) -> bytes:
    with _open(old, name) as stream:
        return stream.read()


def _open(old: tarfile.TarFile, name: str) -> IO[bytes]:
    stream = old.extractfile(name)
    if stream is None:
        raise _other(f"{name} is not a file")
    return stream


def _layer(old: tarfile.TarFile, name: str, digest: str, epoch: int, new: tarfile.TarFile) -> int:
    """Add a layer as it is when nothing packs it, and return its size."""
    with (
        _open(old, name) as found,
        tempfile.TemporaryFile(dir=Path(str(old.name)).parent) as unpacked,
    ):
        source: IO[bytes] = found
        if found.read(2) == b"\x1f\x8b":
            found.seek(0)
            with gzip.open(found) as packed:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
            source = unpacked
        size = source.seek(0, io.SEEK_END)
        source.seek(0)
        hashing = Hashing(source)
        _add(new, _blob(digest), size, epoch, cast(IO[bytes], hashing))
    if f"sha256:{hashing.digest.hexdigest()}" != digest:
        raise _other(f"a layer is not {digest}")
    return size


def _documents(
    config: bytes, layers: list[tuple[str, int]], name: str | None, epoch: int, new: tarfile.TarFile
) -> str:
    """Add what says what the blobs are, and return the digest of the manifest."""
    manifest = _dump(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _descriptor(CONFIG, config),
            "layers": [
                {"mediaType": LAYER, "digest": digest, "size": size} for digest, size in layers
            ],
        }
    )
    entry = _descriptor(MANIFEST, manifest)
    legacy = {
        "Config": _blob(_digest(config)),
        "RepoTags": [],
        "Layers": [_blob(digest) for digest, _ in layers],
    }
    if name is not None:
        tag = name.rpartition("/")[2].partition(":")[2] or "latest"
        entry["annotations"] = {
            "io.containerd.image.name": name,
            "org.opencontainers.image.ref.name": tag,
        }
        legacy["RepoTags"] = [name]
    files = {
        _blob(_digest(config)): config,
        _blob(_digest(manifest)): manifest,
        "index.json": _dump({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}),
        "manifest.json": _dump([legacy]),
        "oci-layout": _dump({"imageLayoutVersion": "1.0.0"}),
    }
    for path, data in files.items():
        _add(new, path, len(data), epoch, io.BytesIO(data))
    return _digest(manifest)


def _add(new: tarfile.TarFile, path: str, size: int, epoch: int, content: IO[bytes]) -> None:
    info = tarfile.TarInfo(path)
    info.size, info.mtime, info.mode = size, epoch, 0o644
    new.addfile(info, content)


def _add_folder(new: tarfile.TarFile, path: str, epoch: int) -> None:
    info = tarfile.TarInfo(path)
    info.type, info.mtime, info.mode = tarfile.DIRTYPE, epoch, 0o755
    new.addfile(info)


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _dump(document: Mapping[str, Any] | list[Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def _other(reason: str) -> OutsideError:
    return OutsideError(
        f"the container engine saved another image than this one: {reason}", hint="build it again"
    )
