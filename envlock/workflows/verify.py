"""Is this environment the locked one?"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from envlock.lock.live import live_of
from envlock.runtime import lockfile
from envlock.runtime.collectors import Snapshot
from envlock.runtime.compare import PROVEN
from envlock.runtime.errors import UsageError
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.report import Finding, Report
from envlock.runtime.short import with_acceptance
from envlock.runtime.verify import judge_here, needs_proof, told
from envlock.workflows.entry_points import with_newly_held
from envlock.workflows.locks import file_of, lock_of, name_of, plain
from envlock.workflows.progress import SILENT, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.models import Lockfile
    from envlock.workflows.locks import Source


REFUTED = "Compute on a machine like the locked one: this one has other bits, as the canary shows."


def verify(
    lock: Source | None = None,
    policy: str | None = None,
    *,
    overrides: bool = True,
    python: Path | None = None,
    deep: bool = False,
    numerics: bool = False,
    progress: Progress = SILENT,
) -> Report:
    """Return every difference between a lock and the live environment; nothing is raised for a mismatch.

    Args:
        lock: the lockfile; the one that `assert_locked()` would use when not given.
        policy: how closely to compare; the lock's own when not given.
        overrides: whether rules that the lock has of its own count.
        python: the interpreter of the environment; this one when not given.
        deep: also hash every installed file, and ask TensorFlow in a child process which CUDA it gets.
        numerics: also compute the lock's canary.
        progress: shows what is going on.

    Raises:
        LockfileError: the lock is missing, unreadable, invalid, or newer than this envlock.
        UsageError: there is no such policy or interpreter, or a proof for this machine cannot be kept.
        FactError: the interpreter did not answer, or the lock has no canary and one is wanted.
    """
    document, subject = plain(lock)
    found = live_of(document, python)
    document, notes = with_newly_held(document, lock, found, python)
    where = None if python is None else str(python)
    report = told(judge_here(document, found, policy, subject, overrides, where), os.environ)
    if needs_proof(report):
        report = _proven(
            lock, report, found, python, policy, progress, overrides=overrides
        ) or told(judge_here(document, found, policy, subject, overrides, where), os.environ)
    report.notes += [*_about(document, file_of(lock)), *notes]
    if not (deep or numerics):
        return with_acceptance(report)
    model = lock_of(lock)
    if deep:
        report = report.with_more(
            _files(model, found, python, progress) + _contradictions(found, python, progress)
        )
    if numerics:
        from envlock.workflows.canary import against

        bits = against(
            model, name_of(lock), found, python, policy, progress, overrides=overrides
        ).report
        report = report.with_more(bits.findings, bits.notes)
    return with_acceptance(report)


def _about(document: dict[str, Any], lock: Path) -> list[str]:
    """Return what is worth knowing of the project: which packages are held, and at which commits it was and is."""
    from envlock.reports.lock import count_held, describe_commit

    project = document.get("project", {})
    notes = list(count_held(document))
    # Git is a process of its own, so it is started only for a lockfile that holds a commit.
    if "commit" not in project:
        return notes
    from envlock.lock.revision import revision

    here = revision(Path(lockfile.project(str(lock.parent))), lock)
    if not here:
        return notes
    locked = {key: value for key, value in project.items() if key in here}
    if here == locked:
        notes.append(f"project: {describe_commit(here)} (as locked)")
    else:
        notes.append(f"project: {describe_commit(here)} ({describe_commit(project)} when locked)")
    return notes


def _proven(
    lock: Source | None,
    report: Report,
    found: Snapshot,
    python: Path | None,
    policy: str | None,
    progress: Progress,
    *,
    overrides: bool,
) -> Report | None:
    """Compute the lock's canary on this machine; return None where it has the locked bits, and keep that proof."""
    from envlock.runtime.proof import COUNTS, content, folder, key

    counts = {f"cpu.{name}" for name in COUNTS}
    held = [
        each for each in report.findings if each.rule != PROVEN and each.severity in report.breaking
    ]
    if any(str(each.where) not in counts for each in held):
        return report  # the software is another one: no canary can help
    model = lock_of(lock)
    kept, name = folder(os.environ), key(model.to_document(), found)
    if kept is None or name is None:
        why = (
            "the lockfile has no canary (`envlock capture --canary`)"
            if kept
            else "this process has no home folder"
        )
        return report.with_more([], [f"no proof for this machine is possible: {why}"])
    from envlock.lock.writer import write_atomically
    from envlock.workflows.canary import against

    _make_own(Path(kept))
    bits = against(model, name_of(lock), found, python, policy, progress, overrides=overrides)
    if not bits.equal:
        for finding in report.findings:
            finding.fix = REFUTED if finding.rule == PROVEN else finding.fix
        return report.with_more(bits.report.findings, bits.report.notes)
    write_atomically(Path(kept) / name, content(name, bits.equal))
    return None


def _make_own(kept: Path) -> None:
    """Create the folder of proofs, or see that it is this user's alone: a proof in any other is not believed.

    Raises:
        UsageError: it cannot be created, or somebody else's is there.
    """
    from envlock.runtime.proof import is_own

    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        for each in (kept.parent, kept):
            each.mkdir(mode=0o700, exist_ok=True)
            if not is_own(str(each)):
                each.chmod(
                    0o700
                )  # ours, and made under a careless umask; where it is not ours, this fails
    except OSError as error:
        raise UsageError(
            f"cannot keep proofs in {kept}: {error.strerror}",
            hint="set XDG_CACHE_HOME to a folder of your own",
        ) from None
    if not (is_own(str(kept)) and is_own(str(kept.parent))):
        raise UsageError(
            f"cannot keep proofs in {kept}: it is not this user's folder",
            hint="set XDG_CACHE_HOME to a folder of your own",
        )


def _files(
    lock: Lockfile, found: Snapshot, python: Path | None, progress: Progress
) -> list[Finding]:
    """Return which installed files are not as recorded, or not as locked."""
    from envlock.diagnosis.examine import with_installer
    from envlock.diagnosis.remedies import with_commands
    from envlock.packages.file_verification import survey, verify_files
    from envlock.packages.installation import installation

    packages = {} if lock.identity is None else dict(lock.identity.packages)
    if lock.project is not None and lock.project.name is not None:
        packages.pop(lock.project.name, None)  # it is the project's code, whatever it holds
    faults = verify_files(
        survey(installation(python)), python or Path(sys.executable), packages, progress.bar
    )
    return list(with_commands(faults, with_installer(found, python)))


def _contradictions(found: Snapshot, python: Path | None, progress: Progress) -> list[Finding]:
    """Return where TensorFlow's own libraries answer otherwise than its files say."""
    from envlock.diagnosis import loaded_cuda

    cuda = found.facts.get("cuda")
    if not isinstance(cuda, dict):  # no CUDA build of TensorFlow: there is nothing to ask
        return []
    progress.say("asking TensorFlow which CUDA libraries it loads")
    answers = loaded_cuda.ask_tensorflow(Host(), python=python)
    if isinstance(answers, Unavailable):
        return [loaded_cuda.unanswered(answers)]
    return loaded_cuda.contradictions(cuda, answers)
