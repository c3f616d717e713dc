"""Where a setting comes from: flag, then `ENVLOCK_*`, then `[tool.envlock]` of the nearest pyproject.toml."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envlock.runtime import lockfile
from envlock.runtime.errors import UsageError
from envlock.runtime.policy import DEFAULT, Policy

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile

LINT_KEYS = ("select", "ignore", "exclude")
SIZE_LIMIT = 128 * 1024  # bytes; the reader of TOML takes some hundred times as much memory, and quadratic time


@dataclass(frozen=True)
class Config:
    """`[tool.envlock]`: `lock` is a path, `policy` a table of `name` and of path patterns with their rules.

    `folder` is the project's, `policy` is None where the project names none; `lint` holds lists of text by their keys.
    """

    lock: Path | None = None
    policy: str | None = None
    overrides: dict[str, str] = field(default_factory=dict)
    folder: Path | None = field(default=None, compare=False)
    lint: dict[str, list[str]] = field(default_factory=dict)


def load(folder: Path) -> Config:
    """Return the settings of the project that `folder` lies in; the defaults where there is none.

    Raises:
        UsageError: its pyproject.toml is not TOML, or `[tool.envlock]` has something that does not exist.
    """
    for parent in [folder, *folder.parents]:
        file = parent / "pyproject.toml"
        if file.is_file():
            try:
                table = _table(file)
                if table is not None:
                    return _config(table, file)
            except RecursionError:
                raise UsageError(f"cannot read {file}: it is nested too deeply", hint="correct the file") from None
    return Config()


def policy(name: str | None, config: Config, earlier: Lockfile | None) -> tuple[str, dict[str, str]]:
    """Return name and overrides of the policy to write: as asked for, else the project's, else those of `earlier`."""
    if name is None and config.policy is None and not config.overrides and earlier is not None:
        return earlier.policy.name, dict(earlier.policy.overrides)
    return name or config.policy or DEFAULT, config.overrides


def target(output: Path | None, config: Config) -> Path:
    """Return where `capture` writes: the file named, the project's, the nearest one of the project, or a new one here.

    A lock above the folder of the project's settings belongs to another project.
    """
    near = lockfile.find(str(Path.cwd()))
    if near is not None and config.folder is not None and not Path(near).is_relative_to(config.folder):
        near = None
    return output or config.lock or Path(near or lockfile.NAME)


def _table(file: Path) -> Any:
    try:
        with file.open("rb") as stream:
            data = stream.read(SIZE_LIMIT + 1)
        if len(data) > SIZE_LIMIT:
            raise UsageError(f"cannot read {file}: it is larger than 128 KB", hint="is it the project's own?")
        document = tomllib.loads(data.decode("utf-8").replace("\r\n", "\n"))
    except (OSError, ValueError) as error:  # also a number of thousands of digits is a ValueError
        raise UsageError(f"cannot read {file}: {error}", hint="correct the file") from None
    tool = document.get("tool")
    return tool.get("envlock") if isinstance(tool, dict) else None


def _config(table: Any, file: Path) -> Config:
    where = f"[tool.envlock] in {file}"
    if not isinstance(table, dict) or set(table) - {"lock", "policy", "lint"}:
        raise UsageError(
            f"{where} can hold `lock`, `policy` and `lint` only", hint="see the reference of the configuration"
        )
    lock, policy = table.get("lock"), table.get("policy", {})
    if isinstance(policy, str):
        policy = {"name": policy}
    if not isinstance(lock, str | None) or not isinstance(policy, dict):
        raise UsageError(f"{where}: `lock` is a path, `policy` is a name or a table")
    overrides = _flat(policy, "")
    name = overrides.pop("name", None)
    try:
        Policy(DEFAULT if name is None else name, overrides)
    except ValueError as error:
        raise UsageError(f"{where}: {error}", hint='write for example: "cpu.flags" = "superset"') from None
    lint = _lint(table.get("lint", {}), where)
    return Config(None if lock is None else file.parent / lock, name, overrides, file.parent, lint)


def _lint(table: Any, where: str) -> dict[str, list[str]]:
    if not isinstance(table, dict) or set(table) - set(LINT_KEYS):
        keys = ", ".join(f"`{key}`" for key in LINT_KEYS)
        raise UsageError(f"{where}: `lint` can hold {keys} only", hint="see the reference of the configuration")
    for key, value in table.items():
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise UsageError(f"{where}: `lint.{key}` is a list of text", hint='write for example: ignore = ["ENV402"]')
    return {key: list(value) for key, value in table.items()}


def _flat(table: dict[str, Any], prefix: str) -> dict[str, str]:
    """Return `{"cpu": {"flags": "ignore"}}`, which TOML makes of an unquoted `cpu.flags`, as one path."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = str(value)
    return flat
