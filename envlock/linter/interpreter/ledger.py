"""What was seen while programs ran: chances, whether they reach anything that counts, and findings."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field

from envlock.linter.interpreter.source_files import Source
from envlock.linter.interpreter.values import Chance, Kind, Made, Taints
from envlock.linter.module import Hit


@dataclass
class Seeding:
    """A call that seeds.

    Attributes:
        gives: whether some caller gives it a number.
        problem: what was said of a caller that does not.
        generators: what it seeds.
    """

    gives: bool = False
    problem: str = ""
    generators: tuple[str, ...] = ()


@dataclass
class Ledger:
    """What was seen, by the place in the text.

    Attributes:
        chances: by rule and place.
        met_by: the programs that have met a chance, by its place.
        counted: those that reach something: a training, a file, a caller that is not seen.
        shown: those that are shown, or only name something.
        in_weights: those that only give variables their first values.
        weighed: those of them that a training, or a caller that is not seen, goes on from.
        hits: findings that do not depend on what comes later.
        seedings: the calls that seed, by place.
        noisy: operations that are noisy, by place; with whether only their gradients are.
        salted: sets that are seen to hold texts or objects, and so have another order in each process.
        reduced: hashes of which a number in a range was made.
        seeded_later: generators that are seeded after they are made, or never used.
        compiled: where Keras models are compiled before anything is seeded, with the file.
        silent: above 0 while code runs of which nothing is reported.
        environments: of reinforcement learning, that were made, by place: each with its file, and
            whether a function made it that no program calls.
    """

    chances: dict[tuple[str, ast.AST], Chance] = field(default_factory=dict)
    met_by: defaultdict[ast.AST, set[Source]] = field(default_factory=lambda: defaultdict(set))
    counted: set[Chance] = field(default_factory=set)
    shown: set[Chance] = field(default_factory=set)
    in_weights: set[Chance] = field(default_factory=set)
    weighed: set[Chance] = field(default_factory=set)
    hits: dict[tuple[str, ast.AST, str], tuple[Source, Hit]] = field(default_factory=dict)
    seedings: dict[ast.AST, tuple[Source, Seeding]] = field(default_factory=dict)
    noisy: dict[ast.AST, tuple[Source, Hit, bool]] = field(default_factory=dict)
    salted: set[Chance] = field(default_factory=set)
    reduced: set[Chance] = field(default_factory=set)
    seeded_later: set[ast.AST] = field(default_factory=set)
    compiled: dict[ast.AST, Source] = field(default_factory=dict)
    silent: int = 0
    environments: dict[ast.AST, list[tuple[Source, Made, bool]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add_chance(
        self, rule: str, kind: Kind, name: str, node: ast.AST, source: Source, generator: str = ""
    ) -> Chance:
        """Return the chance that comes in at a place."""
        key = rule, node
        if key not in self.chances:
            self.chances[key] = Chance(rule, kind, name, node, source, generator)
        return self.chances[key]

    def count(self, taints: Taints) -> None:
        """Note that chances have reached something that counts; one of several is as good as
        another.
        """
        if taints and not self.silent:
            # In whatever order they come, all of them come: `each` alone harms nothing.
            self.counted.update(chance for chance, mode in taints if mode != "each")

    def show(self, taints: Taints) -> None:
        """Note that chances are shown."""
        self.shown.update(chance for chance, _ in taints)

    def report(self, rule: str, source: Source, hit: Hit) -> None:
        """Keep a finding, once for each place."""
        if not self.silent:
            self.hits.setdefault((rule, hit.node, ""), (source, hit))

    def add_seeding(
        self, node: ast.AST, source: Source, problem: str, generators: tuple[str, ...] = ()
    ) -> None:
        """Note that a call seeds (no problem), or why it does not; one caller that gives a number
        is enough.
        """
        _, seeding = self.seedings.setdefault(node, (source, Seeding(generators=generators)))
        seeding.gives = seeding.gives or not problem
        seeding.problem = seeding.problem or problem

    def weigh(self, taints: Taints, counts: bool) -> None:
        """Note that chances give variables their first values; they count where something learns
        from there.
        """
        self.in_weights.update(chance for chance, _ in taints)
        if counts:
            self.weighed.update(chance for chance, _ in taints)
