"""The variables that an image of `envlock build` sets in addition to its lockfile, and a refusal as
one line for its log.
"""

from __future__ import annotations

import os

from envlock.runtime.host import Host
from envlock.runtime.judgement import LOADED, collect_here, verify
from envlock.runtime.recipe import get_always_needed
from envlock.runtime.report import ERROR, Finding, Report, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Mapping, Optional

    from envlock.runtime.errors import EnvlockError
    from envlock.runtime.facts import Document

VENV = "/opt/venv"
PROGRAMS = ("python", "python3")
FIX = (
    "Start the container without setting it, "
    "or build an image of a lock and a recipe that has this value."
)
WHY_VALUE = "The image sets it for every program, so that sets and hashes of text have one order."
WHY_PATH = "The program would be run by another Python, with other packages, than the one that was verified."
SHOWN = 4
"""Findings in one line."""


def verify_image(
    lock: Document,
    policy: Optional[str] = None,
    *,
    deep: bool = False,
    host: Optional[Host] = None,
) -> Report:
    """Compare this container with the lockfile, and with the variables that the image itself sets;
    see `verify`. If the lockfile has what a process loads, what of that is the base's is read.
    """
    host = host or Host()
    live = collect_here(lock, host)
    if LOADED not in lock["facts"]:
        report = verify(lock, policy, deep=deep, live=live)
    else:
        # Not at the top: not every lockfile has what a process loads.
        from envlock.runtime.loaded.agreement import name_files
        from envlock.runtime.loaded.base_files import describe_base

        seen, places = describe_base(lock["facts"][LOADED], host)
        held = {name: lock["facts"][LOADED][name] for name in seen}
        lock = {**lock, "facts": {**lock["facts"], LOADED: held}}
        live = live.with_facts({**live.facts, LOADED: seen})
        report = verify(lock, policy, deep=deep, live=live)
        name_files(report.findings, places)
    findings = promises(os.environ)
    if findings:
        report = report.add_findings(findings)
    return report


def promises(environ: Mapping[str, str]) -> List[Finding]:
    """Return a finding for each variable that the image sets, that no lockfile has, and that has
    another value here.
    """
    findings = []
    for name, value in sorted(get_always_needed().items()):
        if environ.get(name) != value:
            findings.append(_make_finding(name, value, environ.get(name), WHY_VALUE))
    first = _find_python_folder(environ.get("PATH", os.defpath))
    own = os.path.join(VENV, "bin")
    if os.path.exists(os.path.join(own, "python")) and first != own:
        findings.append(_make_finding("PATH", own, first, WHY_PATH))
    return findings


def _find_python_folder(path: str) -> Optional[str]:
    """Return the folder of the `python` that is found first on a path."""
    for folder in path.split(os.pathsep):
        if any(os.access(os.path.join(folder, name), os.X_OK) for name in PROGRAMS):
            return folder
    return None


def _make_finding(name: str, expected: str, actual: Optional[str], why: str) -> Finding:
    if actual is None:
        shown = "unset"
    else:
        shown = clean(actual[:200]) or "empty"
    message = f"environ.{name}: set by the image to {expected}, live {shown}"
    return Finding(
        "image",
        ERROR,
        f"environ.{name}",
        message=message,
        why=why,
        fix=FIX,
        source="design",
        expected=expected,
        actual=actual,
        weight=40,
    )


def in_one_line(report: Report) -> str:
    """Return why a container does not start, as one line for its log.

    `envlock verify` inside has reasons and remedies.
    """
    findings = [finding for finding in report.findings if finding.severity in report.breaking]
    wrong = [clean(finding.message) for finding in findings]
    shown = wrong[:SHOWN]
    if len(wrong) > SHOWN:
        shown.append(f"and {len(wrong) - SHOWN} more")
    details = "(`envlock verify` in this image has the details)"
    return f"{report.headline}: {'; '.join(shown)} {details}"


def explain(error: EnvlockError) -> str:
    """Return what is wrong, and what to do, in one line."""
    if error.hint:
        return "{} ({})".format(error.message, error.hint)
    return error.message
