"""Reports of every command that judges, made of small values: one that says no, and one that says yes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from envlock.diagnosis import loaded_cuda
from envlock.diagnosis.checks import diagnose
from envlock.diagnosis.doctor import make_report as doctor_report
from envlock.diagnosis.doctor_evidence import DoctorEvidence
from envlock.diagnosis.tensorflow_state import ObservedState
from envlock.evidence import results
from envlock.evidence.bisect import bisection
from envlock.evidence.canary import canary as canaries
from envlock.evidence.canary.canary_run import Canary
from envlock.evidence.diverge import two_traces
from envlock.evidence.diverge.comparison import Difference
from envlock.evidence.diverge.evidence import Suspect
from envlock.evidence.diverge.live_dataset import report_of as dataset_report
from envlock.evidence.diverge.pipeline import Body, Graph, Node
from envlock.evidence.diverge.trace import Operation, Place, Record
from envlock.evidence.diverge.trace import Value as Quantity
from envlock.evidence.repeat import outcome
from envlock.evidence.repeat.matrices import MEASURES, Matrix
from envlock.evidence.repeat.outcome import Outcome
from envlock.evidence.results import Run, Value
from envlock.evidence.upgrade import upgrade_verdict as upgrades
from envlock.fleet.ranks import Rank
from envlock.fleet.reduction import reduction
from envlock.fleet.statement import make_failure
from envlock.linter.lint import lint as lint_files
from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from envlock.runtime.collectors import Snapshot
from envlock.runtime.facts import Unavailable
from envlock.runtime.files.findings import Fault
from envlock.runtime.files.findings import make_findings as file_findings
from envlock.runtime.finding_place import Where
from envlock.runtime.judgement import judge
from envlock.runtime.report import INFO, Finding, Report, sort_findings
from envlock.workflows.diff import diff as compare_locks
from tests.diagnosis.environments import changed, clean
from tests.evidence.canaries import numerics
from tests.evidence.diverge.reports import KNOWN
from tests.evidence.diverge.reports import report as divergence_report
from tests.evidence.diverge.traces import op, value, write
from tests.fleet.ranks import rank
from tests.locks import FACTS, UNAVAILABLE, document

Build = Callable[[str, Path, pytest.MonkeyPatch], list[Report]]


def printable(word: str) -> str:
    """Return what a lockfile can hold of a text."""
    return "".join(char for char in word if char.isprintable())


def lock(**changes: Any) -> Lockfile:
    """Return a small lock."""
    return validate(document(**changes), "envlock.lock")


def verify(word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """Facts, files and TensorFlow's own answer differ."""
    environ = {"OMP_NUM_THREADS": word, word: word}
    facts = {**FACTS, "environ": environ, "cpu": {"flags": [word], "quota": word}}
    unavailable = {**UNAVAILABLE, f"numpy.{word}": {"reason": word, "code": word}}
    report = judge(document(), Snapshot(facts, unavailable))
    faults = [Fault("modified", word, word, (word,)), Fault("startup", word, word, severity=INFO)]
    cuda = {"cudnn": {"linkage": "dlopen", "version": word, "resolved_by": word}}
    asked = loaded_cuda.find_contradictions(cuda, {"cudnn": f"{word} 2"})
    more = [*file_findings(faults, []), *asked, loaded_cuda.report_no_answer(Unavailable(word, word))]
    found = Report(sort_findings([*report.findings, *more]), policy=report.policy, subject=word, notes=[word])
    return [found, judge(document(unavailable={}), Snapshot(FACTS, {}))]


