"""The lockfile in a stamped model, for commands that only read a lockfile."""

from __future__ import annotations

from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from envlock.runtime.errors import LockfileError
from envlock.runtime.stamp import read_stamp


def read_line(path: str) -> str | None:
    """Return the line in the stamp of a model; None if the path is not that of a model.

    Raises:
        LockfileError: the model has no stamp, or a damaged one.
    """
    stamp = read_stamp(path)
    if stamp is None:
        return None
    return str(stamp["line"])


def read_lock(path: str) -> Lockfile | None:
    """Return the lockfile in the stamp of a model; None if the path is not that of a model.

    Raises:
        LockfileError: the model has no stamp, only a line, or a damaged stamp.
    """
    stamp = read_stamp(path)
    if stamp is None:
        return None
    if "lock" not in stamp:
        raise LockfileError(
            f"model {path} was stamped with a line only: {stamp['line']}",
            hint="compare the line with that of `envlock show LOCK --line`",
        )
    return validate(stamp["lock"], f"in {path}")
