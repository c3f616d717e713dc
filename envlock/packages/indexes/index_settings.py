"""The package indexes to ask: those that pip and uv would ask, from their variables and settings
files.
"""

from __future__ import annotations

import configparser
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import unquote, urlsplit, urlunsplit

from envlock.packages.public_index import PUBLIC_INDEX
from envlock.runtime.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAMED = re.compile(r"([A-Za-z0-9._-]+)=(.+)", re.DOTALL)
"""An index with its name, in the form of uv's variables: NAME=URL."""
YES = ("1", "true", "yes", "on", "y", "t")
SIZE_LIMIT = 128 * 1024
"""Bytes of a settings file."""

Table: TypeAlias = "dict[str, object]"
"""A table of a TOML file, not yet checked."""


@dataclass(frozen=True)
class Index:
    """An index of packages.

    Attributes:
        url: without user and password.
        kind: `simple`: a page for each project; `links`: one page or folder with files (pip's
            find-links).
        name: uv's name for it, if it has one.
        user, password: those of its URL; never shown, compared or stored.
    """

    url: str
    kind: Literal["simple", "links"] = "simple"
    name: str | None = field(default=None, compare=False)
    user: str | None = field(default=None, compare=False, repr=False)
    password: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Settings:
    """The indexes to ask, and the certificates to trust.

    Attributes:
        indexes: in the order in which they are asked.
        ca: the file with the certificates to trust, if pip's settings name one.
    """

    indexes: tuple[Index, ...]
    ca: str | None = None


@dataclass(frozen=True)
class ConfigFile:
    """A configuration file: its path and its text."""

    path: Path
    text: str


@dataclass
class _Indexes:
    """The indexes that one tool would ask.

    Attributes:
        default: the one instead of the public index.
        extra: besides the default one.
        links: pages and folders with files.
        is_closed: whether the public index is not asked, because another one replaces it, or no
            index is wanted.
    """

    default: list[Index] = field(default_factory=list)
    extra: list[Index] = field(default_factory=list)
    links: list[Index] = field(default_factory=list)
    is_closed: bool = False


def choose_indexes(
    environ: Mapping[str, str],
    *,
    asked: Sequence[str] = (),
    pip: Sequence[ConfigFile] = (),
    uv: Sequence[ConfigFile] = (),
    folder: Path,
) -> Settings:
    """Return which indexes to ask.

    If `--index-url` or ENVLOCK_INDEX_URL is set, only these are asked, so that names of private
    packages are sent nowhere else. Otherwise, all that pip and uv would ask, and the public one
    unless either of them replaces it.

    Args:
        environ: the variables.
        asked: `--index-url`.
        pip: pip's files in the order in which it reads them; the last one has priority.
        uv: uv's files; the first one has priority.
        folder: the one that relative paths start from.

    Raises:
        UsageError: a file cannot be parsed, or names something that is not an index.
    """
    options = _read_pip_options(environ, pip)
    ca = options.get("cert")
    only = list(asked) or environ.get("ENVLOCK_INDEX_URL", "").split()
    if only:
        return Settings(_merge_mentions(_parse_indexes(only, folder)), ca)
    of_pip = _find_pip_indexes(options, folder)
    of_uv = _find_uv_indexes(environ, uv, folder)
    # pip asks its default index before the extra ones, uv after them:
    # https://docs.astral.sh/uv/concepts/indexes/
    found = [
        *of_pip.links,
        *of_uv.links,
        *of_pip.default,
        *of_pip.extra,
        *of_uv.extra,
        *of_uv.default,
    ]
    if not (of_pip.is_closed or of_uv.is_closed):
        found.append(Index(PUBLIC_INDEX))
    return Settings(_merge_mentions(found), ca)


def _read_pip_options(environ: Mapping[str, str], files: Sequence[ConfigFile]) -> dict[str, str]:
    """Return pip's options as `pip install` sees them, without empty ones."""
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(file.text)
        except configparser.Error:
            raise UsageError(
                f"cannot read {file.path}: it is not a pip configuration",
                hint="run `pip config debug`",
            ) from None
        for section, options in sections.items():
            if parser.has_section(section):
                for name, value in parser.items(section):
                    if value:
                        options[_normalize_option(name)] = value
    options = {**sections["global"], **sections["install"]}
    for name, value in environ.items():
        if name.startswith("PIP_") and value:
            options[_normalize_option(name.removeprefix("PIP_"))] = value
    return options


