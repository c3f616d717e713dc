"""The settings of a project, `[tool.envlock]` in pyproject.toml; options and `ENVLOCK_*` variables
go before them.
"""

from __future__ import annotations

import ast
import configparser
import os
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envlock.lock.nearest_pattern import find_nearest_pattern
from envlock.lock.revision import find_revision
from envlock.runtime import lockfile
from envlock.runtime.distributions import normalise
from envlock.runtime.errors import UsageError
from envlock.runtime.policies import DEFAULT, Policy

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile

LINT_KEYS = ("select", "ignore", "exclude")
CONTAINER_KEYS = ("copy", "exclude", "workdir", "user", "command", "environ", "apt", "apt-sources")
"""Of `[tool.envlock.container]`, which `image/additions.py` reads, and the last two `image/debian.py`."""
PER_FILE = "per-file-ignores"
PER_FILE_EXAMPLE = 'per-file-ignores = { "tests/*" = ["ENV205"] }'
LONGEST = 300
"""Characters of a pattern, as in a lockfile."""
LONGEST_NAME = 128
"""Characters of a distribution's name, as in a lockfile."""
DATA_PATH = re.compile(r"[A-Za-z0-9_.,+=@%/-]{1,400}")
"""As in a lockfile."""
# The TOML parser needs some hundred times as much memory as the file has, and quadratic time.
SIZE_LIMIT = 128 * 1024  # bytes


@dataclass(frozen=True)
class Config:
    """`[tool.envlock]`: `lock` is a path, `policy` a table with a `name` and rules by path pattern.

    `data` has the normalised paths of input files and folders.
    `lint_per_file` holds rules by the patterns of files that they are ignored in.
    `policy`, `entry` and `container` are None if the project does not set them; `lint` has lists of
    strings by key, and `container` holds what `envlock.image.additions` checks.
    """

    lock: Path | None = None
    policy: str | None = None
    overrides: dict[str, str] = field(default_factory=dict)
    lint: dict[str, list[str]] = field(default_factory=dict)
    lint_per_file: dict[str, list[str]] = field(default_factory=dict)
    entry: tuple[str, ...] | None = None
    container: dict[str, Any] | None = None
    data: tuple[str, ...] | None = None


def load(folder: Path) -> Config:
    """Return the settings of the project that contains `folder`; the defaults if there is no
    project.

    Raises:
        UsageError: its pyproject.toml is not TOML, or `[tool.envlock]` has an unknown key or value.
    """
    file = Path(lockfile.find_project(str(folder))) / lockfile.SETTINGS
    if not file.is_file():
        return Config()
    try:
        return _parse_config(get_value(read_toml(file), "tool", "envlock", missing={}), file)
    except RecursionError:
        raise UsageError(
            f"cannot read {file}: it is nested too deeply", hint="correct the file"
        ) from None


def choose_policy(
    name: str | None, config: Config, earlier: Lockfile | None
) -> tuple[str, dict[str, str]]:
    """Return the name and overrides of the policy to write: as requested, else from the settings,
    else those of `earlier`.
    """
    if name is None and config.policy is None and not config.overrides and earlier is not None:
        return earlier.policy.name, dict(earlier.policy.overrides)
    if name is None:
        name = config.policy
    return name or DEFAULT, config.overrides


def choose_target(output: Path | None, config: Config) -> Path:
    """Return the path that `capture` writes to: the given one, else that of the settings, else the
    project's nearest lockfile, else one in its folder.
    """
    if output is not None:
        return output
    if config.lock is not None:
        return config.lock
    folder = str(Path.cwd())
    nearest_lock = lockfile.find(folder)
    if nearest_lock is None:
        return _shorten_path(Path(lockfile.find_project(folder)) / lockfile.NAME)
    return _shorten_path(Path(nearest_lock))


def is_default(path: str) -> bool:
    """Return whether commands in the current folder take the lockfile at `path` if none is named."""
    with suppress(OSError, UsageError):
        named = load(Path.cwd()).lock
        if named is not None and not os.environ.get("ENVLOCK_LOCK"):
            return named.absolute() == Path(path).absolute()
    return lockfile.is_nearest(path)


def check_pattern(pattern: str) -> None:
    """Refuse a path or pattern that no fact can match.

    Raises:
        UsageError: it is malformed or matches no fact; the hint names the most similar path.
    """
    try:
        Policy(DEFAULT, {pattern: "ignore"})
    except ValueError as error:
        raise UsageError(
            str(error), hint="write it like `packages.numpy.version` or `cpu.*`"
        ) from None
    if len(pattern) > LONGEST:
        hint = "write it like `packages.numpy.version` or `cpu.*`"
        raise UsageError(f"no fact matches `{pattern[:LONGEST]}...`", hint=hint)
    near = find_nearest_pattern(pattern)
    if near is None:
        hint = "see the reference of the policies"
        raise UsageError(f"no fact matches `{pattern}`", hint=hint)
    if near != pattern:
        raise UsageError(f"no fact matches `{pattern}`", hint=f"did you mean `{near}`?")


