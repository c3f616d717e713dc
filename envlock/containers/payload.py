"""What a build needs beside the Dockerfile, as a tar a layer that is the same bytes wherever it is written.

USTAR, sorted, every time the epoch, every mode 0644 or 0755, every owner 0. A wheel of a gigabyte is copied in
pieces, and hashed on its way: a wrong one leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, cast

import envlock
from envlock.containers import render, standalone
from envlock.containers.additions import CopiedFile
from envlock.containers.layers import NAMES, Wheel
from envlock.containers.plan import BuildPlan
from envlock.lock.drafts import draft_folder
from envlock.lock.models import DebianPackage
from envlock.runtime.drafts import PREFIX
from envlock.runtime.errors import OutsideError, UsageError, WriteError

HOME = "opt/envlock"
WHEELS = "wheels"
TARS = (
    "runtime.tar",
    standalone.TAR,
    "apt.tar",
    "code.tar",
    "lock.tar",
    *(f"{name}.tar" for name in NAMES),
)
OWN = {"Dockerfile", ".dockerignore", "apptainer.def", *TARS}
"""What a context may consist of."""


Member = bytes | Wheel | DebianPackage | CopiedFile | int
"""What stands in a tar: bytes, a file on the disk, or a folder of a mode of its own."""


class Hashing:
    """A file that is hashed while it is read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.digest.update(data)
        return data


def write_context(plan: BuildPlan, wheelhouse: Path, folder: Path) -> None:
    """Write Dockerfile, .dockerignore, apptainer.def and the tars into a folder: all of them, or none.

    Raises:
        LockfileError: a value of the lock must not stand in a Dockerfile.
        UsageError: the folder holds something else.
        OutsideError: a wheel is missing or is not the one that the lock names.
        WriteError: it cannot be written; what was there is untouched.
    """
    texts = {
        "Dockerfile": render.dockerfile(plan),
        ".dockerignore": render.dockerignore(),
        "apptainer.def": render.apptainer(plan),
    }
    try:
        if folder.exists() and (
            not folder.is_dir() or {item.name for item in folder.iterdir()} - OWN
        ):
            raise UsageError(
                f"{folder} has files that are not a build context",
                hint="name a new or an empty folder",
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(
            f"cannot write to {folder}: {error.strerror}", hint="name a writable folder"
        ) from None
    target = folder.resolve()
    try:
        with draft_folder(target.parent) as draft:
            made = draft / "new"
            made.mkdir()
            for name, text in texts.items():
                (made / name).write_text(text, encoding="ascii")
            for name, members in tars(plan).items():
                with (made / name).open("wb") as stream:
                    write(members, plan.epoch, wheelhouse, stream)
            if plan.base.python_archive is not None:
                with (made / standalone.TAR).open("wb") as stream:
                    standalone.write(plan.base.python_archive, wheelhouse, plan.epoch, stream)
            if target.exists():
                target.rename(draft / "old")  # no moment has files of two contexts
            made.rename(target)
    except OSError as error:
        is_temporary = target.parent.name.startswith(PREFIX)
        hint = "free disk space there" + (
            ", or set TMPDIR to a folder with more" if is_temporary else ""
        )
        raise WriteError(f"cannot write to {folder}: {error.strerror}", hint=hint) from None


def tars(plan: BuildPlan) -> dict[str, dict[str, Member]]:
    """Return the members of each tar of a context, by their names."""
    made: dict[str, dict[str, Member]] = {"runtime.tar": dict(_tools(plan))}
    if plan.debian:
        debs = {f"{WHEELS}/apt/{each.name}_{each.architecture}.deb": each for each in plan.debian}
        made["apt.tar"] = {
            f"{WHEELS}/apt/packages.txt": render.debian(plan).encode("ascii"),
            **debs,
        }
    for layer in plan.layers:
        place = f"{WHEELS}/{layer.name}"
        held: dict[str, Member] = {f"{place}/{wheel.file}": wheel for wheel in layer.wheels}
        made[f"{layer.name}.tar"] = {
            f"{place}/requirements.txt": render.requirements(layer).encode("ascii"),
            **held,
        }
    if plan.added.files:
        made["code.tar"] = dict(_code(plan))
    return {**made, "lock.tar": dict(_lock(plan))}


def write(members: Mapping[str, Member], epoch: int, wheelhouse: Path, stream: IO[bytes]) -> None:
    """Write a tar.

    Raises:
        OutsideError: a wheel is missing, or is not the one that the lock names; a file has changed.
        OSError: the stream does not take it.
    """
    folders = dict.fromkeys(
        {str(parent) for name in members for parent in Path(name).parents} - {"."}, 0o755
    )
    folders.update({name: mode for name, mode in members.items() if isinstance(mode, int)})
    # PAX differs from USTAR only where a name does not fit, and long names of wheels do not
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT, encoding="ascii") as tar:
        for name in sorted({*members, *folders}):
            info = tarfile.TarInfo(name)
            info.mtime = epoch
            if name in folders:
                info.type, info.mode = tarfile.DIRTYPE, folders[name]
                tar.addfile(info)
            else:
                _add(tar, info, members[name], wheelhouse)


