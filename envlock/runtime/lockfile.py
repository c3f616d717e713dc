"""Find a lockfile and read it as plain JSON values, as strictly as it can be done without pydantic.

The verdict of `envlock verify` and of `assert_locked()` must be one verdict, so both read through here. What a
single fact holds is not judged: a wrong value, of whatever scalar type, is a *difference*, and `compare` names it.
"""

from __future__ import annotations

import errno
import os
import stat

from envlock.runtime import strict_json
from envlock.runtime.errors import LockfileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

    Document = Dict[str, Any]
    Upgrade = Callable[[Document], Document]

NAME = "envlock.lock"
LOCK_VERSION = 1
SIZE_LIMIT = 4 * 1024 * 1024  # bytes; a lock of 500 packages is 0.2 MB
ENTRY_LIMIT = 1000  # entries of `unavailable`, and of the overrides
MACHINE_LIMIT = 100
DEPTH_LIMIT = 12  # facts.gpu.devices.0.mig.0.x is 7

CONFLICT = b"<<<<<<< "
"""How a side begins in a file that git could not merge: https://git-scm.com/docs/git-merge#_how_conflicts_are_presented"""

UPGRADES: Dict[int, Upgrade] = {}
"""Older `lock_version` -> the step that makes a document of the next version from it. Empty while 1 is the first."""

REQUIRED = ("lock_version", "created_by", "facts", "unavailable", "policy")
OBJECTS = ("project", "identity", "base_image", "image", "numerics")
OPTIONAL = ("$schema", "machines", *OBJECTS)
SECTIONS = (
    "python",
    "packages",
    "tensorflow",
    "cuda",
    "gpu",
    "keras",
    "numpy",
    "cpu",
    "system",
    "environ",
)


SETTINGS = "pyproject.toml"
REPOSITORIES = (".git", ".hg", ".svn")


def find(start: str) -> Optional[str]:
    """Return the nearest `envlock.lock` in the folder `start` or above it in its project, or None."""
    here = os.path.join(os.path.abspath(start), NAME)
    if os.path.lexists(here):
        return here
    border = project(start)
    return next((path for path in _upwards(start, NAME) if _is_within(path, border)), None)


def find_outside(start: str) -> Optional[str]:
    """Return the nearest `envlock.lock` above the project of the folder `start`: another project's, or None."""
    border = project(start)
    return next((path for path in _upwards(start, NAME) if not _is_within(path, border)), None)


def project(start: str) -> str:
    """Return the project's folder: nothing above it is looked at or written.

    That is the nearest one with a pyproject.toml (with `[tool.envlock]` where one in the repository has it), else the
    root of the repository, else `start` itself.
    """
    folder = start = os.path.abspath(start)
    nearest: Optional[str] = None
    while True:
        settings = os.path.join(folder, SETTINGS)
        if os.path.isfile(settings):
            if _mentions_envlock(settings):
                return folder
            nearest = nearest or folder
        if any(os.path.lexists(os.path.join(folder, name)) for name in REPOSITORIES):
            return nearest or folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return nearest or start
        folder = parent


