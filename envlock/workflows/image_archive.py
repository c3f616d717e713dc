"""Write a verified image to a file."""

from __future__ import annotations

import os
from pathlib import Path

from envlock.containers.engines.find import find
from envlock.containers.oci_archive import write
from envlock.containers.plan import EPOCH
from envlock.lock.temporary import open_draft_folder
from envlock.runtime.errors import OutsideError, UsageError
from envlock.workflows.build import BuiltImage


def check_writable(file: Path) -> None:
    """Check that a file can be written, before anything is built.

    Raises:
        UsageError: it cannot be written.
    """
    if file.is_dir() or not os.access(file.resolve().parent, os.W_OK):
        raise UsageError(
            f"cannot write {file}",
            hint="name a file in a writable folder, such as `--archive train.tar`",
        )


def write_archive(built: BuiltImage, file: Path, engine: str = "auto") -> str:
    """Write an image that `build` has made to a file; return the digest of its manifest.

    The file is written whole or not at all.
    It is an OCI archive, the same bytes for the same image and name.

    Raises:
        OutsideError: the engine failed, saved another image, or the disk is full.
    """
    image = built.lock.image
    if image is None:
        raise UsageError(
            "the lockfile has no recorded image", hint="run `envlock build` to build and record one"
        )
    name = None
    if built.name != image.id:
        name = built.name
    try:
        # Beside the file: a rename at the end cannot cross file systems.
        with open_draft_folder(file.resolve().parent) as draft:
            saved, made = draft / "saved.tar", draft / "image.tar"
            find(engine).save(image.id, saved)
            with made.open("wb") as stream:
                digest = write(saved, image.id, name, EPOCH, stream)
            made.replace(file)
    except OSError as error:
        hint = "free disk space there: it needs twice the size of the image"
        raise OutsideError(f"cannot write {file}: {error.strerror}", hint=hint) from None
    return digest