def _add(tar: tarfile.TarFile, info: tarfile.TarInfo, content: Member, wheelhouse: Path) -> None:
    info.mode = 0o755 if isinstance(content, CopiedFile) and content.is_program else 0o644
    if isinstance(content, bytes | int):
        data = content if isinstance(content, bytes) else b""
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
        return
    path = content.source if isinstance(content, CopiedFile) else wheelhouse / content.file
    what, command = (
        ("wheel", "envlock vendor")
        if isinstance(content, Wheel)
        else ("Debian package", "envlock build")
    )
    try:
        source = path.open("rb")
    except OSError as error:
        if isinstance(content, CopiedFile):
            raise OutsideError(
                f"cannot read {path}: {error.strerror}", hint="run `envlock build` again"
            ) from None
        raise OutsideError(
            f"cannot read the {what} {path}: {error.strerror}",
            hint=f"run `{command}` to fill the wheelhouse",
        ) from None
    with source:
        info.size = path.stat().st_size
        hashing = Hashing(source)
        tar.addfile(info, cast(IO[bytes], hashing))
    if hashing.digest.hexdigest() != content.sha256 and isinstance(content, CopiedFile):
        raise OutsideError(f"{path} changed while it was read", hint="run `envlock build` again")
    if hashing.digest.hexdigest() != content.sha256:
        raise OutsideError(
            f"{path} is not the locked {what}: locked sha256 {content.sha256}, live {hashing.digest.hexdigest()}",
            hint=f"remove it and run `{command}` again",
        )


def _tools(plan: BuildPlan) -> Iterator[tuple[str, Member]]:
    """Yield the runtime half, the programs of image and build, and the pip that installs if the lock has one."""
    yield from _programs().items()
    for wheel in plan.wheels:
        if wheel.name == "pip":
            yield f"{WHEELS}/pip/{wheel.file}", wheel


@cache
def _programs() -> dict[str, bytes]:
    package = Path(str(files(envlock)))
    facade = [package / "__init__.py", package / "__main__.py"]
    sources = [
        *facade,
        *(package / "runtime").rglob("*.py"),
        *(package / "runtime").rglob("*.json"),
        *(package / "fleet").rglob("*.py"),
    ]
    half = {
        f"{HOME}/envlock/{source.relative_to(package).as_posix()}": source for source in sources
    }
    programs = {
        f"{HOME}/{source.name}": source for source in (package / "guest" / "image").glob("*.py")
    }
    return {name: source.read_bytes() for name, source in {**half, **programs}.items()}


def _code(plan: BuildPlan) -> Iterator[tuple[str, Member]]:
    """Yield the project's files, which nobody may write in the image, in a folder that everybody may."""
    place = plan.added.workdir.lstrip("/")
    yield place, 0o1777
    for file in plan.added.files:
        yield f"{place}/{file.path}", file


def _lock(plan: BuildPlan) -> Iterator[tuple[str, Member]]:
    yield (
        f"{HOME}/unset.json",
        (json.dumps(dict(plan.unset), sort_keys=True) + "\n").encode("ascii"),
    )
    if plan.lock is not None:
        yield f"{HOME}/envlock.lock", plan.lock


def wheels_in(folder: Path) -> list[str]:
    """Return the names of the wheels in a folder, none where it does not exist.

    Raises:
        UsageError: it is no folder that can be read.
    """
    try:
        return sorted(item.name for item in folder.iterdir() if item.name.endswith(".whl"))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(
            f"cannot read the wheelhouse {folder}: {error.strerror}", hint="name a folder"
        ) from None
