"""Where a setting comes from: flag, then `ENVLOCK_*`, then `[tool.envlock]` of the project's pyproject.toml."""

from __future__ import annotations

import sys
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envlock.runtime import lockfile
from envlock.runtime.distributions import normalise
from envlock.runtime.errors import UsageError
from envlock.runtime.policy import DEFAULT, Policy, nearest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile

LINT_KEYS = ("select", "ignore", "exclude")
LONGEST = 300
"""Characters of a pattern, as in a lockfile."""
SIZE_LIMIT = (
    128 * 1024
)  # bytes; the reader of TOML takes some hundred times as much memory, and quadratic time


@dataclass(frozen=True)
class Config:
    """`[tool.envlock]`: `lock` is a path, `policy` a table of `name` and of path patterns with their rules.

    `policy`, `entry` and `container` are None where the project names none; `lint` holds lists of text by their keys,
    `container` what `envlock.containers.additions` checks.
    """

    lock: Path | None = None
    policy: str | None = None
    overrides: dict[str, str] = field(default_factory=dict)
    lint: dict[str, list[str]] = field(default_factory=dict)
    entry: tuple[str, ...] | None = None
    container: dict[str, Any] | None = None


def load(folder: Path) -> Config:
    """Return the settings of the project that `folder` lies in; the defaults where there is none.

    Raises:
        UsageError: its pyproject.toml is not TOML, or `[tool.envlock]` has something that does not exist.
    """
    file = Path(lockfile.project(str(folder))) / lockfile.SETTINGS
    if not file.is_file():
        return Config()
    try:
        return _config(_at(_document(file), "tool", "envlock", missing={}), file)
    except RecursionError:
        raise UsageError(
            f"cannot read {file}: it is nested too deeply", hint="correct the file"
        ) from None


def policy(
    name: str | None, config: Config, earlier: Lockfile | None
) -> tuple[str, dict[str, str]]:
    """Return name and overrides of the policy to write: as asked for, else the project's, else those of `earlier`."""
    if name is None and config.policy is None and not config.overrides and earlier is not None:
        return earlier.policy.name, dict(earlier.policy.overrides)
    return name or config.policy or DEFAULT, config.overrides


def target(output: Path | None, config: Config) -> Path:
    """Return where `capture` writes: the file named, the settings', the nearest of the project, or its folder."""
    here = str(Path.cwd())
    new = Path(lockfile.project(here)) / lockfile.NAME
    return output or config.lock or _from_here(Path(lockfile.find(here) or new))


def check_pattern(pattern: str) -> None:
    """Refuse a path or pattern that no fact can have.

    Raises:
        UsageError: it is malformed or fits no fact; the hint names the most similar path.
    """
    try:
        Policy(DEFAULT, {pattern: "ignore"})
    except ValueError as error:
        raise UsageError(
            str(error), hint="write it like `packages.numpy.version` or `cpu.*`"
        ) from None
    if len(pattern) > LONGEST:
        hint = "write it like `packages.numpy.version` or `cpu.*`"
        raise UsageError(f"no fact fits `{pattern[:LONGEST]}...`", hint=hint)
    near = nearest(pattern)
    if near != pattern:
        hint = "see the reference of the policies" if near is None else f"did you mean `{near}`?"
        raise UsageError(f"no fact fits `{pattern}`", hint=hint)


def add_override(folder: Path, pattern: str, rule: str, reason: str) -> Path:
    """Write a rule into `[tool.envlock.policy]` of the project's pyproject.toml, with its reason, and return that file.

    Raises:
        UsageError: it cannot be read or written, or its settings are not valid.
    """
    return _write(folder, ("tool", "envlock", "policy"), pattern, rule, reason)


def add_policy(folder: Path, name: str) -> Path | None:
    """Write `[tool.envlock]` with a policy into the project's pyproject.toml; return that file, None where it has one.

    Raises:
        UsageError: it cannot be read or written, or its settings are not valid.
    """
    file = Path(lockfile.project(str(folder))) / lockfile.SETTINGS
    if file.is_file() and _at(_document(file), "tool", "envlock") is not None:
        return None
    return _write(folder, ("tool", "envlock"), "policy", name, "see `envlock policy`")


def _write(folder: Path, tables: tuple[str, ...], key: str, value: str, comment: str) -> Path:
    """Set a value in the project's pyproject.toml; what else stands in it stays, its comments and line ends too."""
    from envlock.lock.exclusive import exclusive

    file = Path(lockfile.project(str(folder))) / lockfile.SETTINGS
    with exclusive(file.parent):
        _rewrite(file, folder, tables, key, value, comment)
    return file


def _rewrite(
    file: Path, folder: Path, tables: tuple[str, ...], key: str, value: str, comment: str
) -> None:
    import tomlkit
    from tomlkit.items import InlineTable

    from envlock.lock.writer import write_atomically

    load(folder)
    text = file.read_bytes().decode("utf-8") if file.is_file() else ""
    document = tomlkit.parse(text.replace("\r\n", "\n"))
    table: Any = document
    for name in tables:
        if isinstance(table.get(name), str):  # policy = "same-arch"
            table[name] = tomlkit.item({"name": str(table[name])})
        table = table.setdefault(name, tomlkit.table(is_super_table=name != tables[-1]))
    if isinstance(table, InlineTable):
        where = f"[{'.'.join(tables)}]"
        raise UsageError(
            f"an inline table in {file} cannot hold the reason", hint=f"write it as `{where}`"
        )
    table[key] = tomlkit.string(value).comment(comment)
    lines = tomlkit.dumps(document)
    write_atomically(
        file, (lines.replace("\n", "\r\n") if "\r\n" in text else lines).encode("utf-8")
    )


