"""The checks of `verify` beyond comparing facts: hash files, ask TensorFlow, compute the canary."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from envlock.diagnosis import loaded_cuda
from envlock.diagnosis.examine import describe_installation
from envlock.diagnosis.remedies import add_commands
from envlock.evidence.canary.canary import Answer, compare_with_lock
from envlock.lock.locks import get_name, load_lock
from envlock.lock.models import Lockfile
from envlock.lock.writer import write_atomically
from envlock.packages.file_verification import list_standard_bytecode, survey, verify_files
from envlock.packages.live_environment import LiveEnvironment
from envlock.reports.progress import Progress
from envlock.runtime import machine_proof
from envlock.runtime.compare import PROVEN
from envlock.runtime.extent import Extent
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.judgement import LOADED, find_unproven, needs_proof
from envlock.runtime.report import Finding, Report
from envlock.runtime.user_cache import find_cache, make_cache
from envlock.workflows.question import Question, compare_proven_facts

REFUTED = "Compute on a machine like the locked one: this one has other bits, as the canary shows."


@dataclass(frozen=True)
class Look:
    """What to look at beside the facts.

    Attributes:
        deep: the installed files, and TensorFlow's libraries.
        numerics: the canary.
    """

    deep: bool = False
    numerics: bool = False


def look_further(question: Question, report: Report, notes: list[str], look: Look) -> Report:
    """Return the report on the facts with what the canary decides, and with what a further look adds.

    Args:
        question: what was asked.
        report: on the facts; where a proof for this machine decides it, one is made if possible.
        notes: on the project.
        look: what else to look at.

    Raises:
        FactError: the lockfile has no canary and one is required, or it cannot be computed.
        UsageError: a proof cannot be kept.
    """
    lock = load_lock(question.lock)
    answer = None
    if needs_proof(report):
        report, answer = prove_machine(question, lock, report)
    report.notes += notes
    findings: list[Finding] = []
    extent = Extent()
    if look.deep:
        files, number = _verify_files(lock, question.environment, question.progress)
        findings += files
        extent = extent.add(Extent(files=number))
        findings += _find_contradictions(question.environment, question.progress)
    more: list[str] = []
    if look.numerics and answer is None:
        answer = _compute_canary(question, lock)
    # Where they are a proof, results are reported only if they were asked for.
    if answer is not None and (look.numerics or not answer.equal):
        findings += answer.report.findings
        more += answer.report.notes
        extent = extent.add(answer.report.extent or Extent())
    return report.add_findings(findings, more, extent)


def _compute_canary(question: Question, lock: Lockfile) -> Answer:
    return compare_with_lock(
        lock,
        get_name(question.lock),
        question.environment,
        question.policy,
        question.progress,
        overrides=question.overrides,
    )


def prove_machine(
    question: Question, lock: Lockfile, report: Report
) -> tuple[Report, Answer | None]:
    """Compute the canary of the lockfile on this machine, and store a proof if it has the locked
    bits.

    If it has others, the findings that a proof would have allowed say what to do instead.

    Returns:
        The report on the facts of a proven machine, or `report` with a note on why there is no
        proof; and the answer of the canary, None if it was not computed.

    Raises:
        FactError: the canary cannot be computed.
        UsageError: the proof cannot be stored.
    """
    found = question.environment.snapshot
    if find_unproven(lock.to_document(), found, question.policy, question.overrides) is not None:
        return report, None
    # The canary sets its own thread counts, so they do not matter for the proof. If another fact
    # differs, the software is different, and no canary can help.
    ignored = {f"cpu.{name}" for name in machine_proof.COUNTS}
    for finding in report.findings:
        is_decisive = finding.rule != PROVEN and finding.severity in report.breaking
        if is_decisive and str(finding.where) not in ignored:
            return report, None
    key = machine_proof.key(lock.to_document(), found)
    if find_cache(os.environ) is None:
        return _refuse_proof(report, "this process has no home folder"), None
    if key is None:
        return _refuse_proof(
            report, "the lockfile has no canary (`envlock capture --canary`)"
        ), None
    # Before the canary, which takes seconds: without the folder, its result could not be kept.
    folder = make_cache(os.environ, machine_proof.PROOFS)
    answer = _compute_canary(question, lock)
    if answer.equal:
        for each in (key, *_list_keys_of_line_1(question)):
            proof = machine_proof.content(each, answer.equal)
            write_atomically(Path(folder, each), proof, mode=0o600)
        return compare_proven_facts(question), answer
    for finding in report.findings:
        if finding.rule == PROVEN:
            finding.fix = REFUTED
    return report, answer


def _list_keys_of_line_1(question: Question) -> list[str]:
    """Return the key under which line 1 of a script looks, which does not know yet what is loaded."""
    found = question.environment.snapshot
    if LOADED not in found.facts:
        return []
    facts = {name: value for name, value in found.facts.items() if name != LOADED}
    key = machine_proof.key(question.document, found.with_facts(facts))
    return [] if key is None else [key]


def _refuse_proof(report: Report, reason: str) -> Report:
    return report.add_findings([], [f"no proof for this machine is possible: {reason}"])


def _verify_files(
    lock: Lockfile, environment: LiveEnvironment, progress: Progress
) -> tuple[list[Finding], int]:
    """Return the installed files that are not as recorded, or not as locked; and how many files
    were compared.
    """
    packages = dict(lock.identities)
    if lock.project is not None and lock.project.name is not None:
        # It is the project's own code, which may change.
        packages.pop(lock.project.name, None)
    installed = survey(environment.installation)
    loaded = lock.facts.loaded
    ran = loaded.standard if loaded is not None else None
    standard = list_standard_bytecode(environment.installation, ran or {})
    faults = verify_files(installed, environment.interpreter, packages, progress.bar, standard)
    installation = describe_installation(environment.snapshot, environment.python)
    return list(add_commands(faults, installation)), len(installed.claims)


def _find_contradictions(environment: LiveEnvironment, progress: Progress) -> list[Finding]:
    """Return the contradictions between the answers of TensorFlow's own libraries and its files."""
    cuda = environment.snapshot.facts.get("cuda")
    # If this TensorFlow was built without CUDA, there is nothing to ask.
    if not isinstance(cuda, dict):
        return []
    progress.say("asking TensorFlow which CUDA libraries it loads")
    answers = loaded_cuda.ask_tensorflow(Host(), python=environment.python)
    if isinstance(answers, Unavailable):
        return [loaded_cuda.report_no_answer(answers)]
    return loaded_cuda.find_contradictions(cuda, answers)
