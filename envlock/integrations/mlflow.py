"""MLflow: every run is tagged with its environment, without a line in the script.

MLflow loads this module through its entry point. `log_lock()` adds the lockfile to a run.
"""

from __future__ import annotations

import re

import envlock
from envlock.integrations.verdict import describe_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Dict, Optional, Union

FOLDER = "envlock"
FOLDERS = re.compile(r"(?<![\w.])/(?:[^/\n]*/)+")
"""The folders of an absolute path, in a message."""


class LockContext:
    """Gives tags to MLflow at the start of a run; a `RunContextProvider` by its methods."""

    def in_context(self) -> bool:
        """Return True: whether there is a lockfile is known only when a run starts."""
        return True

    def tags(self) -> Dict[str, str]:
        """Return the line of the lockfile and whether it matches; empty without a lockfile.

        Nothing is refused here: MLflow only passes on tags. `envlock.assert_locked()` in the script
        refuses.
        """
        try:
            path = envlock.locate()
        except envlock.LockfileError:
            return {}
        try:
            found = describe_environment(path)
        except envlock.EnvlockError as error:
            # Without folders, which can have the name of a user: a tracker is read by many.
            return {"envlock.error": FOLDERS.sub("", str(error))}
        return {f"envlock.{name}": value for name, value in found.items()}


def log_lock(
    path: Optional[Union[str, os.PathLike[str]]] = None, run_id: Optional[str] = None
) -> str:
    """Add the lockfile to a run, as the artifact `envlock/envlock.lock`, and return its line.

    Args:
        path: the lockfile; else the one that `envlock.assert_locked()` would use.
        run_id: the run; else the active one.

    Raises:
        LockfileError: there is no lockfile, or it is invalid.
    """
    # An optional package, which `tags` does not need.
    import mlflow

    lock = envlock.locate(path)
    line = envlock.cite(lock)
    mlflow.log_artifact(lock, FOLDER, run_id=run_id)
    return line
