"""Which of the differences between two environments change the results: delta debugging over facts.
Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from envlock.evidence.results import Run
from envlock.runtime.extent import Extent
from envlock.runtime.own_variables import THREADS
from envlock.runtime.report import (
    ERROR,
    INFO,
    UNKNOWN,
    Evidence,
    Finding,
    Report,
    Severity,
    clean,
    count,
)

SOURCE = "docs/concepts/evidence.md"
TITLES = {
    "moved-bits": "this difference moved the bits",
    "run-varies": "a side varies by itself",
    "run-failed": "a side cannot be run",
    "out-of-reach": "a difference cannot be put on this machine",
}
PACKAGES, VARIABLES, PROCESSOR = "packages", "environ", "cpu"
DERIVED = ("tensorflow", "keras", "numpy")
"""Sections whose facts follow from packages and variables, and change with these."""
HASHED = "sha256:"
"""The form of a value in a lockfile that is not shown."""


@dataclass(frozen=True, order=True)
class Cause:
    """One difference that can be reproduced on this machine, from A's side to B's.

    Attributes:
        path: the path of the fact, such as `packages.keras.version` or `environ.TF_XLA_FLAGS`.
        a, b: the two values; None for unset, or for a package that one side does not have.
    """

    path: str
    a: str | None
    b: str | None

    def __str__(self) -> str:
        """Return it in the form of a report."""
        return f"{self.path}: {self.a or 'none'} -> {self.b or 'none'}"


Causes = frozenset[Cause]
Test = Callable[[Causes], bool]
"""A function that returns whether A, with these causes taken from B, computes B's bits; it
remembers its results.
"""


@dataclass(frozen=True)
class Differences:
    """The differences between two lockfiles: those that can be reproduced on this machine, and the
    paths of the others.
    """

    causes: tuple[Cause, ...]
    out_of_reach: tuple[str, ...]


@dataclass(frozen=True)
class FirstOperation:
    """The first operation that computes other bits, as `envlock diverge compare` says it, or why none is named."""

    found: str | None
    reason: str | None


@dataclass(frozen=True)
class BisectEvidence(Evidence):
    """What `envlock bisect` attaches to its report.

    Attributes:
        differences: all differences.
        smallest: a minimal set of causes that turns A's bits into B's.
        a, b: the digests of both sides' results; None if a side varies or fails.
        runs: how often the program ran.
        first_operation: where the bits part; None if they do not, or if a side has no result.
    """

    differences: Differences
    smallest: tuple[Cause, ...]
    a: str | None
    b: str | None
    runs: int
    first_operation: FirstOperation | None = None

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        operation = asdict(self.first_operation) if self.first_operation is not None else None
        return {
            "first_operation": operation,
            "causes": [render_cause(cause) for cause in self.differences.causes],
            "out_of_reach": list(self.differences.out_of_reach),
            "smallest": [render_cause(cause) for cause in self.smallest],
            "a": self.a,
            "b": self.b,
            "runs": self.runs,
        }


def render_cause(cause: Cause) -> dict[str, object]:
    """Return JSON values for a cause."""
    return {"path": cause.path, "a": cause.a, "b": cause.b}


def list_differences(
    a: Mapping[str, object], b: Mapping[str, object], live: Mapping[str, object]
) -> Differences:
    """Return the differences between the facts of two lockfiles, on a machine whose own facts are
    `live`.

    An overlay can add or replace a package, but not remove one; a variable whose value is hashed
    cannot be set. A thread count is set by its variable, so only the count is listed as a difference.
    """
    causes = list_thread_counts(a, b)
    counts = {cause.path for cause in causes}
    setters = {name for name, fact in THREADS.items() if f"{PROCESSOR}.{fact}" in counts}
    beyond = []
    ours = read_versions(live)
    one, other = read_versions(a), read_versions(b)
    for name in sorted(one.keys() | other.keys()):
        sides = (one.get(name), other.get(name))
        if sides[0] == sides[1]:
            continue
        path = f"{PACKAGES}.{name}.version"
        if None in sides and name in ours:
            beyond.append(path)
        else:
            causes.append(Cause(path, *sides))
    variables = (read_variables(a), read_variables(b))
    for name in sorted(variables[0].keys() | variables[1].keys()):
        before, after = variables[0].get(name), variables[1].get(name)
        if before == after or name in setters:
            continue
        path = f"{VARIABLES}.{name}"
        if any(value is not None and value.startswith(HASHED) for value in (before, after)):
            beyond.append(path)
        else:
            causes.append(Cause(path, before, after))
    for section in sorted(a.keys() | b.keys()):
        if section not in (PACKAGES, VARIABLES, *DERIVED):
            paths = list_paths(section, a.get(section), b.get(section))
            beyond += [path for path in paths if path not in counts]
    return Differences(tuple(causes), tuple(beyond))


def list_thread_counts(a: Mapping[str, object], b: Mapping[str, object]) -> list[Cause]:
    """Return TensorFlow's thread counts that are known on both sides and differ."""
    one, other = read_thread_counts(a), read_thread_counts(b)
    causes = []
    for name, fact in THREADS.items():
        before, after = one.get(name), other.get(name)
        if before is not None and after is not None and before != after:
            causes.append(Cause(f"{PROCESSOR}.{fact}", before, after))
    return causes


