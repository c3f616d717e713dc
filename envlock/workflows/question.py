"""The comparison of an environment with a lockfile that `verify` makes."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from envlock.lock.interpreter import is_found
from envlock.lock.locks import find_path
from envlock.lock.settings import is_default
from envlock.packages.live_environment import LiveEnvironment
from envlock.reports.progress import Progress
from envlock.runtime.judgement import annotate, judge_here, judge_proven
from envlock.runtime.machine_proof import list_results, note
from envlock.runtime.report import Report
from envlock.runtime.short_report import name_lock_in, name_python_in, suggest_way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from envlock.lock.locks import Source


@dataclass(frozen=True)
class Question:
    """A comparison of an environment with a lockfile.

    Attributes:
        lock: the lockfile, as the caller gave it.
        document: the same as plain values, together with the packages that its entry points import
            now.
        subject: what a report calls its file.
        environment: the environment.
        policy: how strictly to compare; None for the lockfile's own policy.
        overrides: whether the lockfile's own rules apply.
        progress: shows what is being done.
    """

    lock: Source | None
    document: dict[str, Any]
    subject: str
    environment: LiveEnvironment
    policy: str | None
    overrides: bool
    progress: Progress


def compare_facts(question: Question) -> Report:
    """Return what differs; a proof for this machine counts if the user's cache has one."""
    python = question.environment.python
    report = judge_here(
        question.document,
        question.environment.snapshot,
        question.policy,
        question.subject,
        question.overrides,
        str(python) if python is not None else None,
    )
    return annotate(report, os.environ)


def compare_proven_facts(question: Question) -> Report:
    """Return what differs on a machine that has just been found to compute the locked bits."""
    report = judge_proven(
        question.document,
        question.environment.snapshot,
        question.policy,
        question.overrides,
        list_results(question.document),
    )
    report.subject = question.subject
    report.notes.append(note(question.document))
    return annotate(report, os.environ)


def add_way(report: Report, lock: Source | None, python: Path | None) -> None:
    """Add the likeliest way to a match, and let commands name the lockfile and the environment where they would take
    another.
    """
    report.notes += suggest_way(report)
    path = find_path(lock)
    if not report.match and path is not None and not is_default(path):
        name_lock_in(report, path)
    if not report.match:
        found = python is None or is_found(python)
        name_python_in(report, str(python or sys.executable), found=found)
