"""The files of a project that its setting `copy` names, read from its folder."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from envlock.image.additions import CopiedFile
from envlock.image.ignore_files import IgnoreFiles
from envlock.image.ignore_rules import list_parents
from envlock.runtime import lockfile
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean, count, join_first

MOST = 10_000
"""The most files: more are data, which should be mounted instead of copied."""

LARGE = 100_000_000
"""Bytes from which the largest files are named. The value is a choice: each pull has them again."""

SHOWN = 10
"""The most names in a warning."""

_PATH = re.compile(r"(?!.*(^|/)\.{1,2}(/|$))[^\x00-\x1f\x7f\\]{1,400}")
"""A path as a lockfile can hold it, without a step `.` or `..`."""

_EXAMPLE = 'name files and folders below the project, such as `copy = ["train.py", "src"]`'

_SECRET_NAMES = (
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.tfstate",
    "*.tfvars",
    ".env*",
    "*.env",
    ".netrc",
    ".pypirc",
    ".npmrc",
    ".htpasswd",
    ".pgpass",
    "kubeconfig*",
    "secret.*",
    "secrets.*",
    "*_secret.*",
    "*_secrets.*",
    "client_secret*.json",
    "credentials",
    "credentials.*",
    "*credentials*.json",
    "service-account*.json",
    "service_account*.json",
    "token",
    "*token.txt",
    "*.token",
)
"""Names, in lower case, that files with keys and passwords usually have: only a warning rests on them."""

_NO_SECRET_NAMES = (
    "*.pub",
    ".env.example",
    ".env.sample",
    ".env.template",
    "cert.pem",
    "cacert.pem",
)

_KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_POINTERS = {
    b"version https://git-lfs.github.com/spec/": "Git LFS",
    b"/annex/objects/": "git-annex",
}
"""How a file begins that stands for another, by the program that would fetch it."""


class Copied(NamedTuple):
    """The files to copy, what they are in a phrase, and sentences on what a user may not expect."""

    files: tuple[CopiedFile, ...]
    summary: str
    warnings: tuple[str, ...]


@dataclass
class _Search:
    """What was found and what was refused, in the order of the settings."""

    files: dict[str, CopiedFile] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Sentences by name, with a place for the name."""
    secrets: list[str] = field(default_factory=list)
    pointers: dict[str, list[str]] = field(default_factory=dict)


def collect(project: Path, names: Sequence[str], but: Path, exclude: Sequence[str] = ()) -> Copied:
    """Return the named files and those below named folders, sorted by path.

    Below a folder, hidden files, bytecode, environments, lockfiles and the folder `but` are left
    out, and what `exclude` or the project's .dockerignore (without one, its .gitignore) leaves out.
    Links to what is copied are kept. A name in `names` itself is copied whatever the rules say.

    Raises:
        UsageError: a file does not exist, is outside of the project, cannot be read, or has a name
            that is not portable; the message has all of them.
    """
    search = _Search()
    ignored = IgnoreFiles(project, exclude)
    for name in names:
        start = Path(os.path.normpath(project / name))
        if Path(name).is_absolute() or not start.is_relative_to(project):
            search.refused[name] = _OUTSIDE
            continue
        if not _is_within(start, project):
            search.refused[name] = _OUTSIDE
            continue
        for file in _list_files(start, but, ignored):
            path = file.relative_to(project).as_posix()
            _add(file, path, project, search)
            if len(search.files) > MOST:
                raise UsageError(
                    f"`copy` names more than {count(MOST, 'file')}",
                    hint="mount data; copy code; `exclude` leaves out files and folders",
                )
    dangling = _add_links(search)
    _refuse(search)
    files = tuple(search.files[path] for path in sorted(search.files))
    warnings = tuple(_list_warnings(files, dangling, search))
    return Copied(files, _describe(files, ignored), warnings)


_OUTSIDE = "`copy` names what is not in the project: {}"
_NOT_PORTABLE = "`copy` names a file with a name that is not portable: {}"
_SPECIAL = "`copy` names a special file: {}"


def _refuse(search: _Search) -> None:
    """Refuse all that cannot be copied, in one message."""
    if not search.refused:
        return
    if set(search.refused.values()) == {_NOT_PORTABLE}:
        hint = "rename it, or leave it out with `exclude`"
    else:
        hint = _EXAMPLE
    messages = [reason.format(clean(name)) for name, reason in search.refused.items()]
    if len(messages) == 1:
        raise UsageError(messages[0], hint=hint)
    lines = [f"  {message}" for message in messages[:MOST]]
    raise UsageError(
        f"`copy` has {count(len(messages), 'name')} that cannot be copied:", lines=lines, hint=hint
    )


def _is_within(start: Path, project: Path) -> bool:
    """Return whether a path stays inside the project when links are followed."""
    return start.resolve().is_relative_to(project.resolve())


# --- what is listed


def _list_files(start: Path, but: Path, ignored: IgnoreFiles) -> Iterator[Path]:
    """Yield the files and links below a folder that are copied, or the file itself."""
    if start.is_symlink() or not start.is_dir():
        yield start
        return
    for folder, folders, names in os.walk(start, onerror=_raise_unreadable):
        paths = [Path(folder) / name for name in sorted([*folders, *names])]
        files = [path for path in paths if path.is_symlink() or not path.is_dir()]
        yield from (
            path for path in files if _is_source(path) and not ignored.is_left_out(path, start)
        )
        # Changed in place, because os.walk visits only the folders that are left.
        folders[:] = [
            path.name
            for path in sorted(set(paths) - set(files))
            if _is_code(path, but) and not ignored.is_left_out(path, start, is_folder=True)
        ]


