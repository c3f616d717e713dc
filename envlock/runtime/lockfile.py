"""Find a lockfile and read it as plain JSON values, as strictly as possible without pydantic.

`envlock verify` and `assert_locked()` must give the same verdict, so both read lockfiles with this
module. The value of a single fact is not checked: a wrong value, of whatever scalar type, is a
*difference*, which `compare` reports.
"""

from __future__ import annotations

import errno
import os
import stat

from envlock.runtime import strict_json
from envlock.runtime.errors import LockfileError
from envlock.runtime.report import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterable, Iterator, Optional

    from envlock.runtime.facts import Document

    Upgrade = Callable[[Document], Document]

NAME = "envlock.lock"
LOCK_VERSION = 1
SIZE_LIMIT = 4 * 1024 * 1024  # bytes; a lockfile of 500 packages has 0.2 MB
ENTRY_LIMIT = 1000  # entries of `unavailable`, and of the overrides
MACHINE_LIMIT = 100  # each is compared with the live one
DATA_LIMIT = 100  # names in pyproject.toml; a folder counts once
DEPTH_LIMIT = 12  # facts.gpu.devices.0.mig.0.x is 7

DIGITS = {"sha256": 64, "md5": 32}
"""How many hexadecimal digits a digest of data has, by its algorithm."""

CONFLICT = b"<<<<<<< "
"""How the two sides begin in a file that git could not merge:
https://git-scm.com/docs/git-merge#_how_conflicts_are_presented
"""
PASTED = "name a lockfile; `envlock diff FILE live` reads a freeze and other pasted texts"

UPGRADES: Dict[int, Upgrade] = {}
"""Older `lock_version` -> the function that upgrades a document to the next version. Empty while 1
is the first.
"""

REQUIRED = ("lock_version", "created_by", "facts", "unavailable", "policy")
OBJECTS = ("project", "identity", "base_image", "image", "numerics", "data")
OPTIONAL = ("$schema", "machines", *OBJECTS)
SECTIONS = (
    "python",
    "packages",
    "tensorflow",
    "cuda",
    "gpu",
    "keras",
    "jax",
    "torch",
    "numpy",
    "cpu",
    "system",
    "environ",
    "named",
    "loaded",
)
MOVED = frozenset({"jax", "torch"})
"""Sections that were parts of `keras`."""

SETTINGS = "pyproject.toml"
REPOSITORIES = (".git", ".hg", ".svn")


def find(start: str) -> Optional[str]:
    """Return the nearest `envlock.lock` in the folder `start` or above it in its project, or None."""
    here = os.path.join(os.path.abspath(start), NAME)
    # The usual case first: it avoids searching for the project, which opens files.
    if os.path.lexists(here):
        return here
    border = find_project(start)
    for path in _iter_upwards(start):
        if _is_within(path, border):
            return path
    return None


def is_nearest(path: str) -> bool:
    """Return whether a lockfile is the one that $ENVLOCK_LOCK names, or else the nearest to the current folder; also if
    that was removed.
    """
    try:
        nearest = os.environ.get("ENVLOCK_LOCK") or find(os.getcwd())
    except OSError:
        return True
    return nearest is not None and os.path.abspath(nearest) == os.path.abspath(path)


def find_outside(start: str) -> Optional[str]:
    """Return the nearest `envlock.lock` above the project of the folder `start`: another project's, or None."""
    border = find_project(start)
    for path in _iter_upwards(start):
        if not _is_within(path, border):
            return path
    return None


def find_project(start: str) -> str:
    """Return the project's folder; nothing above it is read or written.

    That is the nearest one with a pyproject.toml (with `[tool.envlock]`, if one in the repository
    has it), else the root of the repository, else `start` itself.
    """
    start = os.path.abspath(start)
    folder = start
    nearest: Optional[str] = None
    while True:
        settings = os.path.join(folder, SETTINGS)
        if os.path.isfile(settings):
            if _mentions_envlock(settings):
                return folder
            if nearest is None:
                nearest = folder
        if any(os.path.lexists(os.path.join(folder, name)) for name in REPOSITORIES):
            return nearest or folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return nearest or start
        folder = parent


