"""Which job's reports are meant, of those in a folder. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envlock.fleet.ranks import OWN, launched_job
from envlock.runtime.errors import FactError, UsageError


def job_of(
    found: Sequence[str], folder: str, environ: Mapping[str, str], named: str | None = None
) -> str:
    """Return the job that is meant: the one named, that of the launcher around this process, or the only one.

    Args:
        found: the jobs that have reports in the folder.
        folder: what messages call it.
        environ: the variables of this process: in a batch script, the launcher has named the job, and no step of it.
        named: the job that was asked for.

    Raises:
        FactError: that job has no reports.
        UsageError: several jobs have, and none is named.
    """
    wanted = named or environ.get(OWN["job"]) or launched_job(environ)
    fitting = [job for job in found if not wanted or job == wanted or job.startswith(f"{wanted}.")]
    if not fitting:
        what = f"no rank of job {wanted}" if wanted else "no job"
        hint = "let each rank run `envlock fleet report --to FOLDER`"
        others = f" (it has reports of {', '.join(found[:5])})" if found else ""
        raise FactError(f"{what} has reported to {folder}{others}", hint=hint)
    if len(fitting) > 1:
        shown = ", ".join(fitting[:5]) + (", ..." if len(fitting) > 5 else "")
        raise UsageError(
            f"several jobs have reported to {folder}: {shown}", hint="name one with `--job`"
        )
    return fitting[0]