def _raise_unreadable(error: OSError) -> None:
    raise UsageError(
        f"cannot read {error.filename}, which `copy` names: {error.strerror}", hint=_EXAMPLE
    )


def _is_plain(name: str) -> bool:
    return not name.startswith(".") and name != "__pycache__"


def _is_code(folder: Path, but: Path) -> bool:
    """Return whether files below a folder are copied."""
    is_environment = os.access(folder / "pyvenv.cfg", os.F_OK)
    if not _is_plain(folder.name) or is_environment:
        return False
    return folder.resolve() != but.resolve()


def _is_source(file: Path) -> bool:
    """Return whether a file or link below a named folder is copied."""
    if not _is_plain(file.name) or file.name == lockfile.NAME or file.suffix == ".pyc":
        return False
    return file.is_symlink() or file.is_file()


# --- what is read


def _add(file: Path, path: str, project: Path, search: _Search) -> None:
    """Add a file or a link, or the reason why it cannot be copied."""
    if _PATH.fullmatch(path) is None or not path.isprintable():
        search.refused[path] = _NOT_PORTABLE
    elif file.is_symlink():
        target = file.resolve()
        outside = not target.is_relative_to(project.resolve())
        search.links[path] = "" if outside else target.relative_to(project.resolve()).as_posix()
    else:
        _read(file, path, search)


def _add_links(search: _Search) -> list[str]:
    """Add the links to what is copied, and return the others."""
    dangling = []
    folders = {folder for path in search.files for folder in list_parents(path)}
    for path, target in search.links.items():
        if target not in search.files and target not in folders:
            dangling.append(path)
            continue
        text = os.path.relpath(target, Path(path).parent)
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        search.files[path] = CopiedFile(path, digest, False, Path(path), link=text)
    return dangling


def _read(file: Path, path: str, search: _Search) -> None:
    try:
        # A pipe would wait for somebody to write into it.
        with open(file, "rb", opener=_open_without_waiting) as stream:
            # Of the file that is open: another one may have its name by now.
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                search.refused[path] = _SPECIAL
                return
            digest = hashlib.sha256()
            head = stream.read(1 << 20)
            chunk = head
            while chunk:
                digest.update(chunk)
                chunk = stream.read(1 << 20)
    except OSError as error:
        search.refused[path] = f"cannot read {{}}, which `copy` names: {error.strerror}"
        return
    is_program = bool(status.st_mode & 0o100)
    search.files[path] = CopiedFile(path, digest.hexdigest(), is_program, file, status.st_size)
    name = file.name.lower()
    looks_secret = _fits(name, _SECRET_NAMES) and not _fits(name, _NO_SECRET_NAMES)
    if looks_secret or _KEY.match(head):
        search.secrets.append(path)
    for beginning, program in _POINTERS.items():
        if head.startswith(beginning) and status.st_size < 1024:
            search.pointers.setdefault(program, []).append(path)


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


# --- what is said


def _list_warnings(
    files: Sequence[CopiedFile], dangling: Sequence[str], search: _Search
) -> Iterator[str]:
    """Yield a sentence for each kind of surprise."""
    total = sum(file.size for file in files)
    if total >= LARGE:
        largest = sorted(files, key=lambda file: (-file.size, file.path))[:3]
        names = ", ".join(f"{file.path} ({format_size(file.size)})" for file in largest)
        yield (
            f"`copy` adds {format_size(total)} to the image; the largest are {names}: "
            "mount data, or leave it out with `exclude`"
        )
    if search.secrets:
        yield (
            f"`copy` puts what looks like a secret into the image: {join_first(sorted(search.secrets), SHOWN)}; "
            "everybody who can pull the image can read it, and `exclude` leaves it out"
        )
    for program, paths in search.pointers.items():
        yield (
            f"`copy` has {count(len(paths), 'pointer')} of {program} in place of the content: "
            f"{join_first(sorted(paths), SHOWN)}; fetch it first"
        )
    if dangling:
        yield f"`copy` leaves out links to what is not copied: {join_first(sorted(dangling), SHOWN)}"


def _describe(files: Sequence[CopiedFile], ignored: IgnoreFiles) -> str:
    """Return how many files are copied, their size, and what rules leave out."""
    size = format_size(sum(file.size for file in files))
    text = f"{count(len(files), 'file')} of the project, {size}"
    by_rules: dict[str, list[str]] = {}
    for path, rules in ignored.left_out.items():
        by_rules.setdefault(rules, []).append(path)
    for rules, paths in sorted(by_rules.items()):
        text += f"; {rules} leaves out {join_first(sorted(paths), SHOWN)}"
    return text


def format_size(size: int) -> str:
    """Return a number of bytes as people read it: `9 kB`, `1.2 MB`."""
    if size < 1000:
        return count(size, "byte")
    if size < 1_000_000:
        return f"{round(size / 1000)} kB"
    if size < 1_000_000_000:
        return f"{size / 1_000_000:.1f} MB"
    return f"{size / 1_000_000_000:.2f} GB"
