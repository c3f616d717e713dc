"""What the project adds to its image: by `[tool.envlock.container]`, or as the lock has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envlock.containers.additions import Additions, additions
from envlock.containers.copies import collect
from envlock.containers.debian import AptRequest, apt_request, locked_request
from envlock.lock.models import Lockfile
from envlock.runtime import lockfile
from envlock.workflows import settings


def requested(lock: Lockfile) -> AptRequest:
    """Return the Debian packages that the project asks for, or that the lock has where there are no settings.

    Raises:
        UsageError: one is no package, or an archive is none.
    """
    here = Path.cwd()
    wanted, where = settings.load(here).container, f"[tool.envlock.container] in {_file(here)}"
    if wanted is not None:
        return apt_request(wanted, where)
    return locked_request(lock.base_image.apt if lock.base_image is not None else None)


def added(
    lock: Lockfile, wheelhouse: Path, user: str | None = None, *, again: bool = False
) -> Additions:
    """Return what is added; the files are read.

    Args:
        lock: the image's; what it has recorded counts where the project has no settings.
        wheelhouse: a folder that is never copied.
        user: whom the program runs as, in the place of the settings' user.
        again: what is recorded counts first: the same image is wanted.

    Raises:
        UsageError: a setting must not go into an image, or a file cannot be read.
    """
    here = Path.cwd()
    wanted, where = settings.load(here).container, f"[tool.envlock.container] in {_file(here)}"
    if lock.image is not None and lock.image.container is not None and (again or wanted is None):
        recorded = lock.image.container.model_dump()
        wanted, where = (
            {**recorded, "copy": sorted(recorded["files"])},
            "`image.container` in the lockfile",
        )
    values: dict[str, Any] = dict(wanted or {})
    if user is not None:
        values["user"], where = user, "--user" if not wanted else where
    return additions(values, collect(_file(here).parent, values.get("copy", []), wheelhouse), where)


def _file(folder: Path) -> Path:
    return Path(lockfile.project(str(folder))) / lockfile.SETTINGS
