"""Find which of the differences between two lockfiles change the results: run the program with
subsets of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from envlock.evidence.bisect.bisection import (
    PACKAGES,
    PROCESSOR,
    SOURCE,
    VARIABLES,
    BisectEvidence,
    Cause,
    Causes,
    Differences,
    FirstOperation,
    digest_run,
    find_smallest,
    judge_bisection,
    list_differences,
    read_thread_counts,
    read_variables,
    read_versions,
)
from envlock.evidence.conditions import describe_conditions
from envlock.evidence.diverge import two_traces
from envlock.evidence.diverge.observed_runs import Request
from envlock.evidence.diverge.trace_recording import record as write_trace
from envlock.evidence.program import Program
from envlock.evidence.repeated_runs import Plan, make_runs
from envlock.guest.target import Target
from envlock.lock.live_facts import collect_live
from envlock.lock.locks import load_lock
from envlock.lock.models import Lockfile
from envlock.lock.temporary import open_draft_folder
from envlock.packages.overlay import Wanted, build_environ, install_overlay, make_overlay_folder
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.errors import EnvlockError, FactError, UsageError
from envlock.runtime.own_variables import THREADS
from envlock.runtime.report import UNKNOWN, Finding, Report, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source

FAILED = "failed"
THREAD_VARIABLES = {fact: name for name, fact in THREADS.items()}


@dataclass
class Bench:
    """Runs the program with some of the differences applied, and remembers the digest of each
    result.

    Attributes:
        program: the program to run.
        seed: set before each run; None leaves seeding to the program.
        python: the interpreter; None for this one.
        folder: where overlays of packages are stored.
        a: the facts of the first lockfile.
        live: the installed versions, by package.
        progress: shows what is being done.
        hashes: the SHA-256 of each wheel that a lockfile proves, by name and version.
        digests: the digest of each combination that was run, the first and the second time.
    """

    program: Target
    seed: int | None
    python: Path | None
    folder: Path
    a: Mapping[str, object]
    live: Mapping[str, str]
    progress: Progress
    hashes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    digests: dict[tuple[Causes, bool], str] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """How often the program ran."""
        return len(self.digests)

    def compute(self, causes: Causes, *, again: bool = False) -> str:
        """Return the digest of the results that the program computes in A's environment with these
        differences taken from B, or the reason why it failed.

        Raises:
            OutsideError: a package cannot be installed beside the environment.
            UsageError: the program cannot be run at all, or records nothing.
        """
        key = causes, again
        if key not in self.digests:
            self.progress.say(
                f"run {self.runs + 1}: {len(causes)} of the differences from the second"
            )
            versions, variables = self.describe(causes)
            # The environment itself, without anything before it, is the user's and no mixture.
            self.digests[key] = self.run(versions, variables, is_mixture=bool(causes or versions))
        return self.digests[key]

    def describe(self, causes: Causes) -> tuple[dict[str, str], dict[str, str | None]]:
        """Return what makes the environment have these differences: versions of packages to install
        in an overlay, and variables to set.
        """
        versions: dict[str, str | None] = {**read_versions(self.a)}
        # Where a lockfile sets no thread count, TensorFlow would take that of this machine's processor.
        variables = {**read_variables(self.a), **read_thread_counts(self.a)}
        for cause in causes:
            section, name = cause.path.split(".", 1)
            if section == PACKAGES:
                versions[name.removesuffix(".version")] = cause.b
            elif section == PROCESSOR:
                variables[THREAD_VARIABLES[name]] = cause.b
            else:
                variables[name] = cause.b
        overlaid = {
            name: version
            for name, version in versions.items()
            if version is not None and self.live.get(name) != version
        }
        return overlaid, variables

    def run(
        self,
        versions: Mapping[str, str],
        variables: Mapping[str, str | None],
        *,
        is_mixture: bool,
    ) -> str:
        """Run the program once in its own process, and return the digest of its results.

        In a mixture of both sides, a program that cannot be imported has failed like one that ends
        early: its versions do not work together.
        """
        environ = self.make_environ(versions, variables)
        plan = Plan(
            self.program,
            1,
            fresh=True,
            seed=self.seed,
            python=self.python,
            environ=environ,
        )
        try:
            (run,) = make_runs(plan)
        except FactError as error:
            # Versions that do not work together count as a combination that does not give B's bits.
            return f"{FAILED}: {error.message}"
        except UsageError as error:
            if not is_mixture:
                raise
            return f"{FAILED}: {error.message}"
        return digest_run(run)

    def make_environ(
        self, versions: Mapping[str, str], variables: Mapping[str, str | None]
    ) -> dict[str, str]:
        """Return the variables of a run, which put the overlays of packages first."""
        overlays = [
            install_overlay(
                Wanted(name, version, self.hashes.get((name, version))), self.folder, self.python
            )
            for name, version in sorted(versions.items())
        ]
        return build_environ(overlays, variables)

    def find_first(self, causes: Causes) -> FirstOperation:
        """Return the first operation that computes other bits with these causes from B, or why none is named."""
        for cause in causes:
            # A traced run takes variables beside those of this process, and unsets none.
            if cause.path.startswith(VARIABLES) and None in (cause.a, cause.b):
                name = cause.path.partition(".")[2]
                if name in os.environ:
                    return FirstOperation(None, f"{name} would have to be unset")
        traces = []
        try:
            with open_draft_folder(None) as folder:
                for name, chosen in (("a", frozenset[Cause]()), ("b", causes)):
                    self.progress.say(f"tracing side {name.upper()}, operation by operation")
                    environ = self.make_environ(*self.describe(chosen))
                    request = Request(
                        self.program, self.python, 1, fresh=True, seed=self.seed, environ=environ
                    )
                    write_trace(request, folder / f"{name}.trace", self.progress.say)
                    traces.append(str(folder / f"{name}.trace"))
                found = two_traces.report(*traces).findings
        except EnvlockError as error:
            return FirstOperation(None, error.message)
        if not found:
            return FirstOperation(None, "run eagerly, all operations have equal bits")
        return FirstOperation(describe_finding(found[0]), None)


def bisect(
    a: Source,
    b: Source,
    program: Program | str,
    *,
    progress: Progress = SILENT,
) -> Report[BisectEvidence]:
    """Return the smallest set of differences between two lockfiles that turns the first one's bits
    into the second's.

    Each combination is an overlay of packages and variables over the live environment, which is not
    changed.

    Args:
        a, b: the two lockfiles.
        program: what is run; a text is its script.
        progress: shows what is being done.

    Raises:
        LockfileError: a lockfile cannot be read.
        OutsideError: a package of a lockfile cannot be installed beside the environment.
        UsageError: the program cannot be run, or the lockfiles do not differ.
        WriteError: the folder of the packages cannot be written.
    """
    first, second = load_lock(a), load_lock(b)
    one, other = read_facts(first), read_facts(second)
    program = Program.of(program)
    live = collect_live(program.python).facts
    differences = list_differences(one, other, live)
    if not differences.causes and not differences.out_of_reach:
        raise UsageError(
            "the two lockfiles do not differ", hint="name two that do: `envlock diff A B` shows it"
        )
    bench = Bench(
        program.target,
        program.seed,
        program.python,
        make_overlay_folder(),
        one,
        read_versions(live),
        progress,
        # A version of both sides is not a cause: the first one's wheel is meant.
        {**read_hashes(second), **read_hashes(first)},
    )
    return search(bench, differences)


def search(bench: Bench, differences: Differences) -> Report[BisectEvidence]:
    """Return which of the differences turn the bits of the first side into those of the second."""
    everything = frozenset(differences.causes)
    first, second = bench.compute(frozenset()), bench.compute(everything)
    problem = find_problem(bench, first, second, everything)
    smallest: tuple[Cause, ...] = ()
    if problem is None and first != second:
        smallest = find_smallest(differences.causes, lambda causes: bench.compute(causes) == second)
    operation = bench.find_first(frozenset(smallest)) if smallest else None
    digests = (first, second)
    if problem is not None:
        evidence = BisectEvidence(differences, (), None, None, bench.runs)
    else:
        evidence = BisectEvidence(differences, smallest, *digests, bench.runs, operation)
    report = judge_bisection(evidence, problem, bench.program.title)
    _, variables = bench.describe(frozenset())
    given = [f"{name}={value}" for name, value in sorted(variables.items()) if value is not None]
    if given:
        report.notes.append(clean(f"set for the runs of the first side: {', '.join(given)}"))
    report.headline += describe_conditions(bench.seed)
    return report


def describe_finding(finding: Finding) -> str:
    """Return what a finding says, with the place in the user's code."""
    if finding.where.file:
        return f"{finding.where}: {finding.message}"
    return finding.message


