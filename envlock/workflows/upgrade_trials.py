"""Does an upgrade change the bits of a program? The new versions lie before the environment, which stays as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement

from envlock.data.determinism import load_operation_groups
from envlock.divergence import two_traces
from envlock.divergence.observed_runs import NOTHING_SHOWN, Request
from envlock.divergence.trace import Record
from envlock.divergence.trace import read as read_trace
from envlock.divergence.two_traces import Pair
from envlock.guest.target import Target
from envlock.lock.live_facts import collect_live
from envlock.lock.numerics import Numerics, parse_numerics
from envlock.lock.temporary import open_draft_folder
from envlock.numerics.bisection import read_versions
from envlock.numerics.canary.canary_comparison import compare as compare_canaries
from envlock.numerics.canary.canary_run import Settings
from envlock.numerics.canary.program_operations import compute_noted, recompute_program
from envlock.numerics.programs.parts import Observed
from envlock.numerics.programs.program_run import STEPS, observe_runs
from envlock.numerics.upgrade_verdict import (
    KERNELS,
    PROGRAM,
    UNCHANGED,
    UNPROVEN,
    VALUES,
    Change,
    Compared,
    Difference,
    Trial,
    UpgradeEvidence,
    compare_observed,
    compare_operations,
    find_unsteady,
    judge_upgrade,
    list_changes,
    list_switch_changes,
)
from envlock.packages.closure import is_held
from envlock.packages.overlay import (
    Wanted,
    build_environ,
    find_unreached,
    install_overlay,
    make_overlay_folder,
)
from envlock.packages.upgrade_resolution import find_unmet, parse_wishes, resolve_compatible
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS
from envlock.runtime.errors import EnvlockError, FactError, UsageError
from envlock.runtime.report import Report, count
from envlock.workflows.live_environment import LiveEnvironment, refuse_another_environment
from envlock.workflows.locks import load_lock
from envlock.workflows.program import Program
from envlock.workflows.progress import SILENT, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.workflows.locks import Source

ALL = "all"
SEED = 7
"""What traced runs begin with if they differ without a seed, and the user has named none."""
NAME = "program:function"
"""What the program's operations are called while they are compared."""
SECTIONS = ("packages", "environ", "python")
"""Facts that must be those of the lockfile: the upgrade begins there."""
_GROUPS = load_operation_groups()
DRAWN = _GROUPS["random"] | _GROUPS["random_images"] | _GROUPS["generators"] | _GROUPS["python"]
"""Operations whose results do not follow from their inputs alone."""
SHAPES = _GROUPS["shapes"]
UNREADABLE = "[*]"
"""The end of the type of a value that the tracer cannot read."""


class Look(NamedTuple):
    """What was seen of the program in one process.

    Attributes:
        program: what TensorFlow was given.
        inventory: its operations, run eagerly.
        trace: every operation of the first steps with its values, in the same run.
    """

    program: Observed
    inventory: Mapping[str, Any]
    trace: Path


def look(request: Request, folder: Path, environ: Mapping[str, str]) -> Look:
    """Return what is seen of a program that runs by itself, and then eagerly, as is requested.

    Raises:
        UsageError: it cannot be run so.
        FactError: it fails, or TensorFlow shows no operations.
    """
    program, seen = observe_runs(
        request.target,
        request.python,
        folder,
        environ=environ,
        eagerly=request.to_json(),
        timeout=request.timeout,
    )
    trace = folder / "1.trace"
    with read_trace(trace) as entries:
        if next(iter(entries), None) is None:
            raise FactError(NOTHING_SHOWN)
    return Look(program, seen["operations"], trace)


@dataclass(frozen=True)
class Seen:
    """What was seen of the program in the locked environment.

    Attributes:
        program: what TensorFlow was given.
        numerics: its operations, each with its result.
        trace: every operation of the first steps with its values, run eagerly.
        doubts: values that differ from run to run there, or cannot be read.
        seed: the seed of the traced runs; None if they need none.
        is_random: whether these runs differ without a seed.
    """

    program: Observed
    numerics: Numerics
    trace: Path
    doubts: tuple[Difference, ...]
    seed: int | None
    is_random: bool


