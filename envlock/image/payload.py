"""The files of a build beside the Dockerfile: a tar for each layer, always with the same bytes.

Members are sorted; every time is the epoch, every mode 0644 or 0755, every owner 0. A wheel of a
gigabyte is copied in pieces, and hashed meanwhile; if the hash is wrong, nothing is left over.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, cast

import envlock
from envlock.image import render, standalone
from envlock.image.additions import CopiedFile
from envlock.image.layers import NAMES, Layer, Wheel
from envlock.image.plan import BuildPlan
from envlock.lock.models import DebianPackage
from envlock.lock.temporary import open_draft_folder
from envlock.runtime.drafts import PREFIX
from envlock.runtime.errors import OutsideError, UsageError, WriteError
from envlock.runtime.judgement import LOADED
from envlock.runtime.version import __version__

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
"""The names of the files in a context."""

Member = bytes | Wheel | DebianPackage | CopiedFile | int
"""A member of a tar: bytes, a file on the disk, or the mode of a folder."""


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
    """Write Dockerfile, .dockerignore, apptainer.def and the tars into a folder: either all or
    none.

    Raises:
        LockfileError: a value in the lockfile must not be written into a Dockerfile.
        UsageError: the folder has other content.
        OutsideError: a wheel is missing or is not the one that the lockfile names.
        WriteError: it cannot be written; the old content is unchanged.
    """
    texts = {
        "Dockerfile": render.dockerfile(plan),
        ".dockerignore": render.dockerignore(),
        "apptainer.def": render.apptainer(plan),
    }
    _check_folder(folder)
    target = folder.resolve()
    try:
        with open_draft_folder(target.parent) as draft:
            new = draft / "new"
            new.mkdir()
            for name, text in texts.items():
                (new / name).write_text(text, encoding="utf-8")
            for name, members in list_tars(plan).items():
                with (new / name).open("wb") as stream:
                    write(members, plan.epoch, wheelhouse, stream)
            if plan.base.python_archive is not None:
                with (new / standalone.TAR).open("wb") as stream:
                    standalone.write(plan.base.python_archive, wheelhouse, plan.epoch, stream)
            for name, inputs in _list_inputs(plan).items():
                _set_time(new / name, [__version__, plan.epoch, inputs])
            # Renamed as a whole, so that the folder never has files of two contexts.
            if target.exists():
                target.rename(draft / "old")
            new.rename(target)
    except OSError as error:
        hint = "free disk space there"
        if target.parent.name.startswith(PREFIX):
            hint += ", or set TMPDIR to a folder with more"
        raise WriteError(f"cannot write to {folder}: {error.strerror}", hint=hint) from None


def _check_folder(folder: Path) -> None:
    """Check that a folder can become a context, and create its parent folder."""
    try:
        is_other = (
            bool({item.name for item in folder.iterdir()} - OWN)
            if folder.is_dir()
            else folder.exists()
        )
        if is_other:
            raise UsageError(
                f"{folder} has files that are not a build context",
                hint="name a new or an empty folder",
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(
            f"cannot write to {folder}: {error.strerror}", hint="name a writable folder"
        ) from None


def list_tars(plan: BuildPlan) -> dict[str, dict[str, Member]]:
    """Return the members of each tar of a context, by their names."""
    tars = {"runtime.tar": _list_programs(plan)}
    if plan.debian:
        place = f"{WHEELS}/apt"
        packages = render.debian(plan).encode("ascii")
        tars["apt.tar"] = {f"{place}/packages.txt": packages}
        for package in plan.debian:
            path = f"{place}/{package.name}_{package.architecture}.deb"
            tars["apt.tar"][path] = package
    for layer in plan.layers:
        place = f"{WHEELS}/{layer.name}"
        requirements = render.requirements(layer).encode("ascii")
        members: dict[str, Member] = {f"{place}/requirements.txt": requirements}
        for wheel in layer.wheels:
            members[f"{place}/{wheel.file}"] = wheel
        overwritten = _list_overwritten(layer)
        if overwritten:
            members[f"{place}/overwritten.json"] = json.dumps(overwritten, sort_keys=True).encode()
        tars[f"{layer.name}.tar"] = members
    if plan.added.files:
        tars["code.tar"] = _list_code(plan)
    tars["lock.tar"] = _list_lock(plan)
    return tars


def _list_overwritten(layer: Layer) -> dict[str, str | None]:
    """Return path -> wheel with the right content of each file that two packages install; None if
    that wheel is not in the layer.
    """
    files = {wheel.name: wheel.file for wheel in layer.wheels}
    return {path: files.get(winner) for wheel in layer.wheels for path, winner in wheel.overwritten}


def compute_inputs_digest(plan: BuildPlan) -> str:
    """Return the SHA-256 of everything that a build of a plan reads; no file is opened."""
    return _digest({"Dockerfile": render.dockerfile(plan), "tars": _list_inputs(plan)})


def compute_import_digest(plan: BuildPlan) -> str:
    """Return the SHA-256 of what decides which files an import of what computes loads in an image: all
    but the content of the project's own packages and files.
    """
    document = plan.document
    base = plan.base
    archive = base.python_archive
    return _digest(
        {
            "base": [base.reference, base.python_from, archive and archive.sha256],
            "debian": [package.sha256 for package in plan.debian],
            "wheels": [
                [each.name, each.version if each.is_own else each.sha256] for each in plan.wheels
            ],
            "environ": [plan.environ, plan.unset, plan.added.environ],
            "lock": [document.get("facts", {}).get(LOADED), document.get("policy")],
            "programs": sorted(map(_identify, _read_programs().values())),
        }
    )


def _list_inputs(plan: BuildPlan) -> dict[str, object]:
    """Return what determines the bytes of each tar of a context, by their names."""
    inputs: dict[str, object] = {}
    for tar, members in list_tars(plan).items():
        inputs[tar] = {name: _identify(member) for name, member in members.items()}
    if plan.base.python_archive is not None:
        inputs[standalone.TAR] = plan.base.python_archive.sha256
    return inputs


def _digest(inputs: object) -> str:
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode("utf-8")).hexdigest()


def _set_time(file: Path, inputs: object) -> None:
    """Give a tar a time that only its content determines.

    BuildKit takes a file that has the path, the size and the time of one that it was sent before for
    the same file.
    """
    time = int(_digest(inputs), 16) % 10**18  # nanoseconds, of the years from 1970 to 2001
    os.utime(file, ns=(time, time))


def _identify(member: Member) -> list[object]:
    """Return what determines the bytes of a member."""
    if isinstance(member, bytes):
        return [hashlib.sha256(member).hexdigest()]
    if isinstance(member, CopiedFile):
        return [member.sha256, member.is_program, member.link]
    if isinstance(member, int):
        return [member]
    return [member.sha256]


def write(members: Mapping[str, Member], epoch: int, wheelhouse: Path, stream: IO[bytes]) -> None:
    """Write a tar.

    Raises:
        OutsideError: a wheel is missing, or is not the one that the lockfile names; a file has
            changed.
        OSError: the stream cannot be written.
    """
    folders: dict[str, int] = {}
    for name, member in members.items():
        for parent in Path(name).parents:
            folders.setdefault(str(parent), 0o755)
        if isinstance(member, int):
            folders[name] = member
    folders.pop(".", None)
    # PAX differs from USTAR only if a name does not fit, and long names of wheels do not fit.
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
    info.mode = 0o644
    if isinstance(content, bytes):
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    elif isinstance(content, CopiedFile) and content.link is not None:
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, content.link, 0o777
        tar.addfile(info)
    elif isinstance(content, CopiedFile):
        if content.is_program:
            info.mode = 0o755
        _add_copied_file(tar, info, content)
    elif isinstance(content, Wheel | DebianPackage):
        _add_package(tar, info, content, wheelhouse)


def _add_copied_file(tar: tarfile.TarFile, info: tarfile.TarInfo, content: CopiedFile) -> None:
    hint = "run `envlock build` again"
    path = content.source
    try:
        source = path.open("rb")
    except OSError as error:
        raise OutsideError(f"cannot read {path}: {error.strerror}", hint=hint) from None
    if _add_stream(tar, info, source) != content.sha256:
        raise OutsideError(f"{path} changed while it was read", hint=hint)


def _add_package(
    tar: tarfile.TarFile, info: tarfile.TarInfo, content: Wheel | DebianPackage, wheelhouse: Path
) -> None:
    kind, command = "Debian package", "envlock build"
    if isinstance(content, Wheel):
        kind, command = "wheel", "envlock export --wheelhouse wheelhouse"
    path = wheelhouse / content.file
    try:
        source = path.open("rb")
    except OSError as error:
        raise OutsideError(
            f"cannot read the {kind} {path}: {error.strerror}",
            hint=f"run `{command}` to fill the wheelhouse",
        ) from None
    digest = _add_stream(tar, info, source)
    if digest != content.sha256:
        raise OutsideError(
            f"{path} is not the locked {kind}: locked sha256 {content.sha256}, live {digest}",
            hint=f"remove it and run `{command}` again",
        )


def _add_stream(tar: tarfile.TarFile, info: tarfile.TarInfo, source: IO[bytes]) -> str:
    """Add a file up to its end, close it, and return its SHA-256."""
    with source:
        info.size = os.fstat(source.fileno()).st_size
        hashing = Hashing(source)
        tar.addfile(info, cast(IO[bytes], hashing))
    return hashing.digest.hexdigest()


def _list_programs(plan: BuildPlan) -> dict[str, Member]:
    """Return the runtime half, the programs of image and build, and the locked pip, if any."""
    members: dict[str, Member] = dict(_read_programs())
    for wheel in plan.wheels:
        if wheel.name == "pip":
            members[f"{WHEELS}/pip/{wheel.file}"] = wheel
    return members


@cache
def _read_programs() -> dict[str, bytes]:
    package = Path(str(files(envlock)))
    runtime = package / "runtime"
    facade = [package / "__init__.py", package / "__main__.py"]
    fleet = package / "fleet"
    programs = {}
    sources = [*runtime.rglob("*.py"), *runtime.rglob("*.json"), *fleet.rglob("*.py")]
    for source in [*facade, *sources]:
        path = source.relative_to(package).as_posix()
        programs[f"{HOME}/envlock/{path}"] = source.read_bytes()
    for source in (package / "guest" / "image").glob("*.py"):
        programs[f"{HOME}/{source.name}"] = source.read_bytes()
    return programs


def _list_code(plan: BuildPlan) -> dict[str, Member]:
    """Return the project's files, read-only, in a folder in which every user may write."""
    place = plan.added.workdir.lstrip("/")
    members: dict[str, Member] = {place: 0o1777}
    for file in plan.added.files:
        members[f"{place}/{file.path}"] = file
    return members


def _list_lock(plan: BuildPlan) -> dict[str, Member]:
    unset = json.dumps(dict(plan.unset), sort_keys=True) + "\n"
    members: dict[str, Member] = {f"{HOME}/unset.json": unset.encode("ascii")}
    if plan.lock is not None:
        members[f"{HOME}/envlock.lock"] = plan.lock
    return members


def list_wheels(folder: Path) -> list[str]:
    """Return the names of the wheels in a folder; empty if it does not exist.

    Raises:
        UsageError: it is not a readable folder.
    """
    try:
        return sorted(item.name for item in folder.iterdir() if item.name.endswith(".whl"))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(
            f"cannot read the wheelhouse {folder}: {error.strerror}", hint="name a folder"
        ) from None
