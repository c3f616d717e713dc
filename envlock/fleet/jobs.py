"""Select the job whose reports are compared, of those in a folder. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envlock.fleet.ranks import OWN, find_launched_job
from envlock.runtime.errors import FactError, UsageError

SHOWN = 5
"""Jobs that a message lists."""


def choose_job(
    found: Sequence[str], folder: str, environ: Mapping[str, str], named: str | None = None
) -> str:
    """Return the name of the job: the given one, else that of the surrounding launcher, else the
    only one.

    Args:
        found: the jobs that have reports in the folder.
        folder: its name in messages.
        environ: the variables of this process.
        named: the job that the user named.

    Raises:
        FactError: that job has no reports.
        UsageError: several jobs have reports, and none is named.
    """
    # In a batch script, the variables of the launcher name the job, but not a step.
    wanted = named or environ.get(OWN["job"]) or find_launched_job(environ)
    fitting = [job for job in found if not wanted or job == wanted or job.startswith(f"{wanted}.")]
    if not fitting:
        raise _make_no_report(found, folder, wanted)
    if len(fitting) > 1:
        shown = ", ".join(fitting[:SHOWN])
        if len(fitting) > SHOWN:
            shown += ", ..."
        raise UsageError(
            f"several jobs have reported to {folder}: {shown}", hint="name one in ENVLOCK_FLEET_JOB"
        )
    return fitting[0]


def _make_no_report(found: Sequence[str], folder: str, wanted: str) -> FactError:
    subject = f"no rank of job {wanted}" if wanted else "no job"
    problem = f"{subject} has reported to {folder}"
    if found:
        problem += f" (it has reports of {', '.join(found[:SHOWN])})"
    return FactError(problem, hint="let each rank run `envlock fleet report --to FOLDER`")
