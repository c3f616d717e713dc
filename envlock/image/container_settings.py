"""What a project adds to its image, from its settings or the lockfile, and the engine that builds
it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from envlock.image.additions import Additions, parse_additions
from envlock.image.copies import collect
from envlock.image.debian import AptRequest, get_locked_request, parse_apt_request
from envlock.image.engines.engine import Engine
from envlock.image.engines.find import find
from envlock.lock import settings
from envlock.lock.models import BaseImage, Image
from envlock.runtime import lockfile


def read_apt_request(recorded: BaseImage | None) -> AptRequest:
    """Return the Debian packages that the settings of the project name, or without settings those
    of the base in the lockfile.

    Raises:
        UsageError: a name is not one of a Debian package, or an archive is malformed.
    """
    wanted = settings.load(Path.cwd()).container
    if wanted is not None:
        return parse_apt_request(wanted, _describe_settings())
    return get_locked_request(None if recorded is None else recorded.apt)


def read_additions(image: Image | None, wheelhouse: Path, *, again: bool = False) -> Additions:
    """Return what is added to the image; the files are read.

    Args:
        image: that of the lockfile; its record is used if the project has no settings.
        wheelhouse: a folder that is never copied.
        again: prefer what the lockfile records, because the same image is wanted.

    Raises:
        UsageError: a setting must not go into an image, or a file cannot be read.
    """
    wanted = settings.load(Path.cwd()).container
    where = _describe_settings()
    recorded = image.container if image is not None else None
    if recorded is not None and (again or wanted is None):
        wanted = recorded.model_dump()
        wanted["copy"] = sorted(wanted["files"])
        where = "`image.container` in the lockfile"
    values = dict(wanted or {})
    names, exclude = values.get("copy", []), values.get("exclude", [])
    copied = collect(_find_settings().parent, names, wheelhouse, exclude)
    additions = parse_additions(values, copied.files, where)
    warnings = (*additions.warnings, *copied.warnings)
    return replace(additions, summary=copied.summary, warnings=warnings)


def _describe_settings() -> str:
    return f"[tool.envlock.container] in {_find_settings()}"


def _find_settings() -> Path:
    return Path(lockfile.find_project(str(Path.cwd()))) / lockfile.SETTINGS


def find_engine(name: str) -> Engine:
    """Return the engine of this name; for `auto`, the first one that is found here.

    Raises:
        UsageError: there is no such engine.
        OutsideError: it is not installed, or does not answer.
    """
    return find(name)
