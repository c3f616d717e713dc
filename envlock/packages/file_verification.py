"""Deep verification from outside: the files of an environment, and its bytecode, which its own interpreter compares."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from envlock.lock.models import PackageIdentity
from envlock.packages.bytecode import compare_bytecode
from envlock.packages.installation import Installation
from envlock.runtime.files.survey import Survey
from envlock.runtime.files.survey import survey as survey_folders
from envlock.runtime.files.verification import Watch, check, report, unwatched
from envlock.runtime.report import Finding


def survey(place: Installation) -> Survey:
    """Return what there is to look at in an environment; nothing but metadata is read."""
    return survey_folders(str(place.prefix), [str(folder) for folder in place.folders])


def verify_files(
    survey: Survey, python: Path, locked: Mapping[str, PackageIdentity], watch: Watch = unwatched
) -> list[Finding]:
    """Return everything about the files that is not as recorded.

    Args:
        survey: what there is to look at.
        python: the environment's interpreter.
        locked: what a lock knows of the packages.
        watch: shows how far it is.
    """
    faults, compiled = check(
        survey, {name: (each.content, each.built) for name, each in locked.items()}, watch
    )
    with watch("comparing bytecode", len(compiled)) as advance:
        faults += compare_bytecode(python, compiled, faults, advance)
    return report(survey, faults)