@dataclass(frozen=True)
class Stage:
    """Looks at the program in the locked environment, and with other versions before it.

    Attributes:
        program: what is run; a function.
        seed: the seed of all runs, if the user has named one.
        environment: the locked one.
        overlays: the folder of the new versions.
        folder: where traces lie.
        steps: how many steps are traced at most.
        progress: shows what is being done.
    """

    program: Target
    seed: int | None
    environment: LiveEnvironment
    overlays: Path
    folder: Path
    steps: int
    progress: Progress

    def look(self) -> Seen:
        """Return what runs in the locked environment, where everything is looked at twice.

        Raises:
            UsageError: the program cannot be run so.
            FactError: it fails.
        """
        environ = build_environ((), {})
        seed = self.seed
        self.progress.say("locked versions: running it twice, to note what runs and all values")
        first, again = (self.look_once(environ, seed) for _ in range(2))
        is_random = False
        if seed is None and compare_traces(first.trace, again.trace):
            # What the program draws by itself is another number in each run: only a seed makes it
            # comparable, and the verdict says so.
            is_random, seed = True, SEED
            self.progress.say(f"they differ: twice again, with all seeds set to {seed}")
            first, again = (self.look_once(environ, seed) for _ in range(2))
        # What varies without any change would be taken for an effect of the upgrade.
        doubts = find_unsteady(first.program, again.program)
        if compare_traces(first.trace, again.trace):
            message = "the first steps have other values in each run of the locked environment"
            doubts.append(Difference(UNPROVEN, message))
        doubts += find_unreadable(first.trace)
        section = compute_noted(
            {NAME: first.inventory},
            self.environment.python,
            Settings(),
            gpus=self.environment.has_gpu_build,
            say=self.progress.say,
            environ=environ,
        )
        numerics = make_numerics(section)
        return Seen(first.program, numerics, first.trace, tuple(doubts), seed, is_random)

    def look_once(self, environ: Mapping[str, str], seed: int | None) -> Look:
        """Return what is seen in one process, in which the program runs by itself and then eagerly."""
        folder = self.folder / str(len(list(self.folder.iterdir())))
        folder.mkdir()
        python = self.environment.python
        steps = self.steps
        request = Request(
            self.program,
            python,
            1,
            fresh=True,
            mode="eager",
            steps=steps,
            seed=seed,
            operations=True,
        )
        return look(request, folder, environ)

    def attempt(self, changes: Sequence[Change], seen: Seen) -> Trial:
        """Return what differs with these versions before the environment.

        Raises:
            OutsideError: a package cannot be installed beside the environment.
            WriteError: the folder cannot be written.
        """
        names = ", ".join(map(str, changes))
        self.progress.say(f"{names}: noting what runs, computing its operations, tracing")
        python = self.environment.python
        overlays = [
            install_overlay(Wanted(*each.wanted), self.overlays, python) for each in changes
        ]
        environ = build_environ(overlays, {})
        obstacles = self.find_obstacles(changes, overlays, environ)
        return Trial(tuple(changes), (*seen.doubts, *obstacles, *self.compare(seen, environ)))

    def compare(self, seen: Seen, environ: Mapping[str, str]) -> list[Difference]:
        """Return what differs of the program where it runs with these variables."""
        differences = []
        try:
            new = self.look_once(environ, seen.seed)
            differences += compare_observed(seen.program, new.program)
            differences += self.recompute(seen.numerics, environ)
            differences += compare_traces(seen.trace, new.trace)
        except EnvlockError as error:
            message = f"it does not run with these versions: {error.message}"
            differences.append(Difference(UNPROVEN, message))
        return differences

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

    def recompute(self, locked: Numerics, environ: Mapping[str, str]) -> list[Difference]:
        """Return which operations of the program compute other bits with these variables."""
        if locked.program is None or not locked.program.operations:
            return []
        section = recompute_program(
            locked.program,
            self.environment.python,
            Settings(),
            gpus=self.environment.has_gpu_build,
            say=lambda text: None,
            environ=environ,
        )
        return compare_operations(compare_canaries(locked, make_numerics(section)))