def _iter_upwards(start: str) -> Iterator[str]:
    """Yield each lockfile in the folder `start` and above it."""
    folder = os.path.abspath(start)
    while True:
        candidate = os.path.join(folder, NAME)
        if os.path.lexists(candidate):
            yield candidate
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def _is_within(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _mentions_envlock(file: str) -> bool:
    """Return whether a pyproject.toml seems to have settings of envlock."""
    # In its text: Python 3.8 has no TOML reader.
    try:
        with open(file, "rb") as stream:
            return b"tool.envlock" in stream.read(SIZE_LIMIT)
    except OSError:
        return False


def read_file(path: str) -> Document:
    """Return the validated document in a lockfile, upgraded to `LOCK_VERSION`.

    Raises:
        LockfileError: it is missing, not a regular file, too large, or not a lockfile.
    """
    return parse(_read_bytes(path), path)


def parse(data: bytes, name: str) -> Document:
    """Return the validated document in `data`, upgraded to `LOCK_VERSION`; `name` is for messages.

    Raises:
        LockfileError: it is not a lockfile.
    """
    if len(data) > SIZE_LIMIT:
        raise _too_large(name, f"more than {SIZE_LIMIT // 2**20} MB")
    if data.startswith(CONFLICT) or b"\n" + CONFLICT in data:
        hint = "take one side, then run `envlock capture`"
        raise LockfileError(f"lockfile {name} is not valid: it has conflict markers", hint=hint)
    try:
        document = strict_json.parse(data)
    except ValueError as error:
        if not data[:1].isalpha():
            raise _invalid(name, str(error)) from None
        raise LockfileError(f"lockfile {name} is not valid: {error}", hint=PASTED) from None
    if not isinstance(document, dict):
        raise _invalid(name, f"it is {_kind(document)}, not an object")
    document = _upgrade(document, name)
    problem = next(_iter_problems(document), None)
    if problem is not None:
        raise _invalid(name, problem)
    _move_libraries(document)
    return document


def _move_libraries(document: Document) -> None:
    """Give JAX and PyTorch sections of their own: older lockfiles have them below Keras, and only
    where Keras computes with them.
    """
    facts, unavailable = document["facts"], document["unavailable"]
    keras = facts.get("keras")
    if isinstance(keras, dict):
        for name in MOVED.intersection(keras).difference(facts):
            facts[name] = keras.pop(name)
    rules = document["policy"]["overrides"]
    for paths in (unavailable, rules):
        for path in [path for path in paths if path.startswith("keras.")]:
            if path.split(".")[1] in MOVED:
                paths[path[len("keras.") :]] = paths.pop(path)


def _read_bytes(path: str) -> bytes:
    try:
        # O_NONBLOCK: opening a FIFO without a writer would block for ever
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        hint = (
            "create one with `envlock capture`, or name one: `envlock verify path/to/envlock.lock`"
        )
        raise LockfileError(f"lockfile not found: {path}", hint=hint) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            hint = "remove one of the symbolic links: they form a loop"
        else:
            hint = "check the path and its permissions"
        raise _unreadable(path, error.strerror, hint) from None
    except ValueError:  # a NUL byte in the name
        raise _unreadable(repr(path), "not a path", "check the path") from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise _unreadable(path, f"it is {kind}", "name the lockfile itself")
        if status.st_size > SIZE_LIMIT:
            raise _too_large(path, f"{status.st_size // 2**20} MB")
        with os.fdopen(fd, "rb", closefd=False) as stream:
            # One byte more than the limit, so that a file that is growing is noticed, too.
            return stream.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise _unreadable(path, error.strerror, "check the disk") from None
    finally:
        os.close(fd)


def _upgrade(document: Document, name: str) -> Document:
    version = document.get("lock_version")
    # `type`, not `isinstance`: true is an int, but not a version.
    if type(version) is not int:
        problem = f"it is {_kind(version)}" if version is not None else "it is missing"
        raise _invalid(name, f"`lock_version` must be a whole number, but {problem}")
    if version > LOCK_VERSION:
        raise _too_new(document, name, version)
    while version < LOCK_VERSION:
        if version not in UPGRADES:
            raise _invalid(name, f"unknown lock_version {version}")
        try:
            document = dict(UPGRADES[version](document), lock_version=version + 1)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _invalid(name, f"it is not a valid document of lock_version {version}") from None
        version += 1
    return document


def _too_new(document: Document, name: str, version: int) -> LockfileError:
    writer = document.get("created_by")
    by = ""
    if isinstance(writer, str) and writer.isprintable() and len(writer) < 60:
        by = f", written by {writer}"
    problem = f"has lock_version {version}{by}; this envlock reads up to {LOCK_VERSION}"
    hint = "upgrade envlock, or capture again with this one: `envlock capture`"
    return LockfileError(f"lockfile {name} {problem}", hint=hint)


def _iter_text_problems(document: Document) -> Iterator[str]:
    for key in ("$schema", "created_by"):
        text = document.get(key, "")
        if not isinstance(text, str):
            yield f"`{key}` must be a string, but is {_kind(text)}"
        elif clean(text) != text:
            yield f"`{key}` has a character that controls a terminal or the order of text"


def _iter_problems(document: Document) -> Iterator[str]:
    for key in REQUIRED:
        if key not in document:
            yield f"`{key}` is missing"
    for key in document:
        if key not in REQUIRED and key not in OPTIONAL:
            yield f"it has an unknown field `{_shorten(key)}`"
    yield from _iter_text_problems(document)
    for key in OBJECTS:
        if not isinstance(document.get(key, {}), dict):
            yield f"`{key}` must be an object, but is {_kind(document[key])}"
    yield from _iter_project_problems(document.get("project", {}))
    yield from _iter_data_problems(document.get("data", {}))
    yield from _iter_fact_problems(document["facts"])
    yield from _iter_unavailable_problems(document["unavailable"], document["facts"])
    yield from _iter_policy_problems(document["policy"])
    if "machines" in document:
        yield from _iter_machine_problems(document["machines"])


def are_facts(facts: object, unavailable: object) -> bool:
    """Return whether values from an untrusted source are the facts of a machine, and its
    unavailable facts.
    """
    if next(_iter_fact_problems(facts), None) is not None:
        return False
    return next(_iter_unavailable_problems(unavailable, facts), None) is None


def _iter_project_problems(project: object) -> Iterator[str]:
    """Yield the problems of the part that the runtime half reads."""
    if not isinstance(project, dict):
        return  # already reported
    name = project.get("name")
    if not isinstance(name, (str, type(None))):
        yield f"`project.name` must be a string, but is {_kind(name)}"
    for key in ("entry", "tooling"):
        values = project.get(key, [])
        if not isinstance(values, list) or not _are_strings(values):
            yield f"`project.{key}` must be a list of strings"
    for key in ("held", "observed"):
        known = project.get(key, {})
        if not isinstance(known, dict) or not _are_strings(known.values()):
            yield f"`project.{key}` must be an object of strings"
    if ("entry" in project) != ("held" in project):
        yield "`project` must have both `entry` and `held`, or neither"


def _iter_data_problems(data: object) -> Iterator[str]:
    if not isinstance(data, dict):
        return  # already reported
    if len(data) > DATA_LIMIT:
        yield f"`data` has {len(data)} paths, more than {DATA_LIMIT}"
    for path, entry in data.items():
        # Nothing outside the project is looked at because a lockfile says so.
        if not _is_below(path):
            yield f"`data` has a path outside the project: `{_shorten(path)}`"
        elif not isinstance(entry, dict) or set(entry) != {"files", "bytes", "listing", "content"}:
            keys = "`files`, `bytes`, `listing` and `content`"
            yield f"`data.{_shorten(path)}` must be an object of {keys}"
        elif not _are_counts(entry["files"], entry["bytes"]):
            yield f"`data.{_shorten(path)}` must have whole numbers of `files` and `bytes`"
        elif not _is_digest(f"sha256:{entry['listing']}"):
            yield f"`data.{_shorten(path)}` must have a SHA-256 in `listing`"
        elif entry["content"] is not None and not _is_digest(entry["content"]):
            yield f"`data.{_shorten(path)}` must have a SHA-256, an MD5 or null in `content`"


def _is_below(path: str) -> bool:
    """Return whether a path names something below the folder in which it begins."""
    if path.startswith("/") or "\0" in path:
        return False
    return path != "" and ".." not in path.split("/")


def _is_digest(text: object) -> bool:
    """Return whether a value is a digest by an algorithm that envlock computes: contents with any
    other digest could never be compared.
    """
    if not isinstance(text, str):
        return False
    algorithm, _, digits = text.partition(":")
    if algorithm == "md5" and digits.endswith(".dir"):  # DVC's digest of a folder
        digits = digits[: -len(".dir")]
    return len(digits) == DIGITS.get(algorithm) and set(digits) <= set("0123456789abcdef")


def _are_counts(*values: object) -> bool:
    # `type`, not `isinstance`: true is an int, but not a count.
    return all(type(value) is int for value in values)


def _are_strings(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _iter_fact_problems(facts: object) -> Iterator[str]:
    if not isinstance(facts, dict):
        yield f"`facts` must be an object, but is {_kind(facts)}"
        return
    for name in facts:
        if name not in SECTIONS:
            yield f"`facts` has an unknown section `{_shorten(name)}`"
    yield from _iter_tree_problems(facts, "facts", DEPTH_LIMIT)
    loaded = facts.get("loaded")
    if loaded is not None:
        yield from _iter_loaded_problems(loaded)


def _iter_loaded_problems(loaded: object) -> Iterator[str]:
    """Yield the problems of the section that is not only compared but also read."""
    if not isinstance(loaded, dict):
        yield f"`facts.loaded` must be an object, but is {_kind(loaded)}"
        return
    for name, value in loaded.items():
        if name in ("interpreter", "packages", "standard"):
            if not isinstance(value, dict) or not _are_strings(value.values()):
                yield f"`facts.loaded.{name}` must be an object of strings"
        elif name == "arithmetic":
            if value is not None and not isinstance(value, str):
                yield f"`facts.loaded.{name}` must be a string, but is {_kind(value)}"
        elif not isinstance(value, list) or not _are_strings(value):
            yield f"`facts.loaded.{_shorten(name)}` must be a list of strings"


def _iter_tree_problems(node: Dict[str, object], path: str, depth: int) -> Iterator[str]:
    if depth == 0:
        yield f"`{_shorten(path)}` is nested too deeply"
        return
    for key, value in node.items():
        if isinstance(value, dict):
            yield from _iter_tree_problems(value, f"{path}.{key}", depth - 1)
        elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
            yield f"`{_shorten(path)}.{_shorten(key)}` must be a list of plain values"


def _iter_unavailable_problems(unavailable: object, facts: object) -> Iterator[str]:
    if not isinstance(unavailable, dict):
        yield f"`unavailable` must be an object, but is {_kind(unavailable)}"
        return
    if len(unavailable) > ENTRY_LIMIT:
        yield f"`unavailable` has {len(unavailable)} entries, more than {ENTRY_LIMIT}"
    for path, entry in unavailable.items():
        if not isinstance(entry, dict) or set(entry) != {"reason", "code"}:
            yield f"`unavailable.{_shorten(path)}` must be an object of `reason` and `code`"
        elif not _are_strings(entry.values()):
            yield f"`unavailable.{_shorten(path)}` must hold strings"
        elif _holds(facts, path):  # or the entry would hide every difference there
            yield f"`{_shorten(path)}` is in `facts` and in `unavailable`"


def _iter_machine_problems(machines: object) -> Iterator[str]:
    if not isinstance(machines, list) or not 1 <= len(machines) <= MACHINE_LIMIT:
        yield f"`machines` must be a list of 1 to {MACHINE_LIMIT} machines"
        return
    for machine in machines:
        if not isinstance(machine, dict) or set(machine) != {"facts", "unavailable"}:
            yield "`machines` must hold objects of `facts` and `unavailable`"
            return
        yield from _iter_fact_problems(machine["facts"])
        yield from _iter_unavailable_problems(machine["unavailable"], machine["facts"])
    # Not at the top: a lockfile with one machine, which most have, does not need it when a script
    # starts.
    from envlock.runtime.machines import iter_problems

    yield from iter_problems(machines)


def _holds(facts: object, path: str) -> bool:
    node = facts
    for name in path.split("."):
        if not isinstance(node, dict) or name not in node:
            return False
        node = node[name]
    return True


def _iter_policy_problems(policy: object) -> Iterator[str]:
    if not isinstance(policy, dict) or set(policy) != {"name", "overrides"}:
        yield "`policy` must be an object of `name` and `overrides`"
        return
    if not isinstance(policy["name"], str):
        yield f"`policy.name` must be a string, but is {_kind(policy['name'])}"
    overrides = policy["overrides"]
    if not isinstance(overrides, dict) or not _are_strings(overrides.values()):
        yield "`policy.overrides` must be an object of strings"
    elif len(overrides) > ENTRY_LIMIT:
        yield f"`policy.overrides` has {len(overrides)} entries, more than {ENTRY_LIMIT}"


def _unreadable(name: str, reason: Optional[str], hint: str) -> LockfileError:
    return LockfileError(f"cannot read lockfile {name}: {reason}", hint=hint)


def _invalid(name: str, problem: str) -> LockfileError:
    hint = "restore it from version control, or create it again with `envlock capture`"
    return LockfileError(f"lockfile {name} is not valid: {problem}", hint=hint)


def _too_large(name: str, size: str) -> LockfileError:
    limit = f"{SIZE_LIMIT // 2**20} MB"
    return LockfileError(
        f"lockfile {name} is too large: {size}, limit {limit}", hint="name the lockfile itself"
    )


def _shorten(text: str) -> str:
    if len(text) > 60:
        text = text[:57] + "..."
    if text.isprintable():
        return text
    return ascii(text)[1:-1]


KINDS = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def _kind(value: object) -> str:
    """Return the common name of the type of a JSON value."""
    return KINDS[type(value)]
