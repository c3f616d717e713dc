"""Which package indexes to ask: those that pip and uv would ask, by their variables and settings files."""

from __future__ import annotations

import configparser
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit, urlunsplit

from pypi_simple import PYPI_SIMPLE_ENDPOINT

from envlock.runtime.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAMED = re.compile(r"([A-Za-z0-9._-]+)=(.+)", re.DOTALL)
YES = ("1", "true", "yes", "on", "y", "t")


@dataclass(frozen=True)
class Index:
    """A place that offers packages.

    Attributes:
        url: without user and password.
        kind: `simple`: a page for each project; `links`: one page or folder with files (pip's find-links).
        name: as uv calls it, where it does.
        user, password: what stood in its URL; never shown, compared or stored.
    """

    url: str
    kind: Literal["simple", "links"] = "simple"
    name: str | None = field(default=None, compare=False)
    user: str | None = field(default=None, compare=False, repr=False)
    password: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Settings:
    """The indexes in the order in which to ask them, and the file with the certificates to trust, if pip names one."""

    indexes: tuple[Index, ...]
    ca: str | None = None


@dataclass(frozen=True)
class ConfigFile:
    """A configuration file: where it is, and what stands in it."""

    path: Path
    text: str


@dataclass
class _Found:
    default: list[Index] = field(default_factory=list)
    more: list[Index] = field(default_factory=list)
    links: list[Index] = field(default_factory=list)
    closed: bool = False  # there is no other index: one was named in its place, or none is wanted


def settings(
    environ: Mapping[str, str],
    *,
    asked: Sequence[str] = (),
    pip: Sequence[ConfigFile] = (),
    uv: Sequence[ConfigFile] = (),
    folder: Path,
) -> Settings:
    """Return which indexes to ask.

    Those that are asked for (or that ENVLOCK_INDEX_URL names) are the only ones: names of private packages go nowhere
    else. Otherwise all that pip and uv know, and the public one where neither of them has another in its place.

    Args:
        environ: the variables.
        asked: `--index-url`.
        pip: pip's files, in the order in which it reads them: the last one wins.
        uv: uv's files, the one that wins first.
        folder: what relative paths are relative to.

    Raises:
        UsageError: a file cannot be parsed, or names what is no index.
    """
    options = _pip_options(environ, pip)
    ca = options.get("cert")
    asked = list(asked) or environ.get("ENVLOCK_INDEX_URL", "").split()
    if asked:
        return Settings(_once(_index(url, folder) for url in asked), ca)
    by_pip, by_uv = _pip(options, folder), _uv(environ, uv, folder)
    found = [
        *by_pip.links,
        *by_uv.links,
        *by_pip.default,
        *by_pip.more,
        *by_uv.more,
        *by_uv.default,
    ]
    if not (by_pip.closed or by_uv.closed):
        found.append(Index(PYPI_SIMPLE_ENDPOINT))
    return Settings(_once(found), ca)


def _pip_options(environ: Mapping[str, str], files: Sequence[ConfigFile]) -> dict[str, str]:
    """Return pip's options as `pip install` has them; an empty one does not count."""
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
                options.update(
                    {_option(name): value for name, value in parser.items(section) if value}
                )
    variables = {
        _option(name[4:]): value
        for name, value in environ.items()
        if name.startswith("PIP_") and value
    }
    return {**sections["global"], **sections["install"], **variables}


def _option(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("--")


def _pip(options: Mapping[str, str], folder: Path) -> _Found:
    links = [_index(each, folder, kind="links") for each in options.get("find-links", "").split()]
    if options.get("no-index", "").lower() in YES:
        return _Found(links=links, closed=True)
    default = [_index(url, folder) for url in options.get("index-url", "").split()[:1]]
    more = [_index(url, folder) for url in options.get("extra-index-url", "").split()]
    return _Found(default, more, links, closed=bool(default))


def _uv(environ: Mapping[str, str], files: Sequence[ConfigFile], folder: Path) -> _Found:
    """Return what uv's variables and files name: what stands nearer comes first."""
    tables = [({**_uv_variables(environ)}, folder)]
    for file in files:
        table = _uv_table(file)
        nested = table.get("pip")
        tables += [
            (table, file.path.parent),
            (nested if isinstance(nested, dict) else {}, file.path.parent),
        ]
    found = _Found()
    for table, here in tables:
        _add(found, table, here)
    if found.closed and not found.default:
        return _Found(links=found.links, closed=True)
    return replace(found, default=found.default[:1])


def _add(found: _Found, table: Mapping[str, Any], folder: Path) -> None:
    rows = table.get("index", [])
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, dict) or not isinstance(row.get("url"), str):
            continue
        name = row["name"] if isinstance(row.get("name"), str) else None
        if row.get("format") == "flat":
            found.links.append(_index(row["url"], folder, kind="links", name=name))
        else:
            (found.default if row.get("default") is True else found.more).append(
                _index(row["url"], folder, name=name)
            )
    found.default += [_index(url, folder) for url in _words(table.get("index-url"))]
    found.more += [_index(url, folder) for url in _words(table.get("extra-index-url"))]
    found.links += [_index(url, folder, kind="links") for url in _words(table.get("find-links"))]
    found.closed = found.closed or bool(found.default) or table.get("no-index") is True


