"""Write a setting into `[tool.envlock]` of a project's pyproject.toml; its comments stay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from envlock.lock.folder_lock import hold_folder
from envlock.lock.settings import get_value, load, read_toml
from envlock.lock.writer import write_atomically
from envlock.runtime import lockfile
from envlock.runtime.errors import UsageError


def add_override(folder: Path, pattern: str, rule: str, reason: str) -> Path:
    """Write a rule and its reason into `[tool.envlock.policy]` of pyproject.toml; return the path
    of that file.

    Raises:
        UsageError: it cannot be read or written, or its settings are not valid.
    """
    return _write(folder, Setting(("tool", "envlock", "policy"), pattern, rule, reason))


def find_settings(folder: Path | None = None) -> Path:
    """Return the pyproject.toml of the project of a folder, the current one when not given; it need
    not exist.
    """
    return Path(lockfile.find_project(str(folder or Path.cwd()))) / lockfile.SETTINGS


def add_policy(folder: Path, name: str) -> Path | None:
    """Write `[tool.envlock]` with a policy into pyproject.toml; return its path, or None if it has
    such settings already.

    Raises:
        UsageError: it cannot be read or written, or its settings are not valid.
    """
    file = find_settings(folder)
    if file.is_file() and get_value(read_toml(file), "tool", "envlock") is not None:
        return None
    return _write(folder, Setting(("tool", "envlock"), "policy", name, "see `envlock explain`"))


@dataclass(frozen=True)
class Setting:
    """A line of pyproject.toml: the tables that it belongs to, its key and value, and its comment."""

    tables: tuple[str, ...]
    key: str
    value: str
    comment: str


def _write(folder: Path, setting: Setting) -> Path:
    """Set a value in the project's pyproject.toml; comments and line endings are kept."""
    file = find_settings(folder)
    # If two processes read and wrote the file at once, one change would be lost.
    with hold_folder(file.parent):
        # Refuses settings that are not valid: to change them would hide that.
        load(folder)
        text = file.read_bytes().decode("utf-8") if file.is_file() else ""
        changed = _change(text, setting, file)
        write_atomically(file, changed.encode("utf-8"))
    return file


def _change(text: str, setting: Setting, file: Path) -> str:
    """Return the text of a pyproject.toml with a value set; raise UsageError if no comment can be
    added beside the value.
    """
    # tomlkit keeps line ends in comments and loses them elsewhere, so it sees one kind only.
    document = tomlkit.parse(text.replace("\r\n", "\n"))
    table: Any = document
    for name in setting.tables:
        # `policy = "same-arch"` is short for a table with a name.
        if isinstance(table.get(name), str):
            table[name] = tomlkit.item({"name": str(table[name])})
        is_super_table = name != setting.tables[-1]
        table = table.setdefault(name, tomlkit.table(is_super_table=is_super_table))
    if isinstance(table, tomlkit.items.InlineTable):
        where = f"[{'.'.join(setting.tables)}]"
        raise UsageError(
            f"an inline table in {file} cannot hold the reason", hint=f"write it as `{where}`"
        )
    table[setting.key] = tomlkit.string(setting.value).comment(setting.comment)
    changed = tomlkit.dumps(document)
    if "\r\n" in text:
        return changed.replace("\n", "\r\n")
    return changed
