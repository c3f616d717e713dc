"""What trackers record of an environment: the line of its lockfile, and whether it matches."""

from __future__ import annotations

import envlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Dict, Union


def describe_environment(lock: Union[str, os.PathLike[str]]) -> Dict[str, str]:
    """Return `lock`, the line of a lockfile; `match`, `true` or `false`; and `verdict`, one sentence.

    Another environment is an answer here, not an error: `envlock.assert_locked()` in the script
    refuses. With ENVLOCK_MODE=off there is only `lock`.

    Raises:
        LockfileError: the lockfile is missing or invalid.
    """
    found = {"lock": envlock.cite(lock)}
    try:
        report = envlock.assert_locked(lock, static=True)
    except envlock.EnvironmentMismatch as error:
        report = error.report
    # None means ENVLOCK_MODE=off.
    if report is None:
        return found
    return {**found, "match": str(report.match).lower(), "verdict": report.headline}