def upgrade(
    lock: Source,
    program: Program | str,
    wanted: Sequence[str],
    *,
    steps: int = STEPS,
    progress: Progress = SILENT,
) -> Report[UpgradeEvidence]:
    """Return whether newer packages change the bits of a program, and which of them does, without training.

    What TensorFlow is given, every operation at its own shapes, and all values of the first steps are compared. The
    new versions lie in folders before the environment, in which nothing is installed.

    Args:
        lock: the lockfile; this environment must be the one that it describes.
        program: what is run; a text is its script. It must be a function.
        wanted: packages, each `NAME` or `NAME==VERSION`; `all` for everything in the lockfile.
        steps: how many steps are traced at most: the verdict is about these.
        progress: shows what is being done.

    Raises:
        LockfileError: the lockfile cannot be read.
        EnvironmentMismatch: this is another environment than the lockfile's.
        UsageError: the program cannot be run, a package is not named properly, or nothing would change.
        FactError: the program fails in the locked environment.
        OutsideError: no versions fit together, or one cannot be installed beside the environment.
        WriteError: the folder of the versions cannot be written.
    """
    model = load_lock(lock)
    program = Program.of(program)
    target = program.target
    if target.function is None:
        raise UsageError(
            f"{target.name} is a whole script; an upgrade is judged for a function",
            hint="name one: train.py:step",
        )
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
    overlays = make_overlay_folder()
    with open_draft_folder(None) as folder:
        stage = Stage(target, program.seed, environment, overlays, folder, steps, progress)
        seen = stage.look()
        together = stage.attempt(changes, seen)
        alone: tuple[Trial, ...] = ()
        if len(changes) > 1 and together.verdict != UNCHANGED:
            alone = tuple(stage.attempt([change], seen) for change in changes)
        compared = count_compared(seen)
    before, after = find_tensorflow(installed), find_tensorflow(versions)
    switches: tuple[str, ...] = ()
    if before is not None and after is not None:
        switches = list_switch_changes(before, after)
    unmet = tuple(find_unmet(environment.installation, versions))
    evidence = UpgradeEvidence(
        together, alone, compared, switches, unmet, seed=seen.seed, is_random=seen.is_random
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


def make_numerics(section: Mapping[str, object]) -> Numerics:
    """Return the operations of a program as a canary without a battery, to be compared as one."""
    return parse_numerics(
        {"battery": 1, "tensorflow": "0", "numpy": "0", "groups": {}, "program": dict(section)}
    )


def count_compared(seen: Seen) -> Compared:
    """Return how much can be compared with another environment."""
    operations, left_out = 0, 0
    if seen.numerics.program is not None:
        operations = len(seen.numerics.program.operations)
        coverage = seen.numerics.program.targets[NAME]
        left_out = coverage.distinct - coverage.covered
    entries = _count_entries(seen.trace)
    steps = len({entry.step for entry in entries})
    return Compared(len(seen.program.parts), operations, entries.total(), steps, left_out)


def find_unreadable(file: Path) -> list[Difference]:
    """Return that some values of a trace could not be read, so that equal traces do not prove that they are equal."""
    number = 0
    with read_trace(file) as trace:
        for entry in trace:
            specs = entry.output_specs
            if isinstance(entry, Record):
                specs += entry.input_specs
            if UNREADABLE in " ".join(specs):
                number += 1
    if not number:
        return []
    return [Difference(UNPROVEN, f"values of {number} traced operations cannot be read")]


def compare_traces(a: Path, b: Path) -> list[Difference]:
    """Return the first value or operation that differs between two traces; nothing if all are equal.

    Their order does not count: a graph runs its operations in one that follows from what they need, and the
    fingerprint of the program has that of eager ones.
    """
    before, after = _count_entries(a), _count_entries(b)
    if before == after:
        return []
    evidence = two_traces.report(str(a), str(b)).evidence
    pair = evidence.first or evidence.earliest
    if evidence.comparable and pair is not None:
        return [_judge_pair(pair)]
    # Equal results of other inputs; or one side has operations that the other lacks.
    others = (after - before) + (before - after)
    kind = next(iter(others)).kind
    message = f"the first steps, run eagerly: {kind} and {count(others.total() - 1, 'other')} run otherwise"
    if _count_kinds(before) == _count_kinds(after):
        return [Difference(VALUES, message)]
    return [Difference(PROGRAM, message)]


def _judge_pair(pair: Pair) -> Difference:
    """Return what the first entries that differ say: a kernel has computed other bits only if all that it got is equal."""
    entry = pair.a
    where = "the first steps, run eagerly"
    if entry.place is not None:
        where += f", {entry.place.file}:{entry.place.line}"
    if isinstance(entry, Record):
        is_drawn = entry.operation.type in DRAWN
        # An input without a fingerprint may differ; without any input, nothing was equal.
        has_equal_inputs = len(entry.inputs) > 0 and pair.known == len(entry.inputs)
        if pair.kind == "operation" and has_equal_inputs and not is_drawn:
            message = f"{where}: {entry.operation.type} gives other bits for equal inputs"
            return Difference(KERNELS, message)
    return Difference(VALUES, f"{where}: {entry.title} has other values")


class Entry(NamedTuple):
    """What counts of an entry of a trace: its step, what it is, its types, and its values."""

    step: int
    kind: str
    specs: tuple[str, ...]
    values: tuple[int | None, ...]


def _count_entries(file: Path) -> Counter[Entry]:
    """Return how often each operation ran with these values."""
    found: Counter[Entry] = Counter()
    with read_trace(file) as trace:
        for entry in trace:
            if isinstance(entry, Record):
                if entry.operation.type in SHAPES:
                    continue
                specs = entry.input_specs + entry.output_specs
                values = entry.inputs + entry.outputs
                found[Entry(entry.step, entry.operation.type, specs, values)] += 1
            else:
                found[Entry(entry.step, entry.title, (entry.spec,), (entry.fingerprint,))] += 1
    return found


def _count_kinds(entries: Counter[Entry]) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for entry, number in entries.items():
        kinds[entry.kind] += number
    return kinds
