"""Does an upgrade change the bits of a program? A verdict for each package. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from operator import attrgetter

from envlock.data.determinism import load_source_table
from envlock.data.runtime_tables import load_variables
from envlock.data.specifiers import matches_version
from envlock.evidence.canary.canary_comparison import Comparison
from envlock.evidence.conditions import describe_conditions
from envlock.evidence.results import Run, find_first
from envlock.runtime.extent import Extent
from envlock.runtime.recipe import Recipe, find_recipe, warn_beyond_recipes
from envlock.runtime.report import (
    ERROR,
    UNKNOWN,
    WARNING,
    Evidence,
    Finding,
    Report,
    Severity,
    clean,
    count,
)

SOURCE = "docs/concepts/evidence.md"
VALUES, KERNELS = "values-differ", "kernels-differ"
UNPROVEN = "not-provable"
UNCHANGED = "no-bit-changes"
UNMET = "requirement-unmet"
TITLES = {
    VALUES: "the program gives other values",
    KERNELS: "an operation computes other bits",
    UNPROVEN: "evidence is missing",
    UNMET: "an installed package requires another version",
}
WORDS = {
    VALUES: "values differ",
    KERNELS: "kernels differ",
    UNPROVEN: "not provable",
    UNCHANGED: "no bit changes",
}
WHYS = {
    VALUES: "The program computes something else with these versions.",
    KERNELS: "Equal inputs give other results, and a longer run of the program can meet such an operation.",
    UNPROVEN: "What was not compared is not known to be the same.",
}
FIXES = {
    VALUES: "stay with the locked version where bits count; `envlock diverge compare` names the operation",
    KERNELS: "stay with the locked version where bits count",
    UNPROVEN: "train with both and compare: `envlock repeat --save`",
}
ORDER = (VALUES, KERNELS, UNPROVEN, UNCHANGED)
"""The strongest verdict first."""
SHOWN = 4
"""Operations that a sentence names."""


@dataclass(frozen=True)
class Change:
    """One package, and its versions before and after; before is None for one that is added."""

    name: str
    before: str | None
    after: str

    @property
    def wanted(self) -> tuple[str, str]:
        """The name and the new version."""
        return self.name, self.after

    def __str__(self) -> str:
        """Return it in the form of a report."""
        if self.before is None:
            return f"{self.name} none -> {self.after}"
        return f"{self.name} {self.before} -> {self.after}"


@dataclass(frozen=True)
class Difference:
    """One thing that differs, or that is missing for a proof.

    Attributes:
        kind: `values-differ`, `kernels-differ` or `not-provable`.
        message: what, a sentence without a full stop.
    """

    kind: str
    message: str


@dataclass(frozen=True)
class Trial:
    """Some of the changes, put before the environment together, and what differs then."""

    changes: tuple[Change, ...]
    differences: tuple[Difference, ...]

    @property
    def verdict(self) -> str:
        """The strongest kind of difference; `no-bit-changes` without one."""
        kinds: list[str] = [UNCHANGED, *map(attrgetter("kind"), self.differences)]
        return min(kinds, key=ORDER.index)

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "packages": [asdict(change) for change in self.changes],
            "verdict": self.verdict,
            "differences": [asdict(difference) for difference in self.differences],
        }


@dataclass(frozen=True)
class Compared:
    """How much was compared.

    Attributes:
        values: values that the program recorded.
        steps: steps at which it did.
        operations: operations of the canary.
    """

    values: int
    steps: int
    operations: int

    @property
    def lacking(self) -> tuple[str, ...]:
        """The kinds of evidence of which there is nothing: without one of them, equality proves nothing."""
        numbers = {
            "the program recorded no value": self.values,
            "no operation of the canary could be compared": self.operations,
        }
        return tuple(text for text, number in numbers.items() if number == 0)


@dataclass(frozen=True)
class UpgradeEvidence(Evidence):
    """What `envlock upgrade` attaches to its report.

    Attributes:
        together: all changes at once: the upgrade.
        alone: each change by itself, where the upgrade changes something and has several.
        compared: how much was compared.
        switches: what the tables say that changes in determinism switches and seeds, a sentence each.
        unmet: requirements of installed packages that the new versions do not meet.
        seed: what all seeds were set to in the runs that were compared; None for none.
        is_random: whether these runs differ without a seed.
    """

    together: Trial
    alone: tuple[Trial, ...]
    compared: Compared
    switches: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()
    seed: int | None = None
    is_random: bool = False

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "trials": list(map(Trial.to_json, (self.together, *self.alone))),
            "witnesses": asdict(self.compared),
            "switches": list(self.switches),
            "unmet": list(self.unmet),
            "seed": self.seed,
            "varies_without_seed": self.is_random,
        }


def compare_values(before: Run, after: Run) -> list[Difference]:
    """Return the first value of the program that differs; nothing if all are equal."""
    first = find_first([before, after])
    if first is None:
        return []
    members = [name for name in first.differing if name != first.name][:SHOWN]
    names = f" ({', '.join(map(clean, members))})" if members else ""
    return [Difference(VALUES, f"first at step {first.step}, in {clean(first.name)}{names}")]


def compare_operations(compared: Comparison) -> list[Difference]:
    """Return which operations of the canary compute other bits from equal inputs, and by how much."""
    found = []
    if compared.differences:
        number = len(compared.differences)
        total = number + len(compared.equal)
        shown = "; ".join(
            f"{each.operation or each.group}: {each.what}" for each in compared.differences[:SHOWN]
        )
        if number > SHOWN:
            shown += f"; and {count(number - SHOWN, 'other')}"
        message = (
            f"{number} of {count(total, 'operation')} of the canary compute other bits: {shown}"
        )
        found.append(Difference(KERNELS, message))
    for missing in compared.incomparable:
        name = missing.path.rpartition(".")[2]
        found.append(Difference(UNPROVEN, f"{name} was not compared: {missing.reason}"))
    return found


def judge_upgrade(evidence: UpgradeEvidence, title: str) -> Report[UpgradeEvidence]:
    """Return a report with a finding for each thing that differs or is missing."""
    evidence = _add_lacking(evidence)
    trials = _select_trials(evidence)
    findings = []
    for trial in trials:
        findings += [report_difference(trial, each) for each in trial.differences]
    compared = evidence.compared
    # What differs decides; what is missing comes after it.
    findings.sort(key=lambda finding: finding.severity != ERROR)
    findings += list(map(report_unmet, evidence.unmet))
    unchanged = [trial for trial in evidence.alone if trial.verdict == UNCHANGED]
    notes = [f"{trial.changes[0]}: {WORDS[UNCHANGED]} by itself" for trial in unchanged]
    if evidence.together.verdict == UNCHANGED and len(evidence.together.changes) > 1:
        notes += [f"{change}: {WORDS[UNCHANGED]}" for change in evidence.together.changes]
    notes += evidence.switches
    return Report(
        findings,
        command="upgrade",
        headline=write_headline(evidence, title) + write_condition(evidence),
        subject=title,
        titles=TITLES,
        notes=list(map(clean, notes)),
        evidence=evidence,
        extent=Extent(operations=compared.operations, runs=2 if compared.values else 0),
    )


def _add_lacking(evidence: UpgradeEvidence) -> UpgradeEvidence:
    """Return the evidence in which no trial is proven if there was nothing of one kind to compare."""
    lacking = tuple(Difference(UNPROVEN, text) for text in evidence.compared.lacking)
    if not lacking:
        return evidence
    together, *alone = (
        replace(trial, differences=(*trial.differences, *lacking))
        for trial in (evidence.together, *evidence.alone)
    )
    return replace(evidence, together=together, alone=tuple(alone))


def _select_trials(evidence: UpgradeEvidence) -> list[Trial]:
    """Return the trials whose differences are shown: those of single packages, if they explain the whole."""
    together = evidence.together
    trials = [trial for trial in evidence.alone if trial.verdict != UNCHANGED]
    alone = {trial.verdict for trial in trials}
    if together.verdict == UNCHANGED or (together.verdict != UNPROVEN and alone <= {UNPROVEN}):
        return [together]
    return trials or [together]


def report_difference(trial: Trial, difference: Difference) -> Finding:
    """Return the finding for one difference."""
    path = "packages"
    if len(trial.changes) == 1:
        path += f".{trial.changes[0].name}.version"
    severity: Severity = UNKNOWN if difference.kind == UNPROVEN else ERROR
    changes = ", ".join(map(str, trial.changes))
    return Finding(
        difference.kind,
        severity,
        path,
        message=clean(f"{changes}: {WORDS[difference.kind]}: {difference.message}"),
        why=WHYS[difference.kind],
        fix=FIXES[difference.kind],
        source=SOURCE,
    )


def report_unmet(requirement: str) -> Finding:
    """Return the finding that an installed package requires another version."""
    return Finding(
        UNMET,
        WARNING,
        "packages",
        message=f"{clean(requirement)}, which the upgrade does not meet",
        why="Its authors did not mean these versions to run together.",
        fix="upgrade it, too: add it with --with",
        source=SOURCE,
    )


def write_headline(evidence: UpgradeEvidence, title: str) -> str:
    """Return the answer in one line; that no bit changes holds for what the program recorded."""
    compared = evidence.compared
    if len(evidence.together.changes) == 1:
        changes = str(evidence.together.changes[0])
    else:
        changes = count(len(evidence.together.changes), "package")
    verdict = WORDS[evidence.together.verdict]
    subject = f"{clean(changes)} under {clean(title)}"
    if evidence.together.verdict != UNCHANGED:
        return f"{verdict}: {subject}"
    return (
        f"{verdict}: {subject}: {count(compared.values, 'value')} of {count(compared.steps, 'step')} "
        f"and {count(compared.operations, 'operation')} of the canary are equal"
    )


def write_condition(evidence: UpgradeEvidence) -> str:
    """Return under which seed the verdict holds, as the end of the headline; empty without one."""
    text = describe_conditions(evidence.seed)
    if evidence.is_random:
        text += "; without, the program gives other values in each run"
    return text


def list_changes(versions: Mapping[str, str], installed: Mapping[str, str]) -> tuple[Change, ...]:
    """Return the packages whose version an upgrade changes, by name."""
    found = []
    for name, version in sorted(versions.items()):
        if installed.get(name) != version:
            found.append(Change(name, installed.get(name), version))
    return tuple(found)


def list_switch_changes(before: str, after: str) -> tuple[str, ...]:
    """Return what differs between two versions of TensorFlow, a sentence each without a full stop."""
    found = warn_beyond_recipes(after)
    old, new = find_recipe(before), find_recipe(after)
    if old is not None and new is not None:
        found += _compare_recipes(old, new)
    for row in load_variables():
        is_old, is_new = (matches_version(row.tensorflow, each) for each in (before, after))
        if is_old and not is_new:
            found.append(f"{row.name} is read by TensorFlow {before} only: {row.why}".rstrip("."))
        if is_new and not is_old:
            found.append(f"{row.name} is read by TensorFlow {after} only: {row.why}".rstrip("."))
    for source in load_source_table().source:
        is_old, is_new = source.is_active(before), source.is_active(after)
        if is_old and not is_new:
            found.append(f"noise ends: {source.component}: {source.why}".rstrip("."))
        if is_new and not is_old:
            found.append(f"noise begins: {source.component}: {source.why}".rstrip("."))
    return tuple(found)


def _compare_recipes(old: Recipe, new: Recipe) -> list[str]:
    found = []
    for what, left, right in (
        ("variables of the recipe", _show_settings(old.set), _show_settings(new.set)),
        ("variables that defeat it", _join(old.unset), _join(new.unset)),
        ("calls that seed", _join(old.seeds), _join(new.seeds)),
        ("calls that switch determinism on", _join(old.calls), _join(new.calls)),
    ):
        if left != right:
            found.append(f"{what}: {left} -> {right}")
    return found


def _show_settings(settings: dict[str, str]) -> str:
    return _join(f"{name}={value}" for name, value in settings.items())


def _join(texts: Iterable[str]) -> str:
    return " ".join(texts) or "none"