def _uv_variables(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return uv's variables as a table like that of its files."""

    def rows(variable: str, *, default: bool) -> Iterator[dict[str, Any]]:
        for word in environ.get(variable, "").split():
            match = NAMED.fullmatch(word)
            name, url = match.groups() if match else (None, word)
            yield {"name": name, "url": url, "default": default}

    return {
        "index": [*rows("UV_INDEX", default=False), *rows("UV_DEFAULT_INDEX", default=True)],
        "index-url": environ.get("UV_INDEX_URL", ""),
        "extra-index-url": environ.get("UV_EXTRA_INDEX_URL", "").split(),
        "find-links": re.split(r"[\s,]+", environ.get("UV_FIND_LINKS", "").strip()),
        "no-index": environ.get("UV_NO_INDEX", "").lower() in YES,
    }


def _uv_table(file: ConfigFile) -> dict[str, Any]:
    try:
        table: Any = tomllib.loads(file.text)
        for key in ("tool", "uv") if file.path.name == "pyproject.toml" else ():
            table = table.get(key, {})
    except (ValueError, AttributeError, RecursionError):
        raise UsageError(
            f"cannot read {file.path}: it is not TOML", hint="correct the file"
        ) from None
    return table if isinstance(table, dict) else {}


def _words(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str) and each]


def _index(
    text: str, folder: Path, *, kind: Literal["simple", "links"] = "simple", name: str | None = None
) -> Index:
    """Return the index at a URL or at a path.

    Raises:
        UsageError: it is at neither.
    """
    try:
        parts = urlsplit(text)
        user, password = parts.username, parts.password
        _ = parts.port
    except ValueError:
        raise _no_index() from None
    if parts.scheme in ("http", "https") and parts.hostname:
        url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
        return Index(
            url,
            kind,
            name,
            None if user is None else unquote(user),
            None if password is None else unquote(password),
        )
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        path = Path(unquote(parts.path))
        if not path.is_absolute() or "\0" in str(path):
            raise _no_index()
        return Index(path.as_uri(), kind, name)
    if "://" in text or "\0" in text:
        raise _no_index()
    try:
        path = Path(text).expanduser() if text.startswith("~") else folder / text
    except RuntimeError:  # nobody has this name
        raise _no_index() from None
    return Index(path.absolute().as_uri(), kind, name)


def _no_index() -> UsageError:
    return UsageError(
        "a package index is neither a URL nor a folder",  # it may hold a password: not shown
        hint="check `--index-url`, ENVLOCK_INDEX_URL, `pip config list` and the settings of uv",
    )


def _once(found: Iterable[Index]) -> tuple[Index, ...]:
    """Return each place once, where it stands first, with whatever name and password any of its mentions has."""
    merged: dict[tuple[str, str], Index] = {}
    for index in found:
        key = (index.url.rstrip("/"), index.kind)
        old = merged.get(key)
        if old is None:
            merged[key] = index
        else:
            login = old if old.user is not None else index
            merged[key] = replace(
                old, name=old.name or index.name, user=login.user, password=login.password
            )
    return tuple(merged.values())


SIZE_LIMIT = 128 * 1024


def load(
    asked: Sequence[str] = (),
    *,
    prefix: Path | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Return which indexes to ask for the packages of an environment.

    Args:
        asked: `--index-url`; nothing else is asked then.
        prefix: the environment's `sys.prefix`, which may hold a `pip.conf`.
        environ: the variables; `os.environ` when not given.
        folder: the project's; the current one when not given.

    Raises:
        UsageError: a file cannot be read, or names what is no index.
    """
    environ = os.environ if environ is None else environ
    folder = folder or Path.cwd()
    return settings(
        environ,
        asked=asked,
        pip=list(_read(pip_files(environ, prefix))),
        uv=list(_read(uv_files(environ, folder))),
        folder=folder,
    )


def pip_files(environ: Mapping[str, str], prefix: Path | None) -> list[Path]:
    """Return where pip looks, in its order: for all users, for this one, for the environment, and the named one."""
    named = environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    home = _home(environ)
    user = [home / ".pip/pip.conf", _user_folder(environ) / "pip/pip.conf"]
    return [
        *(folder / "pip/pip.conf" for folder in reversed(_shared_folders(environ))),
        Path("/etc/pip.conf"),
        *(user if not (named and os.access(named, os.F_OK)) else []),
        *([prefix / "pip.conf"] if prefix is not None else []),
        *([Path(named)] if named else []),
    ]


def uv_files(environ: Mapping[str, str], folder: Path) -> list[Path]:
    """Return where uv looks: the project first, then this user, then all."""
    if environ.get("UV_NO_CONFIG", "").lower() in ("1", "true"):
        return []
    if environ.get("UV_CONFIG_FILE"):
        return [Path(environ["UV_CONFIG_FILE"])]
    own = next(filter(None, map(_uv_project, [folder, *folder.parents])), None)
    shared = [each / "uv/uv.toml" for each in _shared_folders(environ)]
    system = next((each for each in [*shared, Path("/etc/uv/uv.toml")] if each.is_file()), None)
    return [
        each for each in (own, _user_folder(environ) / "uv/uv.toml", system) if each is not None
    ]


def _uv_project(folder: Path) -> Path | None:
    """Return the file that makes this folder a project of uv's: its own, else a pyproject.toml that speaks of uv."""
    if (folder / "uv.toml").is_file():
        return folder / "uv.toml"
    project = folder / "pyproject.toml"
    return (
        project
        if any("uv" in file.text and "tool" in file.text for file in _read([project]))
        else None
    )


def _read(paths: Sequence[Path]) -> Iterator[ConfigFile]:
    """Yield the files that are there."""
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


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 (Path.home() raises where it is unknown)


def _user_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or _home(environ) / ".config")


def _shared_folders(environ: Mapping[str, str]) -> list[Path]:
    return [
        Path(each) for each in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if each
    ]
