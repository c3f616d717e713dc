"""What the project adds to its image: by `[tool.envlock.container]`, or as the lock has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envlock.containers.additions import Additions, additions
from envlock.containers.copies import collect
from envlock.lock.models import Lockfile
from envlock.runtime import lockfile
from envlock.workflows import settings


def added(lock: Lockfile, wheelhouse: Path, user: str | None = None, *, again: bool = False) -> Additions:
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
    project = Path(lockfile.project(str(here)))
    wanted, where = settings.load(here).container, f"[tool.envlock.container] in {project / lockfile.SETTINGS}"
    if lock.image is not None and lock.image.container is not None and (again or wanted is None):
        recorded = lock.image.container.model_dump()
        wanted, where = {**recorded, "copy": sorted(recorded["files"])}, "`image.container` in the lockfile"
    values: dict[str, Any] = dict(wanted or {})
    if user is not None:
        values["user"], where = user, "--user" if not wanted else where
    return additions(values, collect(project, values.get("copy", []), wheelhouse), where)
