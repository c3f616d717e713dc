"""Compare the live environment with a lockfile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envlock.lock.live_facts import collect_live_for
from envlock.lock.lock_text import count_held, describe_commit
from envlock.lock.locks import get_file, load_document, name_found_lock
from envlock.lock.revision import find_revision
from envlock.packages.live_environment import LiveEnvironment
from envlock.reports.progress import SILENT, Progress
from envlock.runtime import lockfile
from envlock.runtime.input_data import add_data
from envlock.runtime.judgement import LOADED, needs_proof
from envlock.runtime.report import Report
from envlock.workflows.content_notes import write_note
from envlock.workflows.entry_points import add_newly_held
from envlock.workflows.question import Question, add_way, compare_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source
    from envlock.workflows.loaded import Observed

NOT_LOOKED = "loaded: not compared, by files only"


def verify(
    lock: Source | None = None,
    policy: str | None = None,
    *,
    overrides: bool = True,
    python: Path | None = None,
    deep: bool = False,
    numerics: bool = False,
    static: bool = False,
    progress: Progress = SILENT,
) -> Report:
    """Return every difference between a lockfile and the live environment; a mismatch raises
    nothing.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        policy: how strictly to compare; the lockfile's own when not given.
        overrides: whether the lockfile's own rules apply.
        python: the interpreter of the environment; this one when not given.
        deep: also hash every installed file and all data, and ask TensorFlow in a child process
            which CUDA libraries it loads.
        numerics: also compute the canary of the lockfile.
        static: only what files say; else a process of its own imports what computes, to see what it
            loads, unless nothing has changed since the last one. Only if the lockfile has that.
        progress: shows what is being done.

    Raises:
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        UsageError: there is no such policy or interpreter, or a proof for this machine cannot be
            stored.
        FactError: the interpreter did not answer, or the lockfile has no canary and one is
            required.
    """
    document, subject = load_document(lock)
    environment = LiveEnvironment(python, collect_live_for(document, python))
    # Before the facts are compared: what the program imports by now must be as locked, too.
    document, notes = add_newly_held(document, lock, environment)
    seen, details = None, _describe_commit(document, get_file(lock))
    if LOADED in document["facts"] and not static:
        # Start-up time: a lockfile without the section does not need it.
        from envlock.workflows.loaded import add_loaded

        environment, seen = add_loaded(document, environment, progress)
    question = Question(lock, document, subject, environment, policy, overrides, progress)
    report = compare_facts(question)
    if seen is not None:
        _add_places(report, seen)
        (notes if seen.facts is None else details).append(seen.note)
    elif LOADED in document["facts"]:
        notes.append(NOT_LOOKED)
    notes = [*name_found_lock(lock, subject), *count_held(document), *notes]
    if deep or numerics or needs_proof(report):
        # Start-up time: this loads the models, and everything that reads files and computes.
        from envlock.workflows.verify_further import Look, look_further

        look = Look(deep=deep, numerics=numerics)
        report = look_further(question, report, notes, look)
    else:
        report.notes += notes
    if "data" in document:
        report = _add_data(report, question, deep=deep)
    report.details = details
    add_way(report, lock, python)
    return report


def _add_places(report: Report, seen: Observed) -> None:
    """Name the files of this machine in a report."""
    # Start-up time, too.
    from envlock.runtime.loaded.agreement import name_files

    name_files(report.findings, seen.places)


def _add_data(report: Report, question: Question, *, deep: bool) -> Report:
    return add_data(
        report,
        question.document,
        str(get_file(question.lock)),
        question.policy,
        overrides=question.overrides,
        deep=deep,
        on_read=write_note,
    )


def _describe_commit(document: dict[str, Any], lock: Path) -> list[str]:
    """Return a note on the commits of the project, now and at the time of the capture."""
    project = document.get("project", {})
    # Git runs as a process, so it is started only for a lockfile that records a commit.
    if "commit" not in project:
        return []
    current = find_revision(Path(lockfile.find_project(str(lock.parent))), lock)
    if not current:
        return []
    locked = {key: value for key, value in project.items() if key in current}
    if current == locked:
        return [f"project: {describe_commit(current)} (as locked)"]
    return [f"project: {describe_commit(current)} ({describe_commit(project)} when locked)"]
