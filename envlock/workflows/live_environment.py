"""The environment that a workflow looks at, asked once for its facts and its folders."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import EnvironmentMismatch
from envlock.runtime.judgement import annotate, judge, judge_here, judge_proven
from envlock.runtime.machine_proof import note
from envlock.runtime.report import ERROR, Report
from envlock.workflows.progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile
    from envlock.packages.installation import Installation
    from envlock.workflows.locks import Source


@dataclass(frozen=True)
class LiveEnvironment:
    """An environment with its facts.

    Attributes:
        python: its interpreter; None for the one that runs envlock.
        snapshot: its facts.
    """

    python: Path | None
    snapshot: Snapshot

    @property
    def interpreter(self) -> Path:
        """The file of its interpreter, also where that is the one that runs envlock."""
        if self.python is None:
            return Path(sys.executable)
        return self.python

    @cached_property
    def installation(self) -> Installation:
        """The folders of its packages; another interpreter is started to name them.

        Raises:
            UsageError: the interpreter cannot be run.
            FactError: it did not answer.
        """
        # Start-up time: `verify` reads no metadata of packages, and does without `packaging`.
        from envlock.packages.installation import find_installation

        return find_installation(self.python)


@dataclass(frozen=True)
class Question:
    """What is asked of an environment.

    Attributes:
        lock: the lockfile, as it was named.
        document: the same as plain values; it also holds what its entry points import now.
        subject: what a report calls its file.
        environment: the environment.
        policy: how closely to compare; None for the lock's own policy.
        overrides: whether the lock's own rules count.
        progress: shows what is going on.
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
        question.subject,
        question.overrides,
        note(question.document),
    )
    return annotate(report, os.environ)


def refuse_another_environment(lock: Lockfile, found: Snapshot) -> None:
    """Do nothing where the packages are those of the lock.

    Raises:
        EnvironmentMismatch: they are not.
    """
    report = judge(lock.to_document(), found)
    errors = report.of(ERROR)
    findings = [error for error in errors if error.where.fact.startswith("packages")]
    if findings:
        other = Report(findings, policy=report.policy, overrides=report.overrides)
        hint = "run `envlock capture` to lock these packages; nothing was written"
        raise EnvironmentMismatch(other.to_text(), other, hint=hint)
