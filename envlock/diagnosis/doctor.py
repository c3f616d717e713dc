"""Find what keeps an environment from working and from being deterministic."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from envlock.diagnosis import tensorflow_state
from envlock.diagnosis.checks import diagnose
from envlock.diagnosis.doctor_evidence import DoctorEvidence
from envlock.diagnosis.doctor_table import load_titles
from envlock.diagnosis.examine import (
    ask_gpu_health,
    build_from_live,
    build_from_lock,
    find_remnants,
    find_shared_files,
    list_requirements,
)
from envlock.lock.live_facts import collect_live
from envlock.lock.locks import get_subject, load_lock
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.assertion import locate
from envlock.runtime.errors import LockfileError
from envlock.runtime.lockfile import read_file
from envlock.runtime.recipe import warn_beyond_recipes
from envlock.runtime.report import ERROR, INFO, SUBJECT, Finding, Report, count_severities

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.diagnosis.diagnosed_environment import Environment, GpuHealth
    from envlock.lock.locks import Source


def doctor(
    lock: Source | None = None,
    *,
    python: Path | None = None,
    prove: bool = False,
    setup: str | None = None,
    progress: Progress = SILENT,
) -> Report[DoctorEvidence]:
    """Return what is wrong with an environment, the worst first; no findings if nothing is.

    Args:
        lock: examine the environment that this lockfile describes; the live one when not given.
        python: the interpreter of the live environment; this one when not given.
        prove: run TensorFlow in a child process and measure whether it is deterministic; the
            attachment `states` has the results.
        setup: the first Python lines of the program, which are run before the proof.
        progress: shows what is being done.

    Raises:
        LockfileError: the lockfile is missing, unreadable, invalid, or newer than this envlock.
        FactError: the interpreter or TensorFlow did not answer.
        UsageError: there is no such interpreter, or the lines of `setup` fail.
    """
    model = None
    facts = None
    if lock is not None:
        model = load_lock(lock)
        facts = model.facts
    if not prove:
        if model is None:
            environment = _examine_live(python)
        else:
            environment = build_from_lock(model)
        return make_report(diagnose(environment), subject=get_subject(lock))
    progress.say("running probe operations in TensorFlow (takes seconds)")
    seen = tensorflow_state.observe(python, setup)
    shown = tensorflow_state.read_states(seen)
    found = tensorflow_state.find_deviations(
        shown, tensorflow_state.list_wanted_states(facts), seen["tensorflow"]
    )
    report = make_report(found, DoctorEvidence(tuple(shown)), subject=get_subject(lock))
    report.notes += warn_beyond_recipes(seen["tensorflow"])
    return report


def _examine_live(python: Path | None) -> Environment:
    found = build_from_live(collect_live(python), os.environ, python, list_requirements(python))
    health: tuple[GpuHealth, ...] = ask_gpu_health(python) if found.gpus else ()
    return replace(
        found,
        locked_backend=_read_locked_backend(),
        gpu_health=health,
        shared_files=find_shared_files(python),
        remnants=find_remnants(python),
    )


def _read_locked_backend() -> str | None:
    """Return the back end of Keras that the nearest lockfile has; None without a lockfile, which
    means that no one has chosen it.
    """
    try:
        backend = read_file(locate())["facts"]["keras"]["config"]["backend"]
    except (LockfileError, KeyError, TypeError):
        # There is no lockfile, or it has no Keras.
        return None
    if isinstance(backend, str):
        return backend
    return None


def make_report(
    found: list[Finding], evidence: DoctorEvidence | None = None, *, subject: str = SUBJECT
) -> Report[DoctorEvidence]:
    """Return the findings as a report of the doctor, which matches unless one is an error;
    `evidence` is that of a proof.
    """
    if evidence is None:
        evidence = DoctorEvidence()
    if not found:
        headline = "no problems found" if evidence.states is None else "everything is as wanted"
    elif any(finding.severity == ERROR for finding in found):
        headline = f"not sound: {count_severities(found)}"
    elif all(finding.severity == INFO for finding in found):
        headline = f"no problems found, {count_severities(found)}"
    else:
        headline = f"sound: {count_severities(found)}"
    return Report(
        found,
        command="doctor",
        headline=headline,
        subject=subject,
        titles={**load_titles(), "proof": "TensorFlow is not in the wanted state"},
        evidence=evidence,
        breaking=(ERROR,),
    )
