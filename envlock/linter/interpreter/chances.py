"""Where chance comes in and what seeds: draws, seeds, clocks, listings, samplers, environments."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.run_state import Base
from envlock.linter.interpreter.source_files import Source
from envlock.linter.interpreter.values import (
    Chance,
    Constant,
    Instance,
    Library,
    Made,
    Sequence,
    Value,
    as_mode,
    in_mode,
    options,
)
from envlock.linter.module import Hit, walk
from envlock.linter.names import (
    CLOCKS,
    ENVIRONMENTS,
    NEED_OP_SEED,
    NUMPY_METHODS,
    NUMPY_NOT_DRAWN,
    NUMPY_OWN,
    NUMPY_RESEEDERS,
    NUMPY_USERS,
    OWN_ENTROPY,
    OWN_GENERATORS,
    PICKS,
    PYTHON_DRAWS,
    RANDOM_OPS,
    RANDOM_WEIGHTS,
    SAMPLERS,
    SEEDS,
)

SHUFFLES = {
    "list_files": 1,
    "string_input_producer": 2,
    "slice_input_producer": 2,
    "range_input_producer": 2,
    "make_csv_dataset": 11,
    "make_batched_features_dataset": 7,
    "numpy_input_fn": 4,
    "pandas_input_fn": 4,
    "read_batch_examples": 3,
    "read_batch_features": 4,
    "read_batch_record_features": 3,
}
"""What shuffles by default, and the position of the argument that decides."""
SHUFFLED_RECORDS = ("make_csv_dataset", "make_batched_features_dataset")
SHUFFLING_IF_TOLD = ("KFold", "timeseries_dataset_from_array")
# A seed with one of these two problems is reported only where something draws without it:
# `Findings.find_seeds`.
DEFAULT_OFF = "this runs only where it is asked for: by default nothing is seeded"
OPTIONAL = "the seed has no value unless one is given: by default nothing is seeded"
OWN_SEEDED = {
    "tf.random.Generator.from_seed": 0,
    "jax.random.PRNGKey": 0,
    "jax.random.key": 0,
    "random.Random": 0,
    "keras.random.SeedGenerator": 0,
}


class Chances(Base):
    """What brings chance into a program, and what takes it out."""

    # ------------------------------------------------------------ seeds

    def seed(self, name: str, call: Call) -> Value:
        """Let a call seed the generators that it is for, or say why it does not."""
        given = call.get("seed", 0)
        problem = self.find_seed_problem(given, call)
        if name == "envlock.activate":
            self.state.switched = True
            # Without a seed it only switches; the others seed by chance then.
            if given is None:
                return Value()
        if self.off and not problem:
            # `if args.seed: seed(args.seed)`: what the branch itself draws is seeded. `run_both`
            # takes the seed back when it ends.
            self.mark_seeded(name, call)
            # In a function that the branch calls, such as `train`, seeding is not what it is for.
            if self.off[-1] != len(self.frames):
                return Value()
            problem = DEFAULT_OFF
        else:
            problem = self.find_missing_seed(name, call, given) or problem
        self.note_seed(call, given, problem, SEEDS[name])
        if not problem:
            self.mark_seeded(name, call)
        elif not self.off:
            # `seed(None)` takes back what an earlier call has seeded: ENV205/bad_taken_back.py.
            for generator in SEEDS[name]:
                self.state.seeded.pop(generator, None)
        return Value()

    def mark_seeded(self, name: str, call: Call) -> None:
        """Note that a call has seeded the generators that it is for."""
        for generator in SEEDS[name]:
            self.state.seeded[generator] = call.node, self.source

    def find_missing_seed(self, name: str, call: Call, given: Value | None) -> str:
        """Return why a call seeds from the operating system; empty if it has a number."""
        if given is None and not call.starred:
            return f"{name}() without a number seeds from the operating system"
        # A None that was passed on is the caller's: the problem is OPTIONAL, if there is one.
        if isinstance(given, Constant) and given.value is None and not given.passed:
            return f"{name}(None) seeds from the operating system"
        return ""

    def note_seed(
        self, call: Call, given: Value | None, problem: str, generators: tuple[str, ...] = ()
    ) -> None:
        """Keep what is wrong with a seed, at the place that decides."""
        place, source = call.node, self.source
        made: list[Chance] = []
        if given is not None:
            made = [chance for chance, _ in given.taints if chance.kind == "clock"]
        # `seed(config.seed)` does what it says; the line that puts the time into it decides.
        if len(made) == 1 and problem and self.is_elsewhere(made[0]):
            place, source = made[0].node, made[0].source
        self.ledger.add_seeding(place, source, problem, generators)

    def is_elsewhere(self, chance: Chance) -> bool:
        """Return whether a chance comes from a function further out than the one that runs."""
        return chance in self.frames[-1].handed

    def find_seed_problem(self, given: Value | None, call: Call) -> str:
        """Return why a value is not a seed that can be repeated, or an empty text."""
        if given is None:
            return ""
        # In the order of names, so that the message is the same in every run.
        for chance, mode in sorted(given.taints, key=lambda each: each[0].name):
            if mode in ("value", "place", "pick") and chance.kind == "clock":
                self.ledger.counted.add(chance)
                return f"the seed comes from {chance.name}, and differs from run to run"
            if chance.kind == "draw":
                self.ledger.counted.add(chance)
                return "the seed is itself drawn, by what nothing seeds"
        if any(self.is_none(each) for each in options(given)):
            return OPTIONAL
        return ""

    def is_none(self, value: Value) -> bool:
        """Return whether a value is None unless it is given."""
        return value.default is None

    def is_seeded(self, call: Call, name: str = "seed", position: int | None = None) -> bool:
        """Return whether a call has a seed of its own; one by chance is reported, and is one, too."""
        given = call.get(name, position)
        if given is None:
            return call.starred
        problem = self.find_seed_problem(given, call)
        if problem and problem != OPTIONAL:
            # The seed is reported: that the call has none would be a second finding of one cause.
            self.note_seed(call, given, problem)
            return True
        return not problem

    # ------------------------------------------------------------ draws

    def draw(self, rule: str, name: str, call: Call, generator: str, *, own: bool = False) -> Value:
        """Return a random number; chance is in it where nothing seeds its generator."""
        kind = "op" if generator == "tf" else "python"
        self.do(kind, name, call.node, carried=self.is_carried(call))
        result = Value(kind="number")
        if own or generator in self.state.seeded:
            return result
        if self.dead or self.is_seeded_by_programs(generator):
            return result
        # What a program draws by default, unseeded, its files' functions may draw unseeded as well.
        if self.program is not None and not self.in_entry and not self.off:
            self.drawn_by[self.program].add(generator)
        chance = self.add_chance(rule, "draw", name, call.node, generator)
        return result.add_taints(frozenset({(chance, "value")}))

    def is_seeded_by_programs(self, generator: str) -> bool:
        """Return whether code draws for a test alone: all programs that use it seed the generator."""
        raise NotImplementedError

    def is_carried(self, call: Call) -> bool:
        """Return whether what is drawn hangs on what the round before of a loop of TensorFlow
        computed.
        """
        return any(
            chance.rule == "CARRIED" for chance, _ in self.collect_all_taints(call.list_values())
        )

    def draw_of_numpy(self, name: str, call: Call) -> Value:
        """Return what a function of numpy.random draws."""
        word = name.rpartition(".")[2]
        drawn = self.draw("ENV205", name, call, "numpy")
        return self.draw_from(word, drawn, call)

    def draw_of_python(self, name: str, call: Call) -> Value:
        """Return what a function of random draws."""
        word = name.rpartition(".")[2]
        drawn = self.draw("ENV206", name, call, "python")
        # It mostly names a run or a file, which differs without harm: ENV206/good_identity.py.
        if word == "getrandbits":
            self.ledger.show(drawn.taints)
            return Value(as_mode(drawn.taints, "each"), "number")
        # `choice(string.ascii_letters)` makes a name as well: ENV206/good_text.py.
        if isinstance(call.get_first(), Library):
            self.ledger.show(drawn.taints)
            return Value(kind="text")
        return self.draw_from(word, drawn, call)

    def draw_from(self, word: str, drawn: Value, call: Call) -> Value:
        """Return some of what a draw is from; a shuffle changes the order of what it is given."""
        given = call.get_first()
        if word == "shuffle":
            order = as_mode(drawn.taints, "order")
            # Whether it counts is decided where the list is used: what is sorted again, or nothing
            # reads, must not count as a draw of which nothing is known: ENV206/good_shuffle.py.
            self.ledger.show(order)
            for each in options(given):
                each.taints |= order
            self.forget_items(given)
            return Constant(None)
        # `permutation(10)` and `choice(10)` pick from nothing but numbers.
        is_pick = word in PICKS and not word.startswith("rand")
        if not is_pick or not call.arguments or given.kind == "number":
            return drawn
        each = self.get_element(given)
        literal = isinstance(given, Sequence) and given.items is not None
        if word == "permutation":
            mixed = Value(drawn.taints, kind="number")
            return mixed.add_taints(self.collect_taints(given))
        taken = as_mode(in_mode(given.taints, "order"), "value")
        # One of known texts or objects is taken: it counts only where the thing itself does, and
        # may be shown. Of numbers, and of `choice([0.1, 0.2])` in the call itself, it is a number.
        if each.kind != "number" and not literal and not isinstance(given, Made):
            drawn = Value(as_mode(drawn.taints, "pick"))
        self.ledger.count(taken)
        return self.copy_value(each).add_taints(drawn.taints | taken)

    def forget_items(self, value: Value) -> None:
        """Forget the places of a container's elements."""
        if isinstance(value, Sequence):
            value.items = None

    def draw_of_tensorflow(self, name: str, call: Call) -> Value:
        """Return what a random operation of TensorFlow draws."""
        if name in NEED_OP_SEED:
            seed = call.get("seed", NEED_OP_SEED[name])
            # To these operations 0 means no seed.
            if not call.starred and (seed is None or seed.default in (None, 0)):
                hit = Hit(
                    call.node,
                    f"{name} ignores the global seed",
                    fix="Pass it a seed that is not 0.",
                )
                self.ledger.report("ENV208", self.source, hit)
            self.do("op", name, call.node)
            return Value(kind="tensor")
        drawn = self.draw(
            "ENV204",
            name,
            call,
            "tf",
            own=call.starred or self.is_seeded(call),
        )
        taints = drawn.taints | self.collect_all_taints(call.arguments)
        return Value(taints, "tensor")

    def draw_weights(self, name: str, call: Call) -> Value:
        """Return what has weights whose first values TensorFlow draws, unless an initializer gives
        them.
        """
        given = any("initializer" in word for word in call.keywords)
        mark = "layer"
        if name == "tf.get_variable":
            mark = "variable"
            # Without a shape it returns a variable that exists.
            given = given or call.get("initializer", 3) is not None or call.get("shape", 1) is None
        result = self.make(name, call.node, mark)
        result.keywords = call.keywords
        result.add_taints(self.collect_all_taints(call.list_values()))
        if given or call.starred or self.is_seeded(call):
            return result
        drawn = self.draw("ENV204", name, call, "tf")
        # First values count where something is trained. In a function that no program calls, its
        # caller may train.
        self.ledger.weigh(drawn.taints, self.in_entry)
        return result

    def make_generator(self, name: str, call: Call) -> Value:
        """Return a generator of NumPy or Python of one's own."""
        rule = "ENV206" if name == "random.Random" else "ENV205"
        made = self.make(name, call.node, "generator")
        seed = call.get("seed", 0) or call.get("entropy")
        made.arguments = call.arguments
        if seed is not None and not self.is_written_none(seed):
            problem = self.find_seed_problem(seed, call)
            # A parameter with None is what users of such generators expect: a caller who omits it
            # gets a finding.
            if not problem or problem != OPTIONAL or isinstance(seed, Constant):
                self.note_seed(call, seed, problem)
        elif not call.starred:
            chance = self.add_chance(rule, "draw", name, call.node)
            made.marks.add("unseeded")
            made.add_taints(frozenset({(chance, "value")}))
        return made

    def note_unused(self, target: ast.expr, value: Made) -> None:
        """Note a generator that a function makes and never uses."""
        function = self.frames[-1].node
        if "unseeded" not in value.marks:
            return
        if not isinstance(target, ast.Name) or not isinstance(function, ast.FunctionDef):
            return
        for each in walk(function):
            if not isinstance(each, ast.Name) or each.id != target.id:
                continue
            if isinstance(each.ctx, ast.Load):
                return
        self.ledger.seeded_later.add(value.node)

    def is_written_none(self, value: Value) -> bool:
        """Return whether a value is a None that the program itself gives, and no caller or setting."""
        if not isinstance(value, Constant) or value.value is not None:
            return False
        return not value.optional and not value.passed

    def use_numpy(self, name: str, call: Call) -> Value:
        """Return what a function does that draws from NumPy's generator unless it is given a state."""
        given = call.get_constant("shuffle")
        # Where it is the default, a value that is not known may shuffle; `False` alone does not.
        shuffles = given is True if name.endswith(SHUFFLING_IF_TOLD) else given is not False
        made_name = name
        if "dataset" in name:  # `timeseries_dataset_from_array`
            made_name = "tf.data.Dataset"
        result: Value = self.make(made_name, call.node)
        result.add_taints(self.collect_all_taints(call.arguments))
        if shuffles and not self.is_seeded(call, NUMPY_USERS[name]):
            drawn = self.draw("ENV205", name, call, "numpy")
            result = result.add_taints(drawn.taints)
        return result

    def sample_any(self, owner: Value, name: str, call: Call) -> Value | None:
        """Sample a distribution of TensorFlow or SciPy, or the rows of a table."""
        if isinstance(owner, Made) and "distribution" in owner.marks:
            drawn = self.draw("ENV204", "sample", call, "tf", own=self.is_seeded(call))
            return Value(drawn.taints, "tensor")
        words = set(call.keywords)
        if _takes_all_rows(call.node):
            words.add("n")
        of_pandas = "pandas" in self.source.packages and not words.isdisjoint(NUMPY_METHODS[name])
        of_scipy = "scipy" in self.source.packages and not NUMPY_METHODS[name]
        if not (of_pandas or of_scipy) or isinstance(owner, Instance):
            return None
        if self.is_seeded(call, "random_state"):
            return None
        drawn = self.draw("ENV205", name, call, "numpy")
        return Value(drawn.taints | self.collect_taints(owner))

    def use_own_generator(self, name: str, call: Call) -> Value:
        """Return what a function computes that seeds itself from the system by default."""
        made = self.make(name, call.node).add_taints(self.collect_all_taints(call.arguments))
        argument = OWN_GENERATORS[name]
        # A sampler or generator that nothing seeds is a finding of its own, where it is made.
        if isinstance(call.get(argument), Made) or self.is_seeded(call, argument):
            return made
        chance = self.add_chance("ENV205", "draw", name, call.node)
        return made.add_taints(frozenset({(chance, "value")}))

    def read_mnist(self, name: str, call: Call) -> Value:
        """Return the batches of TensorFlow 1's MNIST, which shuffle by NumPy's generator after
        seeding it.
        """
        made = self.make(name, call.node, "mnist")
        # Without a seed of its own it takes that of TensorFlow's graph:
        # tensorflow/contrib/learn/python/learn/datasets/mnist.py of TensorFlow 1.
        seeded = "numpy" in self.state.seeded or "tf" in self.state.seeded
        if not seeded and not self.is_seeded(call, NUMPY_RESEEDERS[name]):
            chance = self.add_chance("ENV205", "draw", name, call.node)
            self.ledger.show(frozenset({(chance, "value")}))  # it counts where batches are taken
            made.add_taints(frozenset({(chance, "value")}))
        return made

    # ------------------------------------------------------------ datasets

    def sample(self, name: str, call: Call) -> Value:
        """Return a dataset or a queue that is made by chance."""
        made = self.make("tf.data.Dataset", call.node)
        at = SHUFFLES.get(name.rpartition(".")[2])
        switch = "shuffle"
        if name.rpartition(".")[2].startswith("read_batch"):
            switch = "randomize_input"
        told = call.get_constant(switch, at)
        if name.endswith("list_files"):
            # It sorts what its pattern matches: ENV303/good_list_files.py.
            made.taints = frozenset()
        else:
            made.add_taints(self.collect_all_taints(call.arguments))
        files = call.get_first()
        # A queue of one file has one order: ENV203/good_one_file.py.
        is_one = isinstance(files, Sequence) and files.items is not None and len(files.items) == 1
        ordered = told is False or (is_one and name.endswith("string_input_producer"))
        word = "shuffle_seed" if name.endswith(SHUFFLED_RECORDS) else "seed"
        if ordered or self.is_seeded(call, word, SAMPLERS[name]):
            return made
        message = f"{name} shuffles by default, and nothing seeds it"
        if name.rpartition(".")[2] not in SHUFFLES:
            message = f"{name} without a seed"
        self.leave_unseeded(call.node, self.source, message)
        return made

    def leave_unseeded(self, node: ast.AST, source: Source, message: str) -> None:
        """Report a dataset that nothing seeds."""
        self.do("op", message, node)
        if "tf" not in self.state.seeded and not self.dead:
            self.ledger.report("ENV203", source, Hit(node, message))

    # ------------------------------------------------------------ other entropy

    def take_entropy(self, name: str, call: Call) -> Value:
        """Return a generator that takes entropy from the system, unless the program has set it."""
        made = self.make(name, call.node, "generator")
        if name == "tf.random.get_global_generator" and "generator" in self.state.seeded:
            return made
        message = f"{name} takes entropy from the operating system, whatever the seeds are"
        self.ledger.report("ENV208", self.source, Hit(call.node, message, fix=OWN_ENTROPY[name]))
        return made

    def set_generator(self, name: str, call: Call) -> Value:
        """Set TensorFlow's global generator; None takes it away."""
        if self.is_none(call.get_first()):
            self.state.seeded.pop("generator", None)
        else:
            self.state.seeded["generator"] = call.node, self.source
        return Value()

    def read_clock(self, name: str, call: Call) -> Value:
        """Return what is another value in every run."""
        chance = self.add_chance("ENV207", "clock", name, call.node)
        return Value(frozenset({(chance, "value")}))

    def make_environment(self, name: str, call: Call) -> Value:
        """Return an environment for reinforcement learning."""
        made = self.make(name, call.node, "environment")
        # https://github.com/google-deepmind/dm_control/blob/main/dm_control/suite/__init__.py: `task_kwargs` has
        # the seed, as `random`.
        if name == "dm_control.suite.load" and call.get("task_kwargs", 2) is not None:
            return made
        self.ledger.environments[call.node].append((self.source, made, self.in_entry))
        return made


