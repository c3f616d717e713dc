"""Deep verification: the files of an environment, and its bytecode."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from envlock.lock.models import PackageIdentity
from envlock.packages.bytecode_comparison import compare_bytecode
from envlock.packages.installation import Installation
from envlock.runtime.files.survey import Survey
from envlock.runtime.files.survey import survey as survey_folders
from envlock.runtime.files.verify_files import Watch, check, report, watch_nothing
from envlock.runtime.report import Finding


def survey(environment: Installation) -> Survey:
    """Return what can be verified in an environment; only metadata is read."""
    return survey_folders(str(environment.prefix), [str(folder) for folder in environment.folders])


def verify_files(
    survey: Survey,
    python: Path,
    locked: Mapping[str, PackageIdentity],
    watch: Watch = watch_nothing,
) -> list[Finding]:
    """Return a finding for every file that is not as recorded.

    Args:
        survey: the files to verify.
        python: the environment's interpreter, which compares the bytecode.
        locked: the packages of a lockfile.
        watch: shows the progress.
    """
    digests = {name: (package.content, package.built) for name, package in locked.items()}
    corrections, overwritten = {}, {}
    for name, package in locked.items():
        if package.wrong_record is not None:
            corrections[name] = package.wrong_record.files
        overwritten[name] = package.overwritten or {}
    faults, compiled = check(survey, digests, watch, corrections, overwritten)
    with watch("comparing bytecode", len(compiled)) as advance:
        faults += compare_bytecode(python, compiled, faults, advance)
    return report(survey, faults)