def _normalize_option(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("--")


def _find_pip_indexes(options: Mapping[str, str], folder: Path) -> _Indexes:
    links = _parse_indexes(options.get("find-links", "").split(), folder, kind="links")
    if options.get("no-index", "").lower() in YES:
        return _Indexes(links=links, is_closed=True)
    default = _parse_indexes(options.get("index-url", "").split()[:1], folder)
    extra = _parse_indexes(options.get("extra-index-url", "").split(), folder)
    return _Indexes(default, extra, links, is_closed=bool(default))


def _find_uv_indexes(
    environ: Mapping[str, str], files: Sequence[ConfigFile], folder: Path
) -> _Indexes:
    """Return the indexes in uv's variables and files, in the order in which uv prefers them."""
    found = _Indexes()
    _add_table(found, _read_uv_variables(environ), folder)
    for file in files:
        table = _parse_uv_file(file)
        _add_table(found, table, file.path.parent)
        # The older section for `uv pip` has its own indexes.
        section = table.get("pip")
        if isinstance(section, dict):
            _add_table(found, section, file.path.parent)
    if found.is_closed and not found.default:
        return _Indexes(links=found.links, is_closed=True)
    return replace(found, default=found.default[:1])


def _add_table(found: _Indexes, table: Table, folder: Path) -> None:
    rows = table.get("index", [])
    if isinstance(rows, list):
        for row in rows:
            if isinstance(row, dict):
                _add_row(found, row, folder)
    found.default += _parse_indexes(_words(table.get("index-url")), folder)
    found.extra += _parse_indexes(_words(table.get("extra-index-url")), folder)
    found.links += _parse_indexes(_words(table.get("find-links")), folder, kind="links")
    if found.default or table.get("no-index") is True:
        found.is_closed = True


def _add_row(found: _Indexes, row: Table, folder: Path) -> None:
    """Add an entry of `[[tool.uv.index]]`; one without a URL is skipped."""
    url = row.get("url")
    name = row.get("name")
    if not isinstance(url, str):
        return
    if not isinstance(name, str):
        name = None
    if row.get("format") == "flat":
        found.links.append(_index(url, folder, kind="links", name=name))
    elif row.get("default") is True:
        found.default.append(_index(url, folder, name=name))
    else:
        found.extra.append(_index(url, folder, name=name))


def _read_uv_variables(environ: Mapping[str, str]) -> Table:
    """Return uv's variables as a table like that of its files."""
    rows: list[object] = []
    for variable, is_default in (("UV_INDEX", False), ("UV_DEFAULT_INDEX", True)):
        for word in environ.get(variable, "").split():
            row: Table = {"name": None, "url": word, "default": is_default}
            match = NAMED.fullmatch(word)
            if match is not None:
                row["name"], row["url"] = match.groups()
            rows.append(row)
    return {
        "index": rows,
        "index-url": environ.get("UV_INDEX_URL", ""),
        "extra-index-url": environ.get("UV_EXTRA_INDEX_URL", "").split(),
        "find-links": re.split(r"[\s,]+", environ.get("UV_FIND_LINKS", "").strip()),
        "no-index": environ.get("UV_NO_INDEX", "").lower() in YES,
    }


def _parse_uv_file(file: ConfigFile) -> Table:
    """Return the table of uv's settings in a file; empty if the file has none."""
    try:
        table: object = tomllib.loads(file.text)
    except (ValueError, RecursionError):
        raise _not_toml(file) from None
    if file.path.name == "pyproject.toml":
        for key in ("tool", "uv"):
            if not isinstance(table, dict):
                raise _not_toml(file)
            table = table.get(key, {})
    if not isinstance(table, dict):
        return {}
    return table


def _not_toml(file: ConfigFile) -> UsageError:
    return UsageError(f"cannot read {file.path}: it is not TOML", hint="correct the file")


def _words(value: object) -> list[str]:
    """Return the strings in a setting that is a string or a list of strings."""
    values = value if isinstance(value, list) else [value]
    return [word for word in values if isinstance(word, str) and word]


def _parse_indexes(
    texts: Iterable[str], folder: Path, *, kind: Literal["simple", "links"] = "simple"
) -> list[Index]:
    return [_index(text, folder, kind=kind) for text in texts]


def _index(
    text: str, folder: Path, *, kind: Literal["simple", "links"] = "simple", name: str | None = None
) -> Index:
    """Return the index at a URL or at a path.

    Raises:
        UsageError: the text is neither a URL nor a path.
    """
    try:
        parts = urlsplit(text)
        user, password = parts.username, parts.password
        _ = parts.port  # raises for a port that is not a number
    except ValueError:
        raise _no_index() from None
    if parts.scheme in ("http", "https") and parts.hostname:
        url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
        if user is not None:
            user = unquote(user)
        if password is not None:
            password = unquote(password)
        return Index(url, kind, name, user, password)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        path = Path(unquote(parts.path))
        if not path.is_absolute() or "\0" in str(path):
            raise _no_index()
        return Index(path.as_uri(), kind, name)
    if "://" in text or "\0" in text:
        raise _no_index()
    path = folder / text
    if text.startswith("~"):
        try:
            path = Path(text).expanduser()
        except RuntimeError:  # there is no user with this name
            raise _no_index() from None
    return Index(path.absolute().as_uri(), kind, name)


def _no_index() -> UsageError:
    return UsageError(
        "a package index is neither a URL nor a folder",  # not shown, because it may contain a password
        hint="check `--index-url`, ENVLOCK_INDEX_URL, `pip config list` and the settings of uv",
    )


def _merge_mentions(found: Iterable[Index]) -> tuple[Index, ...]:
    """Return each index once, at its first occurrence, with the name and login of any occurrence."""
    merged: dict[tuple[str, str], Index] = {}
    for index in found:
        key = (index.url.rstrip("/"), index.kind)
        first = merged.setdefault(key, index)
        login = index if first.user is None else first
        merged[key] = replace(
            first, name=first.name or index.name, user=login.user, password=login.password
        )
    return tuple(merged.values())


def load(
    asked: Sequence[str] = (),
    *,
    prefix: Path | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Return which indexes to ask for the packages of an environment.

    Args:
        asked: `--index-url`; then no other index is asked.
        prefix: the environment's `sys.prefix`, which may hold a `pip.conf`.
        environ: the variables; `os.environ` when not given.
        folder: the project's; the current one when not given.

    Raises:
        UsageError: a file cannot be read, or names something that is not an index.
    """
    if environ is None:
        environ = os.environ
    if folder is None:
        folder = Path.cwd()
    return choose_indexes(
        environ,
        asked=asked,
        pip=list(_read_files(list_pip_files(environ, prefix))),
        uv=list(_read_files(list_uv_files(environ, folder))),
        folder=folder,
    )


def list_pip_files(environ: Mapping[str, str], prefix: Path | None) -> list[Path]:
    """Return pip's settings files in its order: for all users, for this user, for the environment,
    and the one that PIP_CONFIG_FILE names.
    """
    named = environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    shared = reversed(_list_shared_folders(environ))
    files = [*(folder / "pip/pip.conf" for folder in shared), Path("/etc/pip.conf")]
    # A file that PIP_CONFIG_FILE names and that exists replaces the user's own.
    if not (named and os.access(named, os.F_OK)):
        files.append(_get_home(environ) / ".pip/pip.conf")
        files.append(_get_user_folder(environ) / "pip/pip.conf")
    if prefix is not None:
        files.append(prefix / "pip.conf")
    if named:
        files.append(Path(named))
    return files


def list_uv_files(environ: Mapping[str, str], folder: Path) -> list[Path]:
    """Return uv's settings files in its order: of the project, of this user, for all users."""
    if environ.get("UV_NO_CONFIG", "").lower() in ("1", "true"):
        return []
    if environ.get("UV_CONFIG_FILE"):
        return [Path(environ["UV_CONFIG_FILE"])]
    files = []
    for parent in (folder, *folder.parents):
        project = _find_uv_project(parent)
        if project is not None:
            files.append(project)
            break
    files.append(_get_user_folder(environ) / "uv/uv.toml")
    shared = [each / "uv/uv.toml" for each in _list_shared_folders(environ)]
    for file in (*shared, Path("/etc/uv/uv.toml")):
        if file.is_file():
            files.append(file)
            break
    return files


def _find_uv_project(folder: Path) -> Path | None:
    """Return the file with uv's settings for a project: its own, else a pyproject.toml with some."""
    if (folder / "uv.toml").is_file():
        return folder / "uv.toml"
    project = folder / "pyproject.toml"
    for file in _read_files([project]):
        # It is parsed later: here it is enough that the words occur.
        if "uv" in file.text and "tool" in file.text:
            return project
    return None


def _read_files(paths: Sequence[Path]) -> Iterator[ConfigFile]:
    """Yield the files that exist."""
    for path in paths:
        try:
            with path.open("rb") as stream:
                data = stream.read(SIZE_LIMIT + 1)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "not a path"
            raise UsageError(
                f"cannot read {path}: {why}", hint="correct the file or its permissions"
            ) from None
        if len(data) > SIZE_LIMIT:
            raise UsageError(
                f"cannot read {path}: it is larger than 128 KB",
                hint="check that it is the right file",
            )
        yield ConfigFile(path, data.decode("utf-8-sig", "replace").replace("\r\n", "\n"))


def _get_home(environ: Mapping[str, str]) -> Path:
    # Not `Path.home()`, which raises if the home folder is unknown.
    return Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111


def _get_user_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or _get_home(environ) / ".config")


def _list_shared_folders(environ: Mapping[str, str]) -> list[Path]:
    names = (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")
    return [Path(name) for name in names if name]