def list_paths(path: str, a: object, b: object) -> list[str]:
    """Return the paths below one at which two trees of facts differ."""
    if a == b:
        return []
    if not isinstance(a, dict) or not isinstance(b, dict):
        return [path]
    found = []
    for name in sorted(a.keys() | b.keys()):
        found += list_paths(f"{path}.{name}", a.get(name), b.get(name))
    return found


def read_versions(facts: Mapping[str, object]) -> dict[str, str]:
    """Return the version of each package that has one."""
    packages = facts.get(PACKAGES)
    if not isinstance(packages, dict):
        return {}
    found = {}
    for name, package in packages.items():
        if not isinstance(package, dict):
            continue
        version = package.get("version")
        if isinstance(version, str):
            found[name] = version
    return found


def read_variables(facts: Mapping[str, object]) -> dict[str, str | None]:
    """Return the variables in a lockfile; None for unset."""
    variables = facts.get(VARIABLES)
    if not isinstance(variables, dict):
        return {}
    return {
        name: value for name, value in variables.items() if value is None or isinstance(value, str)
    }


def read_thread_counts(facts: Mapping[str, object]) -> dict[str, str]:
    """Return TensorFlow's thread counts, by the variable that sets each."""
    processor = facts.get(PROCESSOR)
    if not isinstance(processor, dict):
        return {}
    found = {}
    for name, fact in THREADS.items():
        number = processor.get(fact)
        if isinstance(number, int):
            found[name] = str(number)
    return found


