"""The lockfile in a stamped model, for the commands that only read one."""

from __future__ import annotations

from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from envlock.runtime.errors import LockfileError
from envlock.runtime.stamp import read_stamp


def read_line(path: str) -> str | None:
    """Return the line in the stamp of a model; None where the path is that of no model.

    Raises:
        LockfileError: the model has no stamp, or it is damaged.
    """
    stamp = read_stamp(path)
    if stamp is None:
        return None
    return str(stamp["line"])


def read_lock(path: str) -> Lockfile | None:
    """Return the lockfile in the stamp of a model; None where the path is that of no model.

    Raises:
        LockfileError: the model has no stamp, only a line, or it is damaged.
    """
    stamp = read_stamp(path)
    if stamp is None:
        return None
    if "lock" not in stamp:
        raise LockfileError(
            f"model {path} was stamped with a line only: {stamp['line']}",
            hint="compare the line: `envlock verify --line LINE`, or `envlock show LOCK --line`",
        )
    return validate(stamp["lock"], f"in {path}")
