"""Compare the live environment with a lockfile."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from envlock.lock.live_facts import collect_live_for
from envlock.lock.revision import find_revision
from envlock.reports.lock import count_held, describe_commit
from envlock.runtime import lockfile
from envlock.runtime.judgement import annotate, judge_here, needs_proof
from envlock.runtime.report import Report
from envlock.runtime.short_report import with_acceptance
from envlock.workflows.entry_points import add_newly_held
from envlock.workflows.live_environment import LiveEnvironment, Question
from envlock.workflows.locks import get_file, load_document, load_lock
from envlock.workflows.progress import SILENT, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source


def verify(
    lock: Source | None = None,
    policy: str | None = None,
    *,
    overrides: bool = True,
    python: Path | None = None,
    deep: bool = False,
    numerics: bool = False,
    program: bool = False,
    progress: Progress = SILENT,
) -> Report:
    """Return every difference between a lockfile and the live environment; a mismatch raises
    nothing.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        policy: how strictly to compare; the lockfile's own when not given.
        overrides: whether the lockfile's own rules apply.
        python: the interpreter of the environment; this one when not given.
        deep: also hash every installed file, and ask TensorFlow in a child process which CUDA
            libraries it loads.
        numerics: also compute the canary of the lockfile.
        program: also compare what TensorFlow really runs of the functions of the lockfile.
        progress: shows what is being done.

    Raises:
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        UsageError: there is no such policy or interpreter, or a proof for this machine cannot be
            stored.
        FactError: the interpreter did not answer, or the lockfile has no canary or program and one is
            required.
    """
    document, subject = load_document(lock)
    environment = LiveEnvironment(python, collect_live_for(document, python))
    document, notes = add_newly_held(document, lock, environment)
    question = Question(lock, document, subject, environment, policy, overrides, progress)
    report = _judge(question)
    report.notes += [*_describe_project(document, get_file(lock)), *notes]
    if deep or numerics or program:
        # Start-up time: this loads the models, and everything that reads files and computes.
        from envlock.workflows.verify_further import look_further

        further = look_further(
            question, load_lock(lock), deep=deep, numerics=numerics, program=program
        )
        report = report.add_findings(further.findings, further.notes)
    return with_acceptance(report)


def _judge(question: Question) -> Report:
    """Return the verdict on the facts; if it depends on a proof for this machine, the proof is made
    if possible.

    Raises:
        FactError: the canary cannot be computed.
        UsageError: the proof cannot be stored.
    """
    report = _compare_facts(question)
    if not needs_proof(report):
        return report
    # Start-up time: only a machine that differs from the locked one computes a canary.
    from envlock.workflows.verify_further import prove_machine

    proof = prove_machine(question, load_lock(question.lock), report)
    if proof.is_kept:
        # The facts are compared again because the comparison reads the proof from the user's cache:
        # before it was written, each fact that it covers was a finding.
        return _compare_facts(question)
    if proof.findings or proof.notes:
        return report.add_findings(proof.findings, proof.notes)
    return report


def _compare_facts(question: Question) -> Report:
    """Return the differences; a proof for this machine is used if the user's cache has one."""
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


def _describe_project(document: dict[str, Any], lock: Path) -> list[str]:
    """Return notes on the project: the packages that are held, and its commits now and at the time
    of the capture.
    """
    project = document.get("project", {})
    notes = list(count_held(document))
    # Git runs as a process, so it is started only for a lockfile that records a commit.
    if "commit" not in project:
        return notes
    current = find_revision(Path(lockfile.find_project(str(lock.parent))), lock)
    if not current:
        return notes
    locked = {key: value for key, value in project.items() if key in current}
    if current == locked:
        notes.append(f"project: {describe_commit(current)} (as locked)")
    else:
        notes.append(
            f"project: {describe_commit(current)} ({describe_commit(project)} when locked)"
        )
    return notes