def about(folder: Path, lock: Path | None) -> dict[str, Any]:
    """Return what a lock records of its project: the `name` of its package, and the state of its files in git.

    Raises:
        UsageError: its pyproject.toml is not TOML.
    """
    from envlock.lock.revision import revision

    name = project_name(folder)
    return {
        **({} if name is None else {"name": name}),
        **revision(Path(lockfile.project(str(folder))), lock),
    }


def project_name(folder: Path) -> str | None:
    """Return the normalised name of the project's own distribution; None where its files name none.

    Raises:
        UsageError: its pyproject.toml is not TOML.
    """
    root = Path(lockfile.project(str(folder)))
    file = root / lockfile.SETTINGS
    document = _document(file) if file.is_file() else {}
    names = (
        _at(document, "project", "name"),
        _at(document, "tool", "poetry", "name"),
        _setup_name(root / "setup.cfg"),
    )
    name = normalise(str(next(filter(None, names), "")))[:128]
    return name if name.isascii() and name.replace("-", "").isalnum() else None


def _setup_name(file: Path) -> str | None:
    if not file.is_file():
        return None
    from configparser import ConfigParser, Error

    setup = ConfigParser(interpolation=None)
    with suppress(Error, UnicodeDecodeError):
        setup.read(file, encoding="utf-8")
    return setup.get("metadata", "name", fallback=None)


def _from_here(path: Path) -> Path:
    """Return a path as the user would write it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _document(file: Path) -> dict[str, Any]:
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
    except ValueError as error:  # also a number of thousands of digits
        raise UsageError(f"cannot read {file}: {error}", hint="correct the file") from None


def _at(document: Any, *names: str, missing: Any = None) -> Any:
    """Return what stands there; `missing` where a table on the way is not a table, or does not have it."""
    for name in names:
        if not isinstance(document, dict) or name not in document:
            return missing
        document = document[name]
    return document


def _config(table: Any, file: Path) -> Config:
    where = f"[tool.envlock] in {file}"
    _keys(table, ("lock", "policy", "entry", "lint", "container"), where)
    lock, policy = table.get("lock"), table.get("policy", {})
    if isinstance(policy, str):
        policy = {"name": policy}
    if not isinstance(lock, str | None) or not isinstance(policy, dict):
        raise UsageError(f"{where}: `lock` must be a path, and `policy` a name or a table")
    overrides = _flat(policy, "")
    name = overrides.pop("name", None)
    try:
        Policy(DEFAULT if name is None else name, overrides)
    except ValueError as error:
        raise UsageError(
            f"{where}: {error}", hint='write it like `"cpu.flags" = "superset"`'
        ) from None
    try:
        for pattern in overrides:
            check_pattern(pattern)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", hint=error.hint) from None
    lint = _lint(table.get("lint", {}), where)
    entry = (
        _texts(table["entry"], f"{where}: `entry`", 'entry = ["train.py"]')
        if "entry" in table
        else None
    )
    return Config(
        None if lock is None else file.parent / lock,
        name,
        overrides,
        lint,
        entry,
        _container(table.get("container"), where),
    )


def _lint(table: Any, where: str) -> dict[str, list[str]]:
    _keys(table, LINT_KEYS, f"{where}: `lint`")
    example = 'ignore = ["ENV402"]'
    return {
        key: list(_texts(value, f"{where}: `lint.{key}`", example)) for key, value in table.items()
    }


def _container(table: Any, where: str) -> dict[str, Any] | None:
    if table is None:
        return None
    from envlock.containers.additions import KEYS  # and with it the models, a tenth of a second

    _keys(table, KEYS, f"{where}: `container`")
    if "copy" in table:
        _texts(table["copy"], f"{where}: `container.copy`", 'copy = ["train.py"]')
    found: dict[str, Any] = table
    return found


def _keys(table: Any, known: Collection[str], where: str) -> None:
    """Refuse what is not a table, and the first key that has no meaning."""
    hint = f"use only {', '.join(f'`{key}`' for key in known)}"
    if not isinstance(table, dict):
        raise UsageError(f"{where} must be a table", hint=hint)
    if unknown := sorted(set(table) - set(known)):
        raise UsageError(f"{where} has an unknown key: {unknown[0][:LONGEST]}", hint=hint)


def _texts(value: Any, where: str, example: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{where} must be a list of strings", hint=f"write it like `{example}`")
    return tuple(value)


def _flat(table: dict[str, Any], prefix: str) -> dict[str, str]:
    """Return `{"cpu": {"flags": "ignore"}}`, which TOML makes of an unquoted `cpu.flags`, as one path."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = str(value)
    return flat
