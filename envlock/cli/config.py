"""Where a setting comes from: flag, then `ENVLOCK_*`, then `[tool.envlock]` of the nearest pyproject.toml."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envlock.runtime.errors import UsageError
from envlock.runtime.policy import DEFAULT, Policy, names

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Config:
    """`[tool.envlock]`: `lock` is a path, `policy` a table of `name` and of path patterns with their rules."""

    lock: Path | None = None
    policy: str = DEFAULT
    overrides: dict[str, str] = field(default_factory=dict)


def load(folder: Path) -> Config:
    """Return the settings of the project that `folder` lies in; the defaults where there is none.

    Raises:
        UsageError: its pyproject.toml is not TOML, or `[tool.envlock]` has something that does not exist.
    """
    for parent in [folder, *folder.parents]:
        file = parent / "pyproject.toml"
        if file.is_file():
            table = _table(file)
            if table is not None:
                return _config(table, file)
    return Config()


def policy_name(name: str | None, config: Config) -> str:
    """Return the policy asked for, or the project's.

    Raises:
        UsageError: it does not exist.
    """
    chosen = name or config.policy
    if chosen not in names():
        raise UsageError(f"there is no policy `{chosen}`", hint=f"there are: {', '.join(names())}")
    return chosen


def _table(file: Path) -> Any:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}", hint="correct the file") from None
    tool = document.get("tool")
    return tool.get("envlock") if isinstance(tool, dict) else None


def _config(table: Any, file: Path) -> Config:
    where = f"[tool.envlock] in {file}"
    if not isinstance(table, dict) or set(table) - {"lock", "policy"}:
        raise UsageError(f"{where} can hold `lock` and `policy` only", hint="see the reference of the configuration")
    lock, policy = table.get("lock"), table.get("policy", {})
    if isinstance(policy, str):
        policy = {"name": policy}
    if not isinstance(lock, str | None) or not isinstance(policy, dict):
        raise UsageError(f"{where}: `lock` is a path, `policy` is a name or a table")
    overrides = _flat(policy, "")
    name = overrides.pop("name", DEFAULT)
    try:
        Policy(name, overrides)
    except ValueError as error:
        raise UsageError(f"{where}: {error}", hint='write for example: "cpu.flags" = "superset"') from None
    return Config(None if lock is None else file.parent / lock, name, overrides)


def _flat(table: dict[str, Any], prefix: str) -> dict[str, str]:
    """Return `{"cpu": {"flags": "ignore"}}`, which TOML makes of an unquoted `cpu.flags`, as one path."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = str(value)
    return flat
