"""What is reported of what was seen: which chances reach something, each file's first draw, what
belongs to data.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator

from envlock.linter.interpreter.chances import DEFAULT_OFF, OPTIONAL
from envlock.linter.interpreter.programs import Programs
from envlock.linter.interpreter.source_files import Source, describe_more
from envlock.linter.interpreter.values import Chance
from envlock.linter.module import UNSURE, Hit
from envlock.linter.names import DATA, NUMPY_OWN, NUMPY_RESEEDERS, OWN_GENERATORS

WRITERS = ("write", "writelines", "writerow", "dump", "to_csv", "savetxt")
"""Methods with which a file that imports none of them writes data for others."""
BUILDERS = frozenset({"setuptools", "distutils"})
ONCE = frozenset({"ENV108", "ENV201", "ENV202"})
"""Rules that are reported once for each file."""
OWN = frozenset(
    {*NUMPY_OWN, *NUMPY_RESEEDERS, *OWN_GENERATORS, "random.Random", "random.SystemRandom"}
)
SALTED_NUMBERS = {
    "hash()": "hash() of a string, which differs from process to process",
    "id()": "id(), an address in memory, which differs from process to process",
}
SALTED = ", which differs from process to process for strings and for objects hashed by address"
SEEDS = {
    "ENV204": "tf.keras.utils.set_random_seed(seed), or tf.random.set_seed(seed),",
    "ENV205": "np.random.seed(seed), or tf.keras.utils.set_random_seed(seed),",
    "ENV206": "random.seed(seed), or tf.keras.utils.set_random_seed(seed),",
}
"""What seeds the global generator that a rule is about."""
GLOBALS = {
    "ENV204": "TensorFlow's generator",
    "ENV205": "numpy's global generator",
    "ENV206": "Python's global generator",
}
Found = tuple[Source, str, Hit]


class Findings:
    """The findings of all programs of a project."""

    def __init__(self, programs: Programs, find_part: Callable[[Source, ast.AST], str]) -> None:
        self.programs = programs
        self.find_part = find_part
        self.ledger = programs.ledger
        self.has_data = any(DATA & source.packages for source in programs.sources.all)

    def __iter__(self) -> Iterator[Found]:
        yield from self.find_direct()
        yield from self.find_draws()
        yield from self.find_seeds()
        yield from self.find_environments()
        yield from self.find_compiled()
        for chance in self.ledger.chances.values():
            if chance.kind != "draw" and chance in self.ledger.counted:
                yield from self.find_order(chance)
        for source, hit, trained in self.ledger.noisy.values():
            if not trained or self.learns(source):
                yield source, "ENV401", hit

    def find_direct(self) -> Iterator[Found]:
        """Yield what was reported while programs ran."""
        first: dict[tuple[str, Source, str], Hit] = {}
        for (rule, _, _), (source, hit) in self.ledger.hits.items():
            if rule not in ONCE:
                yield source, rule, hit
                continue
            # One that nothing calls does not stand for one that a program runs.
            place = rule, source, self.find_part(source, hit.node)
            known = first.get(place)
            if known is None or _get_line(hit.node) < _get_line(known.node):
                first[place] = hit
        for (rule, source, _), hit in first.items():
            yield source, rule, hit

    def find_draws(self) -> Iterator[Found]:
        """Yield draws that nothing seeds: the first of each part of a file from each generator, and
        generators of one's own.
        """
        by_file: dict[tuple[str, Source, str], list[Chance]] = defaultdict(list)
        for chance in self.ledger.chances.values():
            if chance.kind != "draw" or not self.matters(chance):
                continue
            if chance.name in OWN:
                if chance.node not in self.ledger.seeded_later:
                    yield from self.filter_tools(chance.source, chance.rule, _make_own_hit(chance))
            else:
                part = self.find_part(chance.source, chance.node)
                by_file[chance.rule, chance.source, part].append(chance)
        for (rule, source, _), chances in by_file.items():
            chances.sort(
                key=lambda each: (_get_line(each.node), getattr(each.node, "col_offset", 0))
            )
            first = chances[0]
            more = describe_more(source, [each.node for each in chances])
            message = f"{first.name} draws from {GLOBALS[rule]}{more}, which nothing seeds"
            hit = Hit(first.node, message, fix=f"Call {SEEDS[rule]} before the first of them.")
            if rule == "ENV206":
                yield from self.filter_tools(source, rule, hit)
            else:
                yield source, rule, hit

    def matters(self, chance: Chance) -> bool:
        """Return whether what was drawn reaches something, or nothing is known of where it goes."""
        # In this order: a draw that is printed and also trains counts, wherever else it went.
        if chance in self.ledger.counted:
            return True
        if chance in self.ledger.in_weights:
            return chance in self.ledger.weighed or self.is_learnt(chance)
        return chance not in self.ledger.shown

    def is_learnt(self, chance: Chance) -> bool:
        """Return whether a training goes on from first values that were drawn so."""
        met_by = self.ledger.met_by.get(chance.node, set())
        if not met_by or chance.source in met_by:
            return self.learns(chance.source)
        # Programs that have met it may only read weights from a file, where those that train have
        # seeded it.
        for program in self.list_training(chance.source):
            is_seeded = chance.generator in self.programs.ends[program].seeded
            if program in met_by or not is_seeded:
                return True
        return False

    def learns(self, source: Source) -> bool:
        """Return whether a file trains, or a program that it is part of does."""
        return source in self.programs.trains or bool(self.list_training(source))

    def list_training(self, source: Source) -> list[Source]:
        """Return the programs that train and that a file is part of."""
        reached = self.programs.reached
        return [each for each in self.programs.trained_in if source.index in reached.get(each, ())]

    def find_seeds(self) -> Iterator[Found]:
        """Yield calls that seed by chance, or not at all because no seed is given."""
        for node, (source, seeding) in self.ledger.seedings.items():
            # An option that is off harms only where something draws without it.
            by_default = seeding.problem in (DEFAULT_OFF, OPTIONAL) and seeding.generators
            if by_default and not self.is_drawn_from(seeding.generators, source):
                continue
            if not seeding.gives and seeding.problem:
                yield source, "ENV207", Hit(node, seeding.problem)

    def is_drawn_from(self, generators: tuple[str, ...], source: Source) -> bool:
        """Return whether the programs of a file draw from a generator before it is seeded.

        Datasets do so from TensorFlow's, and Keras from Python's, without a call that draws.
        """
        if "tf" in generators or (self.programs.built and "python" in generators):
            return True
        together = {source.index}
        for files in self.programs.reached.values():
            if source.index in files:
                together |= files
        return any(
            chance.generator in generators and chance.source.index in together
            for chance in self.ledger.chances.values()
        )

    def find_compiled(self) -> Iterator[Found]:
        """Yield a Keras model that is compiled, where nothing in the project trains: another package,
        or a caller, trains it then.
        """
        if self.programs.trains:
            return
        first: dict[Source, ast.AST] = {}
        for node, source in self.ledger.compiled.items():
            if not _reads_weights(source, node):
                first.setdefault(source, node)
        for source, node in first.items():
            message = "a Keras model is compiled here to be trained, but nothing seeds its weights"
            yield source, "ENV202", Hit(node, message)

    def find_environments(self) -> Iterator[Found]:
        """Yield environments that nothing seeds, those of a file as one."""
        by_file: dict[Source, list[tuple[str, ast.AST]]] = {}
        for node, made in self.ledger.environments.items():
            source, environment, in_entry = made[0]
            # What programs make tells more than what a function makes that no program calls.
            judged = [each for _, each, inside in made if not inside]
            if not judged:
                judged = [each for _, each, _ in made]
            # One program that does not seed it is enough. Functions that no program calls have
            # callers that are not seen: there one call that seeds is enough to be quiet.
            unseeded = any("left unseeded" in each.marks for each in judged)
            if in_entry:
                unseeded = all("seeded" not in each.marks for each in judged)
            if unseeded:
                by_file.setdefault(source, []).append((environment.name, node))
        for source, found in by_file.items():
            name, first = found[0]
            more = describe_more(source, [node for _, node in found])
            message = f"{name} makes an environment{more}, which nothing seeds"
            yield source, "ENV209", Hit(first, message)

    def find_order(self, chance: Chance) -> Iterator[Found]:
        """Yield an order by chance that reaches data."""
        if chance.rule == "ENV210":
            text = f"{chance.name} holds what was in memory, and nothing fills it before it is used"
            yield chance.source, chance.rule, Hit(chance.node, text)
        elif chance.rule == "ENV305":
            text = SALTED_NUMBERS[chance.name]
            if chance.kind == "order":
                yield chance.source, chance.rule, Hit(chance.node, f"this sorts by {text}")
            elif chance in self.ledger.reduced:  # its seed is ENV207
                yield chance.source, chance.rule, Hit(chance.node, text)
        else:
            yield from self.find_data_order(chance)

    def find_data_order(self, chance: Chance) -> Iterator[Found]:
        """Yield an order by chance where data has it."""
        message = {
            "ENV308": "nothing in this query says in which order its rows come",
            "ENV303": f"{chance.name} lists files in the order of the file system",
            "ENV304": f"a set is iterated over{SALTED}",
            "ENV307": f"{chance.name} gives results in the order in which workers finish",
        }.get(chance.rule)
        if chance.name == "time":
            message = "files are sorted by their time, which a copy of them has not"
        if chance.name == "threads":
            message = "several threads add to this, in the order in which they come to it"
        if chance.name == "queue":
            message = "several workers fill this queue, in the order in which they finish"
        if chance.rule == "ENV304" and isinstance(chance.node, ast.Call):
            message = f"a set is turned into a sequence{SALTED}"
        part = ""
        if chance.rule == "ENV304" and chance not in self.ledger.salted:
            part = UNSURE
        if message is not None:
            hit = Hit(chance.node, message, part=part)
            yield from self.filter_by_data(chance.source, chance.rule, hit)

    def filter_by_data(self, source: Source, rule: str, hit: Hit) -> Iterator[Found]:
        """Yield a finding where data is handled: by the file, by its programs, or by a project for
        which it writes.

        An order by chance elsewhere, as in a script that renames files, changes no result.
        """
        if DATA & source.packages:
            yield source, rule, hit
            return
        if not BUILDERS.isdisjoint(source.packages):  # the files of a package, listed by setup.py
            return
        if self.handles_data(source) or (self.has_data and _writes(source)):
            yield source, rule, hit

    def filter_tools(self, source: Source, rule: str, hit: Hit) -> Iterator[Found]:
        """Yield a finding less where it is a tool's: a file without data that writes none, in a
        project that has some.
        """
        tool = not (DATA & source.packages or _writes(source))
        # In a project without any data, such as a game, a draw is all that there is to find.
        if not tool or self.handles_data(source) or not self.has_data:
            yield source, rule, hit

    def handles_data(self, source: Source) -> bool:
        """Return whether a program that a file is part of handles data."""
        together: set[int] = set()
        for files in self.programs.reached.values():
            if source.index in files:
                together |= files
        every = self.programs.sources.all
        return any(DATA & every[index].packages for index in together)


def _make_own_hit(chance: Chance) -> Hit:
    if chance.name == "random.SystemRandom":
        return Hit(
            chance.node, "random.SystemRandom cannot be seeded", fix="Use random.Random(seed)."
        )
    if chance.name in NUMPY_RESEEDERS:
        message = "read_data_sets without a seed shuffles by numpy's generator, which the system then seeds"
        return Hit(chance.node, message)
    name = f"{chance.name}()" if chance.name == "random.Random" else chance.name
    message = f"{name} without a seed takes entropy from the operating system"
    fix = "Pass it a seed: the global seeds do not reach it."
    if chance.name in OWN_GENERATORS:
        argument = OWN_GENERATORS[chance.name]
        fix = f"Pass a seed by its argument `{argument}`: the global seeds do not reach it."
    return Hit(chance.node, message, fix=fix)


def _writes(source: Source) -> bool:
    return any(True for _ in source.module.find_methods(WRITERS))


def _get_line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _reads_weights(source: Source, node: ast.AST) -> bool:
    """Return whether the function around a place reads weights from a file, into the model there."""
    around = source.module.find_function_around(node) or source.module.tree
    return any(
        isinstance(each, ast.Attribute) and each.attr == "load_weights" for each in ast.walk(around)
    )
