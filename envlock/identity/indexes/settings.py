"""Find and read the files in which pip and uv keep their indexes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envlock.identity.indexes.places import ConfigFile, Settings, settings
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean

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
        *(user if not (named and Path(named).exists()) else []),
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
    return [each for each in (own, _user_folder(environ) / "uv/uv.toml", system) if each is not None]


def _uv_project(folder: Path) -> Path | None:
    """Return the file that makes this folder a project of uv's: its own, else a pyproject.toml that speaks of uv."""
    if (folder / "uv.toml").is_file():
        return folder / "uv.toml"
    project = folder / "pyproject.toml"
    return project if any("uv" in file.text and "tool" in file.text for file in _read([project])) else None


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
            raise UsageError(f"cannot read {clean(str(path))}: {why}", hint="correct the file or its rights") from None
        if len(data) > SIZE_LIMIT:
            raise UsageError(f"cannot read {clean(str(path))}: it is larger than 128 KB", hint="is it the right file?")
        yield ConfigFile(path, data.decode("utf-8-sig", "replace").replace("\r\n", "\n"))


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 (Path.home() raises where it is unknown)


def _user_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or _home(environ) / ".config")


def _shared_folders(environ: Mapping[str, str]) -> list[Path]:
    return [Path(each) for each in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if each]