def describe_project(folder: Path, lock: Path | None) -> dict[str, object]:
    """Return what a lockfile records about its project: the `name` of its package, and the state of
    its files in git.

    Raises:
        UsageError: its pyproject.toml is not TOML.
    """
    project: dict[str, object] = {}
    name = read_project_name(folder)
    if name is not None:
        project["name"] = name
    return {**project, **find_revision(Path(lockfile.find_project(str(folder))), lock)}


def read_project_name(folder: Path) -> str | None:
    """Return the normalised name of the project's own distribution; None if its files do not give
    one.

    Raises:
        UsageError: its pyproject.toml is not TOML.
    """
    return read_name(Path(lockfile.find_project(str(folder))))


def read_name(root: Path) -> str | None:
    """Return the normalised name that the files in this folder give a distribution; None without one.

    Raises:
        UsageError: its pyproject.toml is not TOML.
    """
    file = root / lockfile.SETTINGS
    document: dict[str, object] = read_toml(file) if file.is_file() else {}
    # The standard (https://peps.python.org/pep-0621/) before the tables of single tools.
    written = (
        get_value(document, "project", "name"),
        get_value(document, "tool", "poetry", "name"),
        get_value(document, "tool", "flit", "metadata", "dist-name"),
        get_value(document, "tool", "flit", "metadata", "module"),
        _read_setup_name(root / "setup.cfg"),
        _read_setup_argument(root / "setup.py"),
    )
    for text in written:
        if not text:
            continue
        name = normalise(str(text))[:LONGEST_NAME]
        # A name that no lockfile can hold is not the name of a distribution.
        if name.isascii() and name.replace("-", "").isalnum():
            return name
        return None
    return None


