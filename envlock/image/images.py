"""Which of the known base images fits a lockfile best, and what runs on a GPU."""

from __future__ import annotations

import os
from typing import Any

from envlock.data.image_tables import Tables, load_image_tables
from envlock.image.bases.cards import find_capability, list_runnable, split_gpu
from envlock.image.bases.choose import Find, candidates
from envlock.image.bases.listing import describe_ranking
from envlock.image.bases.needs import BaseNeeds, collect_lock_needs
from envlock.image.bases.sources.interpreters import find_unlisted_machine
from envlock.lock.locks import load_lock
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.errors import OutsideError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source


def base_images(lock: Source | None = None) -> dict[str, Any]:
    """Return the base images for a lockfile as JSON values, the best first.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given.

    Raises:
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        UsageError: no image can be the machine of the lockfile.
    """
    needs = collect_lock_needs(load_lock(lock), None)
    return describe_ranking(candidates(needs, load_image_tables()), needs)


def find_gpu_support(gpu: str) -> dict[str, Any]:
    """Return what runs on a GPU or with a driver, as JSON values: NVIDIA's images and TensorFlow's
    wheels, and why the others do not run.

    Args:
        gpu: its compute capability, as `sm_120` or `12.0`, or the name of a card; a driver; or both,
            as `H100, 535.104.05`.

    Raises:
        UsageError: no table has such a card.
    """
    tables = load_image_tables()
    name, driver = split_gpu(gpu)
    return list_runnable(None if name is None else find_capability(name, tables), tables, driver)


def refresh_tables(needs: BaseNeeds, progress: Progress = SILENT) -> Tables:
    """Return the tables; with the build of the locked Python, if only the newest release of its
    distributor has it.

    A build that does not exist gives only a warning: the policy may accept another Python.
    """
    tables = load_image_tables()
    machine = find_unlisted_machine(needs, tables)
    if machine is None or needs.python is None:
        return tables
    # Start-up time: HTTP, which most requests do not need.
    from envlock.packages.archives import find_newest_python

    try:
        build = find_newest_python(needs.python, machine, os.environ)
    except OutsideError as error:
        warning = f"warning: {error.message}"
        if error.hint:
            warning += f"; {error.hint}"
        progress.say(warning)
        return tables
    standalone = tables.standalone.model_copy(update={"build": [*tables.standalone.build, build]})
    return tables.model_copy(update={"standalone": standalone})


def get_registry_finder() -> Find:
    """Return the function that asks a registry for an image."""
    # Start-up time: HTTP takes a tenth of a second, which an answer from the tables does not need.
    from envlock.image.bases.registry import open_registry

    return open_registry().find
