"""What a project adds to its image: code, a user, a folder, a command, variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envlock.image.quoting import describe_fault
from envlock.lock.models import Container
from envlock.runtime.errors import UsageError
from envlock.runtime.tables import table

USER = "1000:1000"
HOME = "/home/user"
"""The home folder of any user in the image, and the working folder if none is set."""

_SYSTEM = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/layers",
    "/lib",
    "/lib64",
    "/opt/envlock",
    "/opt/venv",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
    "/wheels",
)
"""Folders of the system or of envlock, which cannot be the working folder: every user may write
there.
"""

_OURS = ("PATH", "HOME", "IFS", "SOURCE_DATE_EPOCH")
_OURS_BEGIN = ("ENVLOCK_", "LD_", "PYTHON", "GLIBC_", "DYLD_")
"""Variables that the image sets itself, or that would turn a program into another one."""
_HARMLESS = (
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONFAULTHANDLER",
    "PYTHONNODEBUGRANGES",
    "PYTHONTRACEMALLOC",
    "PYTHONDEVMODE",
    "PYTHONASYNCIODEBUG",
    "PYTHONPROFILEIMPORTTIME",
)
"""Variables of Python that change what it prints and caches, and neither what it imports nor computes:
https://docs.python.org/3/using/cmdline.html#environment-variables
"""

_HINTS = {
    "word": "use letters, digits and plain punctuation",
    "user": 'use numbers, such as "1000" or "1000:100"',
    "text": "use no backslash, `$`, backtick or line break, and not both kinds of quotes",
    "path": "use an absolute path of letters, digits and plain punctuation",
    "variable": "use letters, digits and `_`",
}

_SECRET = re.compile(
    r"(^|_)(PASS|PASSWORD|PASSWD|SECRET|TOKEN|APIKEY|CREDENTIALS?|PRIVATE_KEY|(API|ACCESS|AUTH)_?KEY)($|_)"
    r"|(^|_)KEY$"
)
"""What names of variables with a secret have in them."""
_SECRET_VALUE = re.compile(
    r"hf_[A-Za-z0-9]{20,}|gh[opsu]_[A-Za-z0-9]{20,}|github_pat_|glpat-|AKIA[0-9A-Z]{16}|sk-[A-Za-z0-9_-]{20,}"
    r"|xox[abpr]-|eyJ[A-Za-z0-9_-]{10,}\.eyJ|-----BEGIN |[a-z]+://[^/@ ]*:[^/@ ]+@"
)
"""How keys of well-known services begin, and a password in an address."""


@dataclass(frozen=True)
class CopiedFile:
    """A file of the project: its path in the project and below the working folder, its source on
    this machine, and its size in bytes.

    `link` is the target of a symbolic link, relative to its folder; then `sha256` is that of this
    text.
    """

    path: str
    sha256: str
    is_program: bool
    source: Path
    size: int = 0
    link: str | None = None


@dataclass(frozen=True)
class Additions:
    """The additions to an image, each value checked; `command` is empty if the base's own is used.

    `summary` says in a phrase what is copied, and `warnings` are sentences on what a user may not
    expect.
    """

    files: tuple[CopiedFile, ...] = ()
    workdir: str = HOME
    user: str = USER
    command: tuple[str, ...] = ()
    environ: tuple[tuple[str, str], ...] = ()
    summary: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def recorded(self) -> Container:
        """The additions in the form that a lockfile records."""
        return Container.model_validate(
            {
                "files": {file.path: file.sha256 for file in self.files},
                "workdir": self.workdir,
                "user": self.user,
                "command": list(self.command),
                "environ": dict(self.environ),
            }
        )


def parse_additions(
    wanted: Mapping[str, object], files: Sequence[CopiedFile], where: str
) -> Additions:
    """Return the additions from the values of `[tool.envlock.container]` or of a lockfile.

    Args:
        wanted: values by key; a missing one has its default.
        files: the files that `copy` names.
        where: the beginning of messages.

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
    words = tuple(_check(word, "word", f"{where}: `command`") for word in command)
    variables = []
    for name, value in environ.items():
        _check_variable(name, where)
        variables.append((name, _check(value, "text", f"{where}: `environ.{name}`")))
    user = _parse_user(wanted.get("user", USER), f"{where}: `user`")
    workdir = _parse_workdir(wanted.get("workdir", HOME), where)
    secrets = [name for name, value in variables if looks_secret(name, value)]
    warnings: tuple[str, ...] = ()
    if secrets:
        warnings = (
            f"`environ` has what looks like a secret: {', '.join(sorted(secrets))}; everybody who can "
            "pull the image can read it: set it when the container starts",
        )
    environ = tuple(sorted(variables))
    return Additions(tuple(files), workdir, user, words, environ, warnings=warnings)


def looks_secret(name: str, value: str) -> bool:
    """Return whether a variable looks like a secret, by its name or its value."""
    # An address or a path says where a secret is, and a short word is a switch.
    is_place = value.startswith(("/", "http://", "https://", "file:")) or len(value) < 6
    by_name = _SECRET.search(name.upper()) is not None and not is_place
    return by_name or _SECRET_VALUE.search(value) is not None


def _parse_user(user: object, where: str) -> str:
    """Return USER or USER:GROUP as two numbers."""
    if isinstance(user, str) and user.isdecimal():
        user = f"{user}:{user}"
    return _check(user, "user", where)


def _parse_workdir(text: object, where: str) -> str:
    folder = _check(text, "path", f"{where}: `workdir`").rstrip("/")
    if ".." in folder.split("/") or "//" in folder or "/./" in f"{folder}/":
        raise UsageError(
            f"{where}: `workdir` is not a plain path: {folder}",
            hint='write it like `workdir = "/app"`',
        )
    if _is_of_system(folder):
        raise UsageError(
            f"{where}: `workdir` is a folder of the system: {text}",
            hint='use another, such as "/app"',
        )
    return folder


def _is_of_system(folder: str) -> bool:
    if folder in ("", "/opt"):  # but not the folders below /opt
        return True
    return any(f"{folder}/".startswith(f"{own}/") for own in _SYSTEM)


def _check_variable(name: str, where: str) -> None:
    """Refuse a variable that the lockfile has or that the image needs."""
    _check(name, "variable", f"{where}: `environ`")
    if any(row["name"] == name for row in table("environ")):
        raise UsageError(
            f"{where}: `environ.{name}` is a fact of the lockfile",
            hint="set it before `envlock capture`, and the image has it as locked",
        )
    if name in _HARMLESS:
        return
    if name in _OURS or name.startswith(_OURS_BEGIN):
        raise UsageError(
            f"{where}: `environ.{name}` belongs to the image or its loader", hint="remove it"
        )


def _check(value: object, kind: str, where: str) -> str:
    """Return a value after checking its kind; see `describe_fault`."""
    fault = describe_fault(value, kind)
    if fault is not None:
        raise UsageError(f"{where}: {fault}", hint=_HINTS.get(kind, _HINTS["word"]))
    return str(value)
