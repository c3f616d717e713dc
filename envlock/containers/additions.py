"""What a project adds to its image beyond the lock's packages: code, a user, a folder, a command, variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envlock.containers.quoting import safe
from envlock.lock.models import Container
from envlock.runtime.errors import LockfileError, UsageError
from envlock.runtime.tables import table

USER = "1000:1000"
HOME = "/home/user"
"""Of whoever runs the program; the working folder too, where none is named."""

KEYS = ("copy", "workdir", "user", "command", "environ", "apt", "apt-sources")
"""What `[tool.envlock.container]` may have; envlock/containers/debian.py reads the last two."""

_KEPT = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/opt/envlock",
    "/opt/venv",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
)
_SYSTEM = (*_KEPT, "/lib64", "/usr", "/var", "/layers", "/wheels")
"""Folders that are the system's or envlock's: the working folder is made writable for everybody."""

_OURS = ("PATH", "HOME", "IFS", "SOURCE_DATE_EPOCH")
_OURS_BEGIN = ("ENVLOCK_", "LD_", "PYTHON", "GLIBC_", "DYLD_")
"""Variables that the image sets itself, or by which a program becomes another one."""


@dataclass(frozen=True)
class CopiedFile:
    """A file of the project: its path there and below the working folder, and where it is now."""

    path: str
    sha256: str
    is_program: bool
    source: Path


@dataclass(frozen=True)
class Additions:
    """What is added, every value checked; `command` is empty where the base's own stays."""

    files: tuple[CopiedFile, ...] = ()
    workdir: str = HOME
    user: str = USER
    command: tuple[str, ...] = ()
    environ: tuple[tuple[str, str], ...] = ()

    @property
    def recorded(self) -> Container:
        """What the lock keeps of it."""
        return Container.model_validate(
            {
                "files": {file.path: file.sha256 for file in self.files},
                "workdir": self.workdir,
                "user": self.user,
                "command": list(self.command),
                "environ": dict(self.environ),
            }
        )


def additions(wanted: Mapping[str, Any], files: Sequence[CopiedFile], where: str) -> Additions:
    """Return what is added, by the values of `[tool.envlock.container]` or of a lock.

    Args:
        wanted: values by the keys; what is missing has its default.
        files: what `copy` names.
        where: what a message begins with.

    Raises:
        UsageError: a value must not go into an image; the message names its key.
    """
    command = wanted.get("command", [])
    environ = wanted.get("environ", {})
    if not isinstance(command, list) or not isinstance(environ, dict):
        raise UsageError(
            f"{where}: `command` must be a list, and `environ` a table",
            hint='write `command = ["python"]`',
        )
    words = tuple(_checked(word, "word", f"{where}: `command`") for word in command)
    variables = tuple(
        sorted(
            (_variable(name, where), _value(name, value, where)) for name, value in environ.items()
        )
    )
    user = _user(wanted.get("user", USER), f"{where}: `user`")
    return Additions(
        tuple(files), _workdir(wanted.get("workdir", HOME), where), user, words, variables
    )


def _user(text: object, where: str) -> str:
    """Return USER or USER:GROUP as both numbers."""
    whole = f"{text}:{text}" if isinstance(text, str) and text.isdecimal() else text
    return _checked(whole, "user", where)


def _workdir(text: object, where: str) -> str:
    folder = _checked(text, "path", f"{where}: `workdir`").rstrip("/")
    if ".." in folder.split("/") or "//" in folder or "/./" in f"{folder}/":
        raise UsageError(
            f"{where}: `workdir` is not a plain path: {folder}",
            hint='write it like `workdir = "/app"`',
        )
    if (
        not folder
        or any(folder == each or folder.startswith(f"{each}/") for each in _SYSTEM)
        or folder == "/opt"
    ):
        raise UsageError(
            f"{where}: `workdir` is a folder of the system: {text}",
            hint='use another, such as "/app"',
        )
    return folder


def _variable(name: str, where: str) -> str:
    """Return a name that may be set: neither one that the lock holds nor one that the image needs."""
    _checked(name, "variable", f"{where}: `environ`")
    if any(row["name"] == name for row in table("environ")):
        raise UsageError(
            f"{where}: `environ.{name}` is a fact of the lockfile",
            hint="set it before `envlock capture`, and the image has it as locked",
        )
    if name in _OURS or name.startswith(_OURS_BEGIN):
        raise UsageError(
            f"{where}: `environ.{name}` belongs to the image or its loader", hint="remove it"
        )
    return name


def _value(name: str, value: object, where: str) -> str:
    return _checked(value, "value", f"{where}: `environ.{name}`")


def _checked(value: object, kind: str, where: str) -> str:
    try:
        return str(safe(value, kind, where))
    except LockfileError as error:
        reason = error.message.partition(" cannot go into an image: ")[2]
        raise UsageError(
            f"{where}: {reason}", hint="use letters, digits and plain punctuation"
        ) from None