def digest_run(run: Run) -> str:
    """Return a digest of everything that a run recorded: equal if every bit of every step is equal."""
    steps: dict[int, dict[str, list[object]]] = {}
    for step, values in run.steps.items():
        steps[step] = {}
        for name, value in values.items():
            steps[step][name] = [value.kind, list(value.shape), value.digest]
    text = json.dumps(steps, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def judge_bisection(
    evidence: BisectEvidence, problem: Finding | None, title: str
) -> Report[BisectEvidence]:
    """Return a report on the differences that changed the results; `problem` is why a side has no
    result.
    """
    findings = [report_cause(cause, len(evidence.smallest)) for cause in evidence.smallest]
    if problem is not None:
        findings.append(problem)
    elif evidence.a is None or evidence.b is None:
        findings.append(report_unmeasured())
    # What could not be measured decides only if nothing else does.
    severity: Severity = INFO if findings else UNKNOWN
    findings += [report_beyond(path, severity) for path in evidence.differences.out_of_reach]
    notes = []
    if evidence.first_operation is not None:
        operation = evidence.first_operation
        text = operation.found or f"not named: {operation.reason}"
        notes.append(f"first operation with other bits: {clean(text)}")
    return Report(
        findings,
        command="bisect",
        headline=write_headline(evidence, title),
        subject=title,
        titles=TITLES,
        notes=notes,
        evidence=evidence,
        extent=Extent(runs=evidence.runs),
    )


def report_cause(cause: Cause, together: int) -> Finding:
    """Return the finding that a difference changes the results, alone or together with the others
    that were found.
    """
    company = ", together with the others that are named" if together > 1 else ""
    return Finding(
        "moved-bits",
        ERROR,
        cause.path,
        message=f"{clean(str(cause))}: this moves the bits{company}",
        why="With the value of the first lockfile, the program does not compute the bits of the second.",
        fix=f"lock one of the two values; `envlock explain {clean(cause.path)}` says what it does",
        source=SOURCE,
        expected=cause.a,
        actual=cause.b,
    )


def report_unmeasured() -> Finding:
    """Return the finding that a side has no result: no difference can have moved its bits, nor left them."""
    return Finding(
        "run-failed",
        UNKNOWN,
        "program",
        message="a side has no result, so nothing was compared",
        why="A program that ends early has no bits to compare.",
        fix="run `envlock repeat` on it in that environment",
        source=SOURCE,
    )


def report_beyond(path: str, severity: Severity) -> Finding:
    """Return the finding that a difference was not tried."""
    return Finding(
        "out-of-reach",
        severity,
        path,
        message=f"{clean(path)} differs and cannot be put on this machine",
        why="What it changes was not measured.",
        fix="run `envlock bisect` on a machine of the other kind",
        source=SOURCE,
    )


def write_headline(evidence: BisectEvidence, title: str) -> str:
    """Return the answer in one line: how many differences there are, how many of them changed the
    results, and in how many runs.
    """
    differences = evidence.differences
    measured = f"{count(evidence.runs, 'run')} of {clean(title)}"
    if evidence.a is None or evidence.b is None:
        return f"cannot say what moves the bits: {measured}"
    number = len(differences.causes)
    verb = "moves" if number == 1 else "move"
    if evidence.a != evidence.b:
        smallest = len(evidence.smallest)
        turn = "turns" if smallest == 1 else "turn"
        return f"{smallest} of {count(number, 'difference')} {turn} the first bits into the second: {measured}"
    if differences.out_of_reach:
        return (
            f"{count(number, 'difference')} that can be put on this machine {verb} no bit, "
            f"{len(differences.out_of_reach)} cannot be put on it: {measured}"
        )
    return f"{count(number, 'difference')} {verb} no bit: {measured}"


def find_smallest(causes: Sequence[Cause], gives_b: Test) -> tuple[Cause, ...]:
    """Return a minimal set of causes that turns A's bits into B's.

    All causes together must give B's bits, and no cause A's. Two causes that only act together are
    found; if several sets are possible, one of them is found. Andreas Zeller and Ralf Hildebrandt,
    "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software Engineering 28
    (2002), algorithm ddmin: https://doi.org/10.1109/32.988498
    """
    left = sorted(causes)
    parts = 2
    while len(left) > 1:
        chunks = split_evenly(left, parts)
        smaller = find_part(chunks, gives_b)
        if smaller is not None:
            left, parts = smaller, 2
            continue
        # If no single part is enough: what is left when one part is removed?
        smaller = find_rest(chunks, gives_b)
        if smaller is not None:
            left, parts = smaller, max(parts - 1, 2)
            continue
        if parts == len(left):
            break
        parts = min(2 * parts, len(left))
    return tuple(left)


def split_evenly(causes: Sequence[Cause], parts: int) -> list[list[Cause]]:
    """Return the causes in this many parts, whose sizes differ by at most one."""
    bounds = [len(causes) * number // parts for number in range(parts + 1)]
    return [list(causes[start:end]) for start, end in pairwise(bounds)]


def find_part(chunks: Sequence[list[Cause]], gives_b: Test) -> list[Cause] | None:
    """Return the first part that gives B's bits by itself."""
    for chunk in chunks:
        if gives_b(frozenset(chunk)):
            return chunk
    return None


def find_rest(chunks: Sequence[list[Cause]], gives_b: Test) -> list[Cause] | None:
    """Return all parts except one, if they still give B's bits."""
    # Of two parts, the rest of one is the other, which was tried already.
    if len(chunks) < 3:
        return None
    for left_out in range(len(chunks)):
        others: list[Cause] = []
        for number, chunk in enumerate(chunks):
            if number != left_out:
                others += chunk
        if gives_b(frozenset(others)):
            return others
    return None