def find_problem(bench: Bench, first: str, second: str, everything: Causes) -> Finding | None:
    """Return why the two sides cannot be compared: one of them fails, or gives different bits when
    it is run again.
    """
    for name, digest, causes in (
        ("first", first, frozenset[Cause]()),
        ("second", second, everything),
    ):
        if digest.startswith(FAILED):
            return Finding(
                "run-failed",
                UNKNOWN,
                "program",
                message=f"the {name} side cannot be run: {digest.partition(': ')[2]}",
                why="A program that ends early has no bits to compare.",
                fix="run `envlock repeat` on it in that environment",
                source=SOURCE,
            )
        if bench.compute(causes, again=True) != digest:
            return Finding(
                "run-varies",
                UNKNOWN,
                "program",
                message=f"the {name} side gives other bits when it runs again",
                why="What varies by itself says nothing about differences.",
                fix="use --seed, or find the cause with `envlock diverge`",
                source=SOURCE,
            )
    return None


def read_facts(lock: Lockfile) -> dict[str, object]:
    """Return the facts of a lockfile as JSON values."""
    facts = lock.to_document()["facts"]
    return dict(facts)


def read_hashes(lock: Lockfile) -> dict[tuple[str, str], str]:
    """Return the SHA-256 of each wheel that a lockfile proves, by name and version."""
    if lock.identity is None:
        return {}
    return {
        (name, package.version): package.wheel.sha256
        for name, package in lock.identity.packages.items()
        if package.wheel is not None and package.version is not None
    }