def _takes_all_rows(node: ast.AST) -> bool:
    """Return whether a table is asked for as many rows as it has: `table.sample(len(table))`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return [ast.unparse(each) for each in node.args] == [f"len({ast.unparse(node.func.value)})"]


Row = Callable[[Chances, str, Call], Value]


def _list_rows() -> dict[str, Row]:
    """Return for each name of the tables what is done for it; later rows win."""
    found: dict[str, Row] = {}
    found.update(dict.fromkeys(PYTHON_DRAWS, Chances.draw_of_python))
    found.update(dict.fromkeys(RANDOM_OPS, Chances.draw_of_tensorflow))
    found.update(dict.fromkeys(NEED_OP_SEED, Chances.draw_of_tensorflow))
    found.update(dict.fromkeys(RANDOM_WEIGHTS, Chances.draw_weights))
    found["tf.get_variable"] = Chances.draw_weights
    found.update(dict.fromkeys(NUMPY_OWN, Chances.make_generator))
    found.update(dict.fromkeys(("random.Random", *OWN_SEEDED), Chances.make_generator))
    found.update(dict.fromkeys(NUMPY_USERS, Chances.use_numpy))
    found.update(dict.fromkeys(OWN_GENERATORS, Chances.use_own_generator))
    found.update(dict.fromkeys(NUMPY_RESEEDERS, Chances.read_mnist))
    found.update(dict.fromkeys(SAMPLERS, Chances.sample))
    found.update(dict.fromkeys(OWN_ENTROPY, Chances.take_entropy))
    found["tf.random.set_global_generator"] = Chances.set_generator
    found.update(dict.fromkeys(ENVIRONMENTS, Chances.make_environment))
    found.update(dict.fromkeys(CLOCKS, Chances.read_clock))
    found.update(dict.fromkeys(SEEDS, Chances.seed))
    return found


CHANCES = _list_rows()
del CHANCES["random.SystemRandom"]  # no seed is of use to it: `Libraries.make_system_random`


@lru_cache(maxsize=2**14)
def find_chance(name: str) -> Row | None:
    """Return what is done for a name of a library that brings chance in or seeds, or None."""
    if name in CHANCES:
        return CHANCES[name]
    # Most of the fifty functions of numpy.random draw, so that the table holds those that do not.
    # Its classes begin with a capital.
    words = name.split(".")
    if words[:2] != ["numpy", "random"] or len(words) != 3 or words[2] in NUMPY_NOT_DRAWN:
        return None
    if words[2][:1].islower():
        return Chances.draw_of_numpy
    return None
