"""What draws and is not seeded, in each program that runs it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from envlock.linter.events import KERAS, NUMPY, OWN, PYTHON, TENSORFLOW, Event
from envlock.linter.facts import Facts
from envlock.linter.findings import Found, join
from envlock.linter.module import UNSURE
from envlock.linter.project import File, Project, Scope

SEEDS = {
    PYTHON: "Call random.seed(seed), or tf.keras.utils.set_random_seed(seed), at the start.",
    NUMPY: "Call np.random.seed(seed), or tf.keras.utils.set_random_seed(seed), at the start.",
    TENSORFLOW: "Call tf.keras.utils.set_random_seed(seed), or tf.random.set_seed(seed), at the start.",
    KERAS: "Call tf.keras.utils.set_random_seed(seed) before the model is made.",
}
"""What seeds a generator in the newest version; `linter` puts it into the words of another one."""
SHORT = 16  # lines of a function that may be there to seed
RULES = {PYTHON: "ENV206", NUMPY: "ENV205", TENSORFLOW: "ENV204"}
GENERATORS = {
    PYTHON: "Python's generator",
    NUMPY: "NumPy's global generator",
    TENSORFLOW: "TensorFlow's generator",
}


class Seeding:
    """Which program seeds which generators."""

    def __init__(self, facts: Facts, tensorflow: str) -> None:
        self.project = facts.project
        self.tensorflow = tensorflow
        self._seeds = facts.select("seed")
        self._seeded: dict[File, frozenset[str]] = {}
        self._at: dict[object, list[Event]] = defaultdict(list)
        for each in self._seeds:
            self._at[each.scope].append(each)
            if each.scope.name == "__init__":
                self._at[each.scope.owner].append(each)

    def list_seeded(self, program: File) -> frozenset[str]:
        """Return the generators that a program seeds, wherever it does."""
        if program not in self._seeded:
            self._seeded[program] = frozenset(
                seed.of
                for seed in _list_run(self.project, self._seeds, program)
                if seed.file is program or _is_for_all(seed.scope)
            )
        return self._seeded[program]

    def seeds_keras(self, program: File, event: Event) -> bool:
        """Return whether a program seeds what the weights of Keras are drawn with."""
        seeded = self.list_seeded(program) | self._list_seeded_around(event)
        partly = TENSORFLOW in seeded and (PYTHON in seeded or not needs_python(self.tensorflow))
        return KERAS in seeded or partly

    def list_unseeded(self, event: Event, generator: str) -> list[File]:
        """Return the programs that run some code and seed a generator nowhere."""
        programs = self.project.list_programs(event.scope)
        found = []
        for program in programs:
            seeded = self.list_seeded(program)
            seeded |= self._list_seeded_around(event)
            if generator not in seeded:
                found.append(program)
        return found

    def _list_seeded_around(self, event: Event) -> frozenset[str]:
        """Return what a function seeds itself before it draws, or the constructor of its class."""
        if event.scope.node is None:
            return frozenset()
        mine = [each for each in self._at[event.scope] if each.line <= event.line]
        mine += self._at[event.scope.owner] if event.scope.owner is not None else ()
        return frozenset(each.of for each in mine)


def _list_run(project: Project, events: list[Event], program: File) -> list[Event]:
    """Return those of some events that a program comes to."""
    reach = project.list_reach(program)
    near = [each for each in events if each.file.index in reach]
    return [each for each in near if each.scope in project.find_called(program)]


def _is_for_all(scope: Scope) -> bool:
    """Return whether code of an imported file seeds for others: when it is imported, or as a short
    function does. A long one draws itself, now or late.
    """
    node = scope.node
    return node is None or (node.end_lineno or 0) - node.lineno < SHORT


def find_draws(facts: Facts, seeding: Seeding) -> Iterator[Found]:
    """ENV204, ENV205, ENV206: draws from a generator that a program seeds nowhere."""
    for generator, rule in RULES.items():
        events = [
            each
            for each in facts.select("draw", "weights")
            if each.of == generator and seeding.list_unseeded(each, generator)
        ]
        fix = SEEDS[generator]
        message = "{name} draws from " + GENERATORS[generator] + ", which nothing seeds{more}"
        yield from join(facts.project, rule, events, message, fix)
    for rule, of in (("ENV205", OWN), ("ENV206", "own python")):
        own = [each for each in facts.select("draw") if each.of == of]
        yield from join(
            facts.project, rule, own, "{name} is given no seed{more}", "Give it a seed."
        )


def find_entropy(facts: Facts, seeding: Seeding) -> Iterator[Found]:
    """ENV208: what takes entropy from the system whatever is seeded."""
    message = "{name} takes entropy from the operating system, whatever is seeded{more}"
    yield from join(facts.project, "ENV208", facts.select("entropy"), message)


def find_chances(facts: Facts, seeding: Seeding) -> Iterator[Found]:
    """ENV207: seeds that are None, or taken from a clock."""
    by_problem = defaultdict(list)
    for event in facts.select("chance"):
        by_problem[event.of].append(event)
    message = "{name} takes its seed from the clock, the process or the system{more}"
    yield from join(facts.project, "ENV207", by_problem["clock"], message)
    message = "{name} is given None unless a seed is passed, which seeds it from the system{more}"
    fix = "Give the seed a default that is a number."
    yield from join(facts.project, "ENV207", by_problem["none"], message, fix, part=UNSURE)


def find_shuffles(facts: Facts, seeding: Seeding) -> Iterator[Found]:
    """ENV203: datasets that are shuffled or sampled without a seed."""
    events = [each for each in facts.select("shuffle") if seeding.list_unseeded(each, TENSORFLOW)]
    message = "{name} is given no seed{more}, and nothing seeds TensorFlow"
    fix = "Pass seed=..., or: " + SEEDS[TENSORFLOW]
    yield from join(facts.project, "ENV203", events, message, fix)


def find_environments(facts: Facts, seeding: Seeding) -> Iterator[Found]:
    """ENV209: environments that a program seeds nowhere."""
    project = facts.project
    resets = facts.select("reset")
    events = []
    for each in facts.select("environment"):
        for program in project.list_programs(each.scope):
            mine = [reset for reset in resets if (reset.of == "space") == (each.of == "space")]
            if not _list_run(project, mine, program):
                events.append(each)
                break
    yield from join(project, "ENV209", events, "nothing seeds the environment of {name}{more}")


def find_models(facts: Facts, seeding: Seeding) -> Iterator[Found]:
    """ENV201, ENV202: models of Keras that are trained, or whose weights are made, without a seed."""
    project = facts.project
    starts = facts.select("train")
    training = _list_files(starts)
    layered = _list_files(facts.select("model", "weighted", "layer"))
    groups: dict[str, list[Event]] = defaultdict(list)
    for event in (*starts, *facts.select("initializer", "layer", "model")):
        programs = project.list_programs(event.scope)
        reaches = [project.list_reach(each) for each in programs]
        trains = any(reach & training for reach in reaches)
        missing = [each for each in programs if not seeding.seeds_keras(each, event)]
        if event.of == TENSORFLOW and not any(reach & layered for reach in reaches):
            # A graph's own variables, which need no seed of Python.
            missing = [each for each in missing if TENSORFLOW not in seeding.list_seeded(each)]
        if (event.kind == "layer" and not trains) or not missing:
            continue
        if all(TENSORFLOW in seeding.list_seeded(each) for each in missing):
            groups["partial"].append(event)
        elif event.kind != "model" or not trains:
            groups[event.kind].append(event)
    files = {each.file for each in groups["train"]}
    beside = [each for each in groups["layer"] if each.file in files]
    apart = [each for each in groups["layer"] if each.file not in files]
    fix = SEEDS[KERAS]
    message = "a model is trained here{more}, but nothing seeds its weights"
    yield from join(project, "ENV202", groups["train"] + beside, message, fix, first="train")
    message = "a Keras model is made here{more}, and nothing seeds its weights"
    yield from join(project, "ENV202", groups["model"], message, fix, part=UNSURE)
    message = "{name} draws numbers{more}, and nothing seeds Keras"
    yield from join(project, "ENV202", apart + groups["initializer"], message, fix)
    message = "TensorFlow is seeded, and Python's random module, from which Keras takes the seeds of its weights, is not{more}"
    yield from join(project, "ENV201", groups["partial"], message, fix, first="train")


def _list_files(events: Iterable[Event]) -> set[int]:
    return {each.file.index for each in events}


def needs_python(tensorflow: str) -> bool:
    """Return whether Keras takes the seeds of its weights from Python's random module."""
    # Measured: the row keras-seeds-from-python-random in determinism_sources.toml.
    return tuple(int(each) for each in tensorflow.split(".")[:2]) >= (2, 10)