def diff(word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """Facts and canaries of two locks differ, and their names are odd."""
    canary = {"numerics": numerics().model_dump(mode="json", exclude_unset=True)}
    other = {"numerics": numerics("np_sum").model_dump(mode="json", exclude_unset=True)}
    facts = {**FACTS, "environ": {"OMP_NUM_THREADS": printable(word)}}
    names = (f"a {word}", f"b {word}")
    return [
        compare_locks(lock(**canary), lock(facts=facts, **other), names=names),
        compare_locks(lock(**canary), lock(**canary), names=names),
    ]


def doctor(word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """Variables, libraries and the driver are wrong, and states were shown."""
    unavailable = {"gpu": {"code": word, "reason": word}}
    wrong = changed(clean(gpu=True), ("cuda.cudnn.problem", word), TF_DETERMINISTIC_OPS=word, unavailable=unavailable)
    flag = f"--{printable(word)}"
    misspelt = changed(clean(), others=[f"PYTHONHASHSEED{word[:1]}"], XLA_FLAGS=flag, strange_flags=[flag])
    states = DoctorEvidence((ObservedState("op determinism", "off", word),))
    sound = DoctorEvidence((ObservedState("op determinism", "on", word),))
    return [doctor_report(sort_findings([*diagnose(wrong), *diagnose(misspelt)]), states), doctor_report([], sound)]


def lint(word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """A seed is missing, also in a test, a comment ignores nothing, and a file is no Python; the names of the files are odd."""
    code = f"import tensorflow as tf\nds = tf.data.Dataset.range(9).shuffle(9)  # {printable(word)}\n"
    files = {
        f"bad/{word}.py": f"{code}x = 1  # envlock: ignore[{printable(word)}]\n",
        f"bad/{word}/unreadable.py": "def f(:\n",
        f"bad/tests/{word}.py": code,
        f"good/{word}.py": "x = 1\n",
    }
    reports: list[Report] = []
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for name in ("bad", "good"):
        patch.chdir(folder / name)
        reports.append(lint_files(["."], tensorflow="2.21.0"))
    return reports


def lint_dataset(word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """A pipeline changes something in parallel."""
    source, last = Node("source", "RangeDataset"), Node(word, "ParallelMapDatasetV2", ("source",), {}, {"f": "inner"})
    noisy = Graph(Body((source, last)), {"inner": Body((Node("x", f"Assign{word}"), Node("y", "RandomUniform")))})
    return [dataset_report(graph, switched_on=False) for graph in (noisy, Graph(Body((source,))))]


def canary(word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """Operations compute other bits, or cannot be compared; and a canary alone, in which a group died."""
    here = numerics("np_sum", "matmul", without=("reduce",))
    groups = {
        **here.groups,
        "bf16": here.groups["bf16"].model_copy(update={"operations": {}, "ended": printable(word)}),
    }
    patch.setattr(canaries, "collect_live", lambda python: Snapshot(FACTS, {}))
    patch.setattr(canaries, "measure", lambda *_: Canary(here.model_copy(update={"groups": groups}), None, None))
    locked = lock(numerics=numerics().model_dump(mode="json", exclude_unset=True))
    return [canaries.canary(locked), canaries.canary()]


def repeat(word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """Runs differ, one failed, one was not made."""

    def run(label: str, number: int) -> Run:
        return Run(label, {0: {word: Value("float32", (), f"{number:064x}")}}, "finished")

    runs = [run("A0", 0), run("B0", 1)]
    (quantity,) = results.collect_quantities(runs, 0)
    cells: list[list[float | None]] = [[0.0, float("inf")], [None, 0.0]]
    matrix = Matrix(quantity, dict.fromkeys(MEASURES, cells), (word,))
    failed, environments = [Run("A1", {}, "failed", word)], {word: {"tensorflow": word}}
    same = [run("A0", 0), run("B0", 0)]
    return [
        outcome.report(Outcome(runs, failed, 4, quantity, [quantity], [matrix], environments, about=(word,))),
        outcome.report(
            Outcome(same, [], 2, None, results.collect_quantities(same, 0), [], environments, about=(word,))
        ),
    ]


def diverge(word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """An operation differs, in a graph with suspects and a pipeline with findings."""
    place = Place(word, 12, word)
    record = Record(0, 23, Operation(word, word, place, (word, "resource[]"), (word,)), (1, None), (2,))
    pipeline = Finding(
        "ENV501",
        "error",
        Where(operation=word, file=word, line=3),
        message=word,
        why="Why.",
        fix="Seed it.",
        source="here",
    )
    unordered = Finding(
        "ENV503",
        "warning",
        Where(operation=word, file=word, line=3),
        message=word,
        why="Why.",
        fix="Leave it out.",
        source="",
    )
    said: dict[str, Any] = {
        "target": word,
        "tensorflow": word,
        "keras": word,
        "record": record,
        "source": (word, word),
        "source_from": 11,
        "because": (word,),
        "pipelines": (pipeline,),
        "others": (Difference("operation", 90, (record, record), (0, 1)),),
        "notes": (word,),
    }
    suspects = (Suspect("AddN", word, place, KNOWN), Suspect(word, word, place, None))
    return [
        divergence_report("operation", **said),
        divergence_report("graph", suspects=suspects, **said),
        divergence_report("unseen", **{**said, "record": None, "levels": (), "known": None}),
        divergence_report("identical", **{**said, "record": None, "levels": (), "pipelines": (unordered,)}),
    ]


def diverge_compare(word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """The first operation differs, one that follows too, and so do the conditions; or nothing can be aligned."""
    name = printable(word)
    a: list[Record | Quantity] = [
        op(word, 3, [1], [2], name=word),
        op(f"{word} 2", 4, [1], [2], name=word),
        value(word, 9),
    ]
    b: list[Record | Quantity] = [
        op(word, 3, [1], [3], name=f"{word} b"),
        op(f"{word} 2", 4, [1], [4], name=word),
        value(word, 8),
    ]
    other: list[Record | Quantity] = [op("Other", 9, [], [])]
    files = [
        str(write(folder / f"{name} {letter}", entries, tensorflow=word, conditions={word: f"{word} {letter}"}))
        for letter, entries in (("a", a), ("b", b), ("c", other))
    ]
    return [two_traces.report(files[0], files[1]), two_traces.report(*files[1:]), two_traces.report(files[0], files[0])]


def fleet_check(word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """Ranks are alike; or one differs, one cannot look, one has another lockfile, and one is missing."""
    said = {"node": word, "job": word}
    alike = [rank(number, 2) for number in range(2)]
    lost = {**make_failure(Rank(4, 6, word, word), word), **said}
    apart = [*(rank(number, 6) for number in range(3)), rank(3, 6, lock=word, TF_ENABLE_ONEDNN_OPTS=word)]
    statements = [*({**each, **said} for each, _ in apart), lost]
    return [
        reduction([each for each, _ in alike], {each["root"]: found for each, found in alike}, 2)[0],
        reduction(statements, {each["root"]: found for each, found in apart}, 6)[0],
    ]


def bisect(word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """Two differences moved the bits together, another cannot be put here; none did."""
    causes = tuple(bisection.Cause(f"environ.{word}{number}", word, None) for number in range(2))
    first = bisection.FirstOperation(word, word)
    found = bisection.BisectEvidence(bisection.Differences(causes, (word,)), causes, "a", "b", 5, first)
    nothing = bisection.BisectEvidence(bisection.Differences(causes, ()), (), "a", "a", 4)
    return [bisection.judge_bisection(found, None, word), bisection.judge_bisection(nothing, None, word)]


def upgrade(word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """Two packages differ in everything, a third alone does not; one package changes nothing."""
    changes = tuple(upgrades.Change(f"{word}{number}", word, word) for number in range(3))
    differences = tuple(upgrades.Difference(kind, word) for kind in upgrades.WHYS)
    alone = tuple(upgrades.Trial((change,), differences[:number]) for number, change in enumerate(changes))
    whole = upgrades.Trial(changes, differences)
    counted = upgrades.Compared(1, 2, 3)
    found = [
        upgrades.UpgradeEvidence(whole, alone, counted, (word,), (word,)),
        upgrades.UpgradeEvidence(upgrades.Trial(changes, differences[-1:]), (), counted),
        upgrades.UpgradeEvidence(upgrades.Trial(changes, ()), (), counted),
    ]
    return [upgrades.judge_upgrade(evidence, word) for evidence in found]


def sync(word: str, folder: Path, patch: pytest.MonkeyPatch) -> list[Report]:
    """The verdict on what was installed."""
    found = verify(word, folder, patch)
    for report in found:
        report.command = "sync"
    return found


COMMANDS: Mapping[str, Build] = {
    "verify": verify,
    "sync": sync,
    "diff": diff,
    "doctor": doctor,
    "lint": lint,
    "lint_dataset": lint_dataset,
    "canary": canary,
    "repeat": repeat,
    "diverge": diverge,
    "diverge compare": diverge_compare,
    "fleet check": fleet_check,
    "bisect": bisect,
    "upgrade": upgrade,
}