def _upwards(start: str, name: str) -> Iterator[str]:
    folder = os.path.abspath(start)
    while True:
        candidate = os.path.join(folder, name)
        if os.path.lexists(candidate):
            yield candidate
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def _is_within(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _mentions_envlock(file: str) -> bool:
    """Return whether it seems to have settings of envlock; Python 3.8 has no TOML reader."""
    try:
        with open(file, "rb") as stream:
            return b"tool.envlock" in stream.read(SIZE_LIMIT)
    except OSError:
        return False


def read_file(path: str, upgrades: Optional[Mapping[int, Upgrade]] = None) -> Document:
    """Return the checked document in a lockfile, upgraded to `LOCK_VERSION`.

    Raises:
        LockfileError: it is missing, is no regular file, is too large, or is not a lockfile.
    """
    return parse(_read_bytes(path), path, upgrades)


def parse(data: bytes, name: str, upgrades: Optional[Mapping[int, Upgrade]] = None) -> Document:
    """Return the checked document in `data`, upgraded to `LOCK_VERSION`; `name` is for messages.

    Raises:
        LockfileError: it is not a lockfile.
    """
    if len(data) > SIZE_LIMIT:
        raise _too_large(name, f"more than {SIZE_LIMIT // 2**20} MB")
    if data.startswith(CONFLICT) or b"\n" + CONFLICT in data:
        hint = "take one side, then run `envlock capture`; `envlock merge --help` shows how git merges lockfiles itself"
        raise LockfileError(f"lockfile {name} is not valid: it has conflict markers", hint=hint)
    try:
        document = strict_json.parse(data)
    except ValueError as error:
        raise _invalid(name, str(error)) from None
    if not isinstance(document, dict):
        raise _invalid(name, f"it is {_kind(document)}, not an object")
    document = _upgrade(document, name, UPGRADES if upgrades is None else upgrades)
    problem = next(_problems(document), None)
    if problem is not None:
        raise _invalid(name, problem)
    return document


def _read_bytes(path: str) -> bytes:
    try:
        # O_NONBLOCK: opening a FIFO nobody writes to would wait for ever
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        hint = (
            "create one with `envlock capture`, or name one: `envlock verify path/to/envlock.lock`"
        )
        raise LockfileError(f"lockfile not found: {path}", hint=hint) from None
    except OSError as error:
        loop = error.errno == errno.ELOOP
        hint = (
            "remove one of the symbolic links: they form a loop"
            if loop
            else "check the path and its permissions"
        )
        raise LockfileError(f"cannot read lockfile {path}: {error.strerror}", hint=hint) from None
    except ValueError:  # a NUL byte in the name
        raise LockfileError(
            f"cannot read lockfile {path!r}: not a path", hint="check the path"
        ) from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise LockfileError(
                f"cannot read lockfile {path}: it is {kind}", hint="name the lockfile itself"
            )
        if status.st_size > SIZE_LIMIT:
            raise _too_large(path, f"{status.st_size // 2**20} MB")
        with os.fdopen(fd, "rb", closefd=False) as stream:
            return stream.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise LockfileError(
            f"cannot read lockfile {path}: {error.strerror}", hint="check the disk"
        ) from None
    finally:
        os.close(fd)


def _upgrade(document: Document, name: str, upgrades: Mapping[int, Upgrade]) -> Document:
    version = document.get("lock_version")
    if type(version) is not int:
        found = "it is missing" if version is None else f"it is {_kind(version)}"
        raise _invalid(name, f"`lock_version` must be a whole number, but {found}")
    if version > LOCK_VERSION:
        writer = document.get("created_by")
        by = (
            f", written by {writer}"
            if isinstance(writer, str) and writer.isprintable() and len(writer) < 60
            else ""
        )
        raise LockfileError(
            f"lockfile {name} has lock_version {version}{by}; this envlock reads up to {LOCK_VERSION}",
            hint="upgrade envlock, or capture again with this one: `envlock capture`",
        )
    while version < LOCK_VERSION:
        if version not in upgrades:
            raise _invalid(name, f"unknown lock_version {version}")
        try:
            document = dict(upgrades[version](document), lock_version=version + 1)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _invalid(name, f"it is not a valid document of lock_version {version}") from None
        version += 1
    return document


def _problems(document: Document) -> Iterator[str]:
    for key in REQUIRED:
        if key not in document:
            yield f"`{key}` is missing"
    for key in document:
        if key not in REQUIRED and key not in OPTIONAL:
            yield f"it has an unknown field `{_short(key)}`"
    for key in ("$schema", "created_by"):
        if not isinstance(document.get(key, ""), str):
            yield f"`{key}` must be a string, but is {_kind(document[key])}"
    for key in OBJECTS:
        if not isinstance(document.get(key, {}), dict):
            yield f"`{key}` must be an object, but is {_kind(document[key])}"
    yield from _project_problems(document.get("project", {}))
    yield from _fact_problems(document["facts"])
    yield from _unavailable_problems(document["unavailable"], document["facts"])
    yield from _policy_problems(document["policy"])
    if "machines" in document:
        yield from _machine_problems(document["machines"])


def are_facts(facts: Any, unavailable: Any) -> bool:
    """Return whether values that came from outside are the facts of a machine, and what could not be collected."""
    problem = next(_fact_problems(facts), None)
    return problem is None and next(_unavailable_problems(unavailable, facts), None) is None


def _project_problems(project: Any) -> Iterator[str]:
    """Yield what is wrong with the part that the runtime half reads."""
    if not isinstance(project, dict):
        return  # said already
    name = project.get("name")
    if not isinstance(name, (str, type(None))):
        yield f"`project.name` must be a string, but is {_kind(name)}"
    for key in ("entry", "tooling"):
        values = project.get(key, [])
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            yield f"`project.{key}` must be a list of strings"
    for key in ("held", "observed"):
        known = project.get(key, {})
        if not isinstance(known, dict) or not all(isinstance(each, str) for each in known.values()):
            yield f"`project.{key}` must be an object of strings"
    if ("entry" in project) != ("held" in project):
        yield "`project` must have both `entry` and `held`, or neither"


def _fact_problems(facts: Any) -> Iterator[str]:
    if not isinstance(facts, dict):
        yield f"`facts` must be an object, but is {_kind(facts)}"
        return
    for name in facts:
        if name not in SECTIONS:
            yield f"`facts` has an unknown section `{_short(name)}`"
    yield from _tree_problems(facts, "facts", DEPTH_LIMIT)


def _tree_problems(node: Dict[str, Any], path: str, depth: int) -> Iterator[str]:
    if depth == 0:
        yield f"`{_short(path)}` is nested too deeply"
        return
    for key, value in node.items():
        if isinstance(value, dict):
            yield from _tree_problems(value, f"{path}.{key}", depth - 1)
        elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
            yield f"`{_short(path)}.{_short(key)}` must be a list of plain values"


def _unavailable_problems(unavailable: Any, facts: Dict[str, Any]) -> Iterator[str]:
    if not isinstance(unavailable, dict):
        yield f"`unavailable` must be an object, but is {_kind(unavailable)}"
        return
    if len(unavailable) > ENTRY_LIMIT:
        yield f"`unavailable` has {len(unavailable)} entries, more than {ENTRY_LIMIT}"
    for path, entry in unavailable.items():
        strings: List[Any] = list(entry.values()) if isinstance(entry, dict) else []
        if not isinstance(entry, dict) or set(entry) != {"reason", "code"}:
            yield f"`unavailable.{_short(path)}` must be an object of `reason` and `code`"
        elif not all(isinstance(item, str) for item in strings):
            yield f"`unavailable.{_short(path)}` must hold strings"
        elif _holds(facts, path):  # or the entry would silence every difference there
            yield f"`{_short(path)}` is in `facts` and in `unavailable`"


def _machine_problems(machines: Any) -> Iterator[str]:
    if not isinstance(machines, list) or not 1 <= len(machines) <= MACHINE_LIMIT:
        yield f"`machines` must be a list of 1 to {MACHINE_LIMIT} machines"
        return
    for machine in machines:
        if not isinstance(machine, dict) or set(machine) != {"facts", "unavailable"}:
            yield "`machines` must hold objects of `facts` and `unavailable`"
            return
        yield from _fact_problems(machine["facts"])
        yield from _unavailable_problems(machine["unavailable"], machine["facts"])
    from envlock.runtime.machines import problems

    yield from problems(machines)


def _holds(facts: Dict[str, Any], path: str) -> bool:
    node: Any = facts
    for name in path.split("."):
        if not isinstance(node, dict) or name not in node:
            return False
        node = node[name]
    return True


def _policy_problems(policy: Any) -> Iterator[str]:
    if not isinstance(policy, dict) or set(policy) != {"name", "overrides"}:
        yield "`policy` must be an object of `name` and `overrides`"
        return
    if not isinstance(policy["name"], str):
        yield f"`policy.name` must be a string, but is {_kind(policy['name'])}"
    overrides = policy["overrides"]
    if not isinstance(overrides, dict) or not all(
        isinstance(rule, str) for rule in overrides.values()
    ):
        yield "`policy.overrides` must be an object of strings"
    elif len(overrides) > ENTRY_LIMIT:
        yield f"`policy.overrides` has {len(overrides)} entries, more than {ENTRY_LIMIT}"


def _invalid(name: str, problem: str) -> LockfileError:
    hint = "restore it from version control, or create it again with `envlock capture`"
    return LockfileError(f"lockfile {name} is not valid: {problem}", hint=hint)


def _too_large(name: str, size: str) -> LockfileError:
    limit = f"{SIZE_LIMIT // 2**20} MB"
    return LockfileError(
        f"lockfile {name} is too large: {size}, limit {limit}", hint="name the lockfile itself"
    )


def _short(text: str) -> str:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return shown if shown.isprintable() else ascii(shown)[1:-1]


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return names[type(value)]
