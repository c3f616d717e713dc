"""The state of a run: which generators are seeded, which loops go around, how far the budget goes."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from envlock.linter.interpreter.ledger import Ledger
from envlock.linter.interpreter.source_files import Source, Sources
from envlock.linter.interpreter.values import (
    CLEAN,
    Chance,
    Class,
    Either,
    Function,
    Instance,
    Kind,
    Made,
    Mode,
    Scope,
    Sequence,
    Table,
    Taints,
    Value,
    as_mode,
    in_mode,
    join_all,
    options,
)

T = TypeVar("T")
DEEP = 8
"""Containers inside containers whose taints are asked for: the annotations of a JSON file lie six deep
(SQuAD's https://rajpurkar.github.io/SQuAD-explorer/), and 12 give the same findings in 142 repositories.
"""
ITEMS = 8
"""Elements of one container that are looked at one by one."""
HOLDERS = frozenset({Sequence, Table, Either, Instance})
DEPTH = 12
"""Calls inside calls that are followed: in Keras 3.15.1 one call in forty lies deeper. With 18, two
of its 226 findings come and four go.
"""

Seed = tuple[ast.AST, Source]
"""The call that seeds a generator, and its file."""


@dataclass(slots=True)
class State:
    """What holds at a point of a path.

    Attributes:
        seeded: the generators that are seeded, each with the call that did it.
        switched: whether op determinism is on.
        weights: whether weights of Keras have been made.
    """

    seeded: dict[str, Seed] = field(default_factory=dict)
    switched: bool = False
    weights: bool = False

    def key(self) -> tuple[object, ...]:
        """Return what tells states apart."""
        return tuple(sorted(self.seeded)), self.switched, self.weights

    def copy(self) -> State:
        """Return the same state."""
        return State(dict(self.seeded), self.switched, self.weights)

    def compute_change(self, before: State) -> State:
        """Return what has been seeded, switched on and made after another state."""
        seeded = list_changes(before.seeded, self.seeded)
        switched = self.switched and not before.switched
        return State(seeded, switched, self.weights and not before.weights)

    def join(self, other: State) -> None:
        """Let the other path have been taken, too.

        What one of the two seeds counts as seeded: programs seed `if args.seed is not None`, and
        are right to.
        """
        self.seeded = {**other.seeded, **self.seeded}
        self.switched = self.switched or other.switched
        self.weights = self.weights or other.weights


def list_changes(before: Mapping[str, T], after: Mapping[str, T]) -> dict[str, T]:
    """Return what has come or changed."""
    return {name: value for name, value in after.items() if before.get(name) is not value}


@dataclass
class Loop:
    """A loop whose elements come in an order by chance.

    Attributes:
        taints: the chances, as `each`.
        began: when.
    """

    taints: Taints
    began: int


@dataclass(frozen=True)
class Worker:
    """A thread or process that runs.

    Attributes:
        rounds: when the loops that started it began.
        is_thread: whether it shares memory.
        fed: the queues that it has put something into.
    """

    rounds: tuple[int, ...]
    is_thread: bool
    fed: list[Value] = field(default_factory=list, compare=False)

    def is_many(self, born: int) -> bool:
        """Return whether a loop that began after something was made has started several of them."""
        return any(began > born for began in self.rounds)


@dataclass(slots=True)
class Frame:
    """A call that runs.

    Attributes:
        node, source, scope: the function, its file and its names.
        returned, yielded: what it has returned and yielded on its paths so far.
        handed: the chances in its arguments: they come from further out.
        ordered: the orders in which it yields.
        wrapped: whether it only yields what a listing gives that its caller asks for.
    """

    node: ast.AST
    source: Source
    scope: Scope
    returned: list[Value] = field(default_factory=list)
    yielded: list[Value] = field(default_factory=list)
    handed: frozenset[Chance] = frozenset()
    ordered: Taints = CLEAN
    wrapped: bool = False


@dataclass(frozen=True)
class Deed:
    """Something stateful that code does: `kind` is op, generator, layer, python, py_function,
    opaque or write.
    """

    kind: str
    name: str
    node: ast.AST
    source: Source
    carried: bool = False


def _list_inside(value: Value, depth: int) -> Iterable[Value]:
    """Return what a value holds of which the taints are asked for."""
    if isinstance(value, Instance):
        # Not of objects inside objects: they hold each other, as a trainer and its model do. Nor
        # of a buffer that its object fills before it is used.
        if depth != DEEP:
            return ()
        return [each for each in value.attributes.values() if not is_buffer(each)]
    if isinstance(value, Sequence):
        # Long lists are tables of numbers; what is put in later has been joined into `element`.
        return [value.element, *(value.items or ())[:ITEMS]]
    if isinstance(value, Table):
        return [each for each in (value.element, value.key) if each is not None]
    return ()


class Base:
    """What every part of the interpreter uses."""

    def __init__(self, sources: Sources, tensorflow: str, budget: int) -> None:
        self.sources = sources
        self.tensorflow = tensorflow
        self.ledger = Ledger()
        self.state = State()
        self.scopes: dict[Source, Scope] = {}
        self.frames: list[Frame] = []
        self.loops: list[Loop] = []
        self.rounds: list[int] = []  # when the loops and comprehensions around began, of any kind
        self.now = (
            0  # a clock that counts what is made: what is older than a loop outlives its rounds
        )
        self.steps = budget  # statements that may still run
        self.widths: dict[Value, int] = {}  # of tensors: how many numbers each row has, at most
        # Enclosing branches that are not taken by default: the depth of their calls.
        self.off: list[int] = []
        self.workers: list[Worker] = []
        self.variables: set[str] = set()  # of the environment, that are turned on anywhere
        self.dead = 0  # branches around that are not taken with what the callers give
        self.unsure = 0  # branches around of which it is not known whether they are taken
        self.deeds: list[list[Deed]] = []  # of the functions around that are looked into
        self.visited: set[ast.AST] = set()  # functions that have run
        self.run_nodes: set[ast.AST] = set()  # without those of branches that do not run
        self.trains: set[Source] = set()
        self.in_entry = False  # whether a function runs that no program calls
        self.program: Source | None = None
        self.trained = False  # whether this program has trained so far
        self.devices: list[Made] = []  # those of `with tf.device(...)` around
        self.drawn_by: defaultdict[Source, set[str]] = defaultdict(set)  # without a seed
        # The seed of each graph of TensorFlow 1 that a program made the default one.
        self.graph_seeds: defaultdict[Source, list[Seed | None]] = defaultdict(list)
        self.drawn_environments: set[ast.AST] = set()
        self.known_flags: dict[Source, dict[str, Value]] = {}
        self.built = False  # whether any program has made weights of Keras
        self.first_dropped: set[ast.AST] = set()  # calls whose first result nothing uses
        self.test_bases: dict[Source, ast.AST] = {}  # files with a test case that seeds
        self.registered: list[Function] = []  # what decorators may call later
        self.owners: dict[ast.AST, Class] = {}  # the class of each method

    def note_visit(self, function: Function) -> None:
        """Note that a program calls a function.

        What only a test calls is not noted, unless it is part of the tests: it runs once more as
        an entry point, with arguments that are not the test's.
        """
        is_of_test = function.scope.source.is_test
        if is_of_test or self.program is None or not self.program.is_test:
            self.visited.add(function.node)
            if not self.dead:
                self.run_nodes.add(function.node)

    @property
    def source(self) -> Source:
        """The file whose code runs."""
        return self.frames[-1].source

    @property
    def scope(self) -> Scope:
        """The names of the code that runs."""
        return self.frames[-1].scope

    def tick(self) -> int:
        """Return a moment that is later than all before."""
        self.now += 1
        return self.now

    def add_chance(
        self, rule: str, kind: Kind, name: str, node: ast.AST, generator: str = ""
    ) -> Chance:
        """Return the chance that comes in at a place of the code that runs."""
        if self.program is not None:
            self.ledger.met_by[node].add(self.program)
        return self.ledger.add_chance(rule, kind, name, node, self.source, generator)

    def is_on_cpu(self) -> bool:
        """Return whether `with tf.device("/cpu:0")` is around, or a file whose sessions have no GPU."""
        if any(frame.source.has_no_gpu for frame in self.frames):
            return True
        if not self.devices or not self.devices[-1].arguments:
            return False
        return "cpu" in str(self.devices[-1].arguments[0].default).lower()

    def do(self, kind: str, name: str, node: ast.AST, *, carried: bool = False) -> None:
        """Note something stateful for every function around that is looked at."""
        for deeds in self.deeds:
            deeds.append(Deed(kind, name, node, self.source, carried))
        for loop in self.loops:
            # A draw in a loop by chance gives each element another number. A layer draws later,
            # when the model runs, and what is opaque may do nothing.
            if kind not in ("opaque", "layer"):
                self.ledger.count(as_mode(loop.taints, "value"))

    def make(self, name: str, node: ast.AST, *marks: str) -> Made:
        """Return a new object of a library."""
        made = Made(name, node, self.source, self.tick())
        made.marks.update(marks)
        if self.is_on_cpu():
            made.marks.add("on CPU")
        return made

    def make_sequence(
        self, items: list[Value] | None, element: Value | None = None, form: str = "list"
    ) -> Sequence:
        """Return a new container."""
        return Sequence(form, items, element, self.tick())

    # ------------------------------------------------------------ taints

    def collect_taints(self, value: Value, depth: int = DEEP) -> Taints:
        """Return the taints of a value and of what it holds."""
        # Most values hold nothing: this is asked for each of them.
        if type(value) not in HOLDERS:
            return value.taints
        if isinstance(value, Either):
            # Theirs, and not those that they had when they were put together: arrays are filled
            # later.
            return frozenset().union(*(self.collect_taints(each, depth) for each in value.options))
        if depth == 1:
            return value.taints
        found = value.taints
        for each in _list_inside(value, depth):
            taints = each.taints
            if type(each) in HOLDERS:
                taints = self.collect_taints(each, depth - 1)
            if taints:
                found |= taints
        return found

    def collect_all_taints(self, values: Iterable[Value]) -> Taints:
        """Return the taints of several values and of what they hold."""
        found = CLEAN
        for value in values:
            taints = value.taints
            if type(value) in HOLDERS:
                taints = self.collect_taints(value)
            if taints:
                found |= taints
        return found

    def collect_array_taints(self, values: Iterable[Value]) -> Taints:
        """Return the taints of an array that is made of containers.

        A list in an order by chance becomes an array in this order: that its elements are each one
        of several adds nothing.
        """
        found = CLEAN
        for value in values:
            inside = self.collect_taints(value)
            if value.taints and in_mode(value.taints, "order"):
                inside = self.forget(inside, "each") | in_mode(value.taints, "each")
            if inside:
                found |= inside
        return found

    def count(self, *values: Value) -> None:
        """Note that values have reached something that counts."""
        taints = self.collect_all_taints(values)
        if taints:
            self.ledger.count(taints)

    def find_loop_orders(self) -> Taints:
        """Return the chances in whose order the loops around run, as `each`."""
        found = CLEAN
        for loop in self.loops:
            found |= loop.taints
        return found

    def find_orders_since(self, born: int) -> Taints:
        """Return the orders of the loops that began after something was made: it outlives their
        rounds.
        """
        found = CLEAN
        for loop in self.loops:
            if loop.began > born:
                found |= loop.taints
        return found

    def get_element(self, value: Value) -> Value:
        """Return what any element of a value can be; in an order by chance it is one of several."""
        each: Value
        if isinstance(value, Either):
            # What is empty on one path has no element there.
            filled = [each for each in value.options if getattr(each, "items", None) != []]
            return join_all(self.get_element(option) for option in filled or value.options)
        if isinstance(value, Sequence):
            each = value.element
        elif isinstance(value, Table):
            each = value.key or Value()
        else:
            kind = value.kind if value.kind in ("number", "tensor") else ""
            each = Value(in_mode(value.taints, "each", "value", "place", "pick"), kind)
        # A word of one of the rows that were shuffled is one of several as the row is.
        ordered = as_mode(in_mode(value.taints, "order"), "each") | in_mode(value.taints, "each")
        if not ordered:
            return each
        return self.mark_one(self.copy_value(each), ordered)

    def mark_one(self, value: Value, taints: Taints) -> Value:
        """Return what is one of several that come in an order by chance."""
        if not taints:
            return value
        if isinstance(value, Either):
            return join_all(self.mark_one(each, taints) for each in value.options)
        if isinstance(value, Instance):  # the same object, seen as one of several
            one = Instance(value.owner, value.born)
            one.attributes, one.read, one.marks = value.attributes, value.read, value.marks
            one.taints = taints
            return one
        return value.add_taints(taints)

    def copy_value(self, value: Value) -> Value:
        """Return a value whose taints can be changed without changing what it was taken from.

        That is so of containers alone: an object of a library stays one object, whoever holds it.
        """
        if isinstance(value, Sequence):
            items = None if value.items is None else [self.copy_value(each) for each in value.items]
            copy = Sequence(value.form, items, self.copy_value(value.element), value.born)
            copy.taints, copy.most = value.taints, value.most
            return copy
        return value

    def combine(self, values: Iterable[Value], kind: str = "") -> Value:
        """Return what is computed from values."""
        taints = self.collect_all_taints(values)
        return Value(taints, kind)

    def forget(self, taints: Taints, *modes: Mode) -> Taints:
        """Return taints without those of some modes."""
        if not taints:
            return CLEAN
        return frozenset([each for each in taints if each[1] not in modes])


def is_buffer(value: Value) -> bool:
    """Return whether a value is an array without initial values, or a list of them."""
    for each in options(value):
        held = each
        if isinstance(each, Sequence):
            held = each.element
        if any(one.kind == "unfilled" for one in options(held)):
            return True
    return False
