"""Does an upgrade change the bits of a program? The new versions lie before the environment, which stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from envlock.evidence.bisect.bisection import read_versions
from envlock.evidence.canary.canary_comparison import compare as compare_canaries
from envlock.evidence.canary.canary_run import Settings, compute
from envlock.evidence.conditions import SEED
from envlock.evidence.program import Program
from envlock.evidence.repeated_runs import Plan, make_runs
from envlock.evidence.results import Run
from envlock.evidence.upgrade.upgrade_verdict import (
    UNCHANGED,
    UNPROVEN,
    Change,
    Compared,
    Difference,
    Trial,
    UpgradeEvidence,
    compare_operations,
    compare_values,
    judge_upgrade,
    list_changes,
    list_switch_changes,
)
from envlock.guest.target import Target
from envlock.lock.live_facts import collect_live
from envlock.lock.locks import load_lock
from envlock.lock.numerics import Numerics
from envlock.packages.closure import is_held
from envlock.packages.live_environment import LiveEnvironment, refuse_another_environment
from envlock.packages.overlay import (
    Wanted,
    build_environ,
    find_unreached,
    install_overlay,
    make_overlay_folder,
)
from envlock.packages.upgrade_resolution import find_unmet, parse_wishes, resolve_compatible
from envlock.reports.progress import SILENT, Progress
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS
from envlock.runtime.errors import EnvlockError, UsageError
from envlock.runtime.report import Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.lock.locks import Source

ALL = "all"
SECTIONS = ("packages", "environ", "python")
"""Facts that must be those of the lockfile: the upgrade begins there."""


@dataclass(frozen=True)
class Before:
    """What the locked environment computes.

    Attributes:
        run: what the program records.
        numerics: the canary.
        doubts: why the program proves nothing, where it gives other values each time.
        seed: the seed of the runs; None if they need none.
        is_random: whether they differ without a seed.
    """

    run: Run
    numerics: Numerics
    doubts: tuple[Difference, ...]
    seed: int | None
    is_random: bool

    def count(self) -> Compared:
        """Return how much there is to be compared with another environment."""
        values = sum(map(len, self.run.steps.values()))
        operations = len(compare_canaries(self.numerics, self.numerics).equal)
        return Compared(values, len(self.run.steps), operations)


@dataclass(frozen=True)
class Stage:
    """Runs the program and the canary in the locked environment, and with other versions before it.

    Attributes:
        program: what is run.
        environment: the locked one.
        overlays: the folder of the new versions.
        progress: shows what is being done.
    """

    program: Target
    environment: LiveEnvironment
    overlays: Path
    progress: Progress

    def look_before(self, seed: int | None) -> Before:
        """Return what the locked environment computes, where the program runs twice.

        Args:
            seed: the seed of the runs, if the user has named one.

        Raises:
            UsageError: the program cannot be run so, or records nothing.
            FactError: it fails, or the canary cannot be computed.
        """
        environ = build_environ((), {})
        self.progress.say("locked versions: running the program twice")
        first, again = self.run(environ, seed, 2)
        is_random = False
        if seed is None and first.steps != again.steps:
            # What the program draws by itself is another number in each run: only a seed makes it
            # comparable, and the verdict says so.
            is_random, seed = True, SEED
            self.progress.say(f"they differ: twice again, with all seeds set to {seed}")
            first, again = self.run(environ, seed, 2)
        # What varies without any change would be taken for an effect of the upgrade.
        doubts: tuple[Difference, ...] = ()
        if first.steps != again.steps:
            message = "the program gives other values in each run of the locked environment"
            doubts = (Difference(UNPROVEN, message),)
        self.progress.say("locked versions: computing the canary")
        return Before(first, self.compute(environ), doubts, seed, is_random)

    def run(self, environ: Mapping[str, str], seed: int | None, runs: int = 1) -> list[Run]:
        """Return what runs of the program record, each in a process of its own with these variables."""
        python = self.environment.python
        plan = Plan(self.program, runs, fresh=True, seed=seed, python=python, environ=environ)
        return make_runs(plan)

    def compute(self, environ: Mapping[str, str]) -> Numerics:
        """Return the canary with these variables."""
        environment = self.environment
        gpus = environment.has_gpu_build
        return compute(environment.python, Settings(), gpus=gpus, environ=environ).numerics

    def attempt(self, changes: Sequence[Change], before: Before) -> Trial:
        """Return what differs with these versions before the environment.

        Raises:
            OutsideError: a package cannot be installed beside the environment.
            WriteError: the folder cannot be written.
        """
        names = ", ".join(map(str, changes))
        self.progress.say(f"{names}: running the program, computing the canary")
        python = self.environment.python
        overlays = [
            install_overlay(Wanted(*each.wanted), self.overlays, python) for each in changes
        ]
        environ = build_environ(overlays, {})
        differences = [*before.doubts, *self.find_obstacles(changes, overlays, environ)]
        try:
            (run,) = self.run(environ, before.seed)
            differences += compare_values(before.run, run)
            found = compare_canaries(before.numerics, self.compute(environ))
            differences += compare_operations(found)
        except EnvlockError as error:
            message = f"it does not run with these versions: {error.message}"
            differences.append(Difference(UNPROVEN, message))
        return Trial(tuple(changes), tuple(differences))

    def find_obstacles(
        self, changes: Sequence[Change], overlays: Sequence[Path], environ: Mapping[str, str]
    ) -> list[Difference]:
        """Return why the program would not use these versions, if they lie before the environment."""
        found = []
        for change, overlay in zip(changes, overlays, strict=True):
            part = find_unreached(overlay)
            if part is not None:
                message = f"{part} is taken from the environment, whatever lies before it"
                found.append(Difference(UNPROVEN, message))
            if change.name in DISTRIBUTIONS and self.environment.has_gpu_build:
                message = (
                    "TensorFlow looks for CUDA's libraries beside itself, where there are none"
                )
                found.append(Difference(UNPROVEN, message))
        facts = collect_live(self.environment.interpreter, environ).facts
        live = read_versions(facts)
        for change in changes:
            if live.get(change.name) != change.after:
                have = live.get(change.name, "none")
                message = f"Python finds {change.name} {have} nevertheless"
                found.append(Difference(UNPROVEN, message))
        return found


def upgrade(
    lock: Source,
    program: Program | str,
    wanted: Sequence[str],
    *,
    progress: Progress = SILENT,
) -> Report[UpgradeEvidence]:
    """Return whether newer packages change the bits of a program, and which of them does.

    What the program records and the operations of the canary are compared. The new versions lie in folders before
    the environment, in which nothing is installed.

    Args:
        lock: the lockfile; this environment must be the one that it describes.
        program: what is run; a text is its script.
        wanted: packages, each `NAME` or `NAME==VERSION`; `all` for everything in the lockfile.
        progress: shows what is being done.

    Raises:
        LockfileError: the lockfile cannot be read.
        EnvironmentMismatch: this is another environment than the lockfile's.
        UsageError: the program cannot be run or records nothing, a package is not named properly, or nothing would
            change.
        FactError: the program fails in the locked environment.
        OutsideError: no versions fit together, or one cannot be installed beside the environment.
        WriteError: the folder of the versions cannot be written.
    """
    model = load_lock(lock)
    program = Program.of(program)
    target = program.target
    environment = LiveEnvironment(program.python, collect_live(program.python))
    installed = read_versions(environment.snapshot.facts)
    wishes = list_wishes(wanted, installed)
    refuse_another_environment(model, environment.snapshot, SECTIONS)
    progress.say("asking the installer for versions that fit together")
    versions = resolve_compatible(wishes, environment.installation, program.python)
    changes = list_changes(versions, installed)
    if not changes:
        raise UsageError(
            f"nothing would change: {', '.join(wanted)}",
            hint="name another version: `--with NAME==VERSION`",
        )
    stage = Stage(target, environment, make_overlay_folder(), progress)
    before = stage.look_before(program.seed)
    together = stage.attempt(changes, before)
    alone: tuple[Trial, ...] = (
        tuple(stage.attempt([change], before) for change in changes)
        if len(changes) > 1 and together.verdict != UNCHANGED
        else ()
    )
    old, new = find_tensorflow(installed), find_tensorflow(versions)
    switches = list_switch_changes(old, new) if old is not None and new is not None else ()
    unmet = tuple(find_unmet(environment.installation, versions))
    evidence = UpgradeEvidence(
        together, alone, before.count(), switches, unmet, before.seed, before.is_random
    )
    return judge_upgrade(evidence, target.title)


def list_wishes(wanted: Sequence[str], installed: Mapping[str, str]) -> list[Requirement]:
    """Return the packages that are wanted; everything that policies compare for `all`.

    Raises:
        UsageError: nothing is wanted, or a text is not a package.
    """
    if not wanted:
        raise UsageError("no package is named", hint="add `--with NAME==VERSION` or `--with all`")
    texts = list(wanted)
    while ALL in texts:
        texts.remove(ALL)
    wishes = parse_wishes(texts, installed)
    if ALL in wanted:
        named = {wish.name for wish in wishes}
        for name in sorted(installed):
            if is_held(name) and name not in named:
                wishes += parse_wishes([name], installed)
    return wishes


def find_tensorflow(versions: Mapping[str, str]) -> str | None:
    """Return the version of TensorFlow among packages; None if it is not among them."""
    return next((versions[name] for name in DISTRIBUTIONS if name in versions), None)