def _read_setup_argument(file: Path) -> str | None:
    """Return the name that a `setup.py` gives to `setup()`: a text, or a variable that holds one."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    texts: dict[str, object] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            for target in statement.targets:
                texts[ast.unparse(target)] = statement.value.value
    for value in _iter_names(tree):
        name = value.value if isinstance(value, ast.Constant) else texts.get(ast.unparse(value))
        if isinstance(name, str):
            return name
    return None


def _iter_names(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield what the calls of `setup()` get as `name`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "setup":
            yield from (argument.value for argument in node.keywords if argument.arg == "name")


def _read_setup_name(file: Path) -> str | None:
    if not file.is_file():
        return None
    # As setuptools reads it: a `%` is not a reference to another value.
    setup = configparser.ConfigParser(interpolation=None)
    with suppress(configparser.Error, UnicodeDecodeError):
        setup.read(file, encoding="utf-8")
    return setup.get("metadata", "name", fallback=None)


def _shorten_path(path: Path) -> Path:
    """Return a path as a user would write it: relative if it is below the current folder."""
    if path.is_relative_to(Path.cwd()):
        return path.relative_to(Path.cwd())
    return path


def read_toml(file: Path) -> dict[str, Any]:
    """Return the content of a pyproject.toml; raise UsageError where it cannot be read."""
    try:
        with file.open("rb") as stream:
            data = stream.read(SIZE_LIMIT + 1)
        if len(data) > SIZE_LIMIT:
            raise UsageError(
                f"cannot read {file}: it is larger than 128 KB",
                hint="check that it is the file of the project",
            )
        return tomllib.loads(data.decode("utf-8").replace("\r\n", "\n"))
    except OSError as error:
        hint = "correct its permissions, or move to a folder with a pyproject.toml of its own"
        raise UsageError(f"cannot read {file}: {error.strerror}", hint=hint) from None
    except ValueError as error:  # also an integer with thousands of digits
        raise UsageError(f"cannot read {file}: {error}", hint="correct the file") from None


def get_value(document: object, *names: str, missing: object = None) -> Any:
    """Return the value at a path of keys; `missing` if a table on the way is not a table, or a key
    does not exist.
    """
    for name in names:
        if not isinstance(document, dict) or name not in document:
            return missing
        document = document[name]
    return document


def _parse_config(table: Any, file: Path) -> Config:
    where = f"[tool.envlock] in {file}"
    _check_keys(table, ("lock", "policy", "entry", "lint", "container", "data"), where)
    lock, policy = table.get("lock"), table.get("policy", {})
    if isinstance(policy, str):
        policy = {"name": policy}
    if not isinstance(lock, str | None) or not isinstance(policy, dict):
        raise UsageError(f"{where}: `lock` must be a path, and `policy` a name or a table")
    overrides = _flatten(policy, "")
    name = overrides.pop("name", None)
    _check_policy(name, overrides, where)
    path = file.parent / lock if lock is not None else None
    lint = _parse_lint(table.get("lint", {}), where)
    per_file = _parse_per_file(table.get("lint", {}), where)
    entry = None
    if "entry" in table:
        entry = _parse_texts(table["entry"], f"{where}: `entry`", 'entry = ["train.py"]')
    container = _parse_container(table.get("container"), where)
    data = _parse_data(table["data"], where) if "data" in table else None
    return Config(path, name, overrides, lint, per_file, entry, container, data)


def _parse_data(value: object, where: str) -> tuple[str, ...]:
    """Return data paths without repetitions and trailing slashes, sorted."""
    example = 'data = ["data/"]'
    paths = set()
    for text in _parse_texts(value, f"{where}: `data`", example):
        steps = [step for step in text.split("/") if step not in ("", ".")]
        if not steps or ".." in steps or text.startswith("/"):
            hint = f"write it like `{example}`, and link to data elsewhere: `ln -s /mnt/big data`"
            raise UsageError(f"{where}: `data` has a path outside the project: {text}", hint=hint)
        path = "/".join(steps)
        if not DATA_PATH.fullmatch(path):
            hint = "use letters, digits and _ . , + = @ % -, or name the folder above it"
            raise UsageError(
                f"{where}: `data` has a path that no lockfile can hold: {text}", hint=hint
            )
        paths.add(path)
    if len(paths) > lockfile.DATA_LIMIT:
        raise UsageError(
            f"{where}: `data` has {len(paths)} paths, more than {lockfile.DATA_LIMIT}",
            hint="name the folder above them",
        )
    return tuple(sorted(paths))


def _check_policy(name: str | None, overrides: dict[str, str], where: str) -> None:
    """Refuse a policy or a rule that does not exist, and patterns that no fact can match."""
    if name is None:
        name = DEFAULT
    try:
        Policy(name, overrides)
    except ValueError as error:
        raise UsageError(
            f"{where}: {error}", hint='write it like `"cpu.flags" = "superset"`'
        ) from None
    try:
        for pattern in overrides:
            check_pattern(pattern)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", hint=error.hint) from None


def _parse_lint(table: Any, where: str) -> dict[str, list[str]]:
    _check_keys(table, (*LINT_KEYS, PER_FILE), f"{where}: `lint`")
    lint = {}
    for key, value in table.items():
        if key == PER_FILE:
            continue
        lint[key] = list(_parse_texts(value, f"{where}: `lint.{key}`", 'ignore = ["ENV303"]'))
    return lint


def _parse_per_file(table: Any, where: str) -> dict[str, list[str]]:
    given = table.get(PER_FILE, {})
    name = f"{where}: `lint.{PER_FILE}`"
    if not isinstance(given, dict):
        raise UsageError(f"{name} must be a table", hint=PER_FILE_EXAMPLE)
    found = {}
    for pattern, rules in given.items():
        found[pattern] = list(_parse_texts(rules, f"{name}: `{pattern}`", PER_FILE_EXAMPLE))
    return found


def _parse_container(table: Any, where: str) -> dict[str, object] | None:
    if table is None:
        return None
    _check_keys(table, CONTAINER_KEYS, f"{where}: `container`")
    if "copy" in table:
        _parse_texts(table["copy"], f"{where}: `container.copy`", 'copy = ["train.py"]')
    if "exclude" in table:
        example = 'exclude = ["data", "**/*.ckpt"]'
        _parse_texts(table["exclude"], f"{where}: `container.exclude`", example)
    return dict(table)


def _check_keys(table: object, known: Collection[str], where: str) -> None:
    """Refuse a value that is not a table, and the first unknown key."""
    hint = f"use only {', '.join(f'`{key}`' for key in known)}"
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table", hint=hint)
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise UsageError(f"{where} has an unknown key: {unknown[0][:LONGEST]}", hint=hint)


def _parse_texts(value: object, where: str, example: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{where} must be a list of strings", hint=f"write it like `{example}`")
    return tuple(value)


def _flatten(table: dict[str, Any], prefix: str) -> dict[str, str]:
    """Return `{"cpu": {"flags": "ignore"}}`, which TOML makes of an unquoted `cpu.flags`, as rules
    by dotted path.
    """
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update(_flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = str(value)
    return flat
