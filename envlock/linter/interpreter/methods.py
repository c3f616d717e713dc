"""What methods do: of containers, of datasets, generators, models and other objects of libraries."""

from __future__ import annotations

import ast
from collections.abc import Callable

from envlock.data.specifiers import matches_version
from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.containers import LIST_METHODS, TABLE_METHODS
from envlock.linter.interpreter.run_state import Deed
from envlock.linter.interpreter.trainings import Trainings
from envlock.linter.interpreter.values import (
    CLEAN,
    Class,
    Constant,
    Either,
    Function,
    Instance,
    Library,
    Made,
    Method,
    Partial,
    Sequence,
    Table,
    Taints,
    Value,
    as_mode,
    in_mode,
    join_all,
)
from envlock.linter.module import Hit
from envlock.linter.names import (
    ARRIVAL_METHODS,
    ASKING_METHODS,
    DATASET_METHODS,
    GENERATOR_METHODS,
    KEEPERS,
    LISTING_METHODS,
    NUMPY_METHODS,
    SHOWING_METHODS,
    TRAINING_METHODS,
)

PARALLEL = {"map": 1, "interleave": 3, "map_and_batch": 2, "map_with_legacy_function": 1}
"""Methods that run a function on each element, and the position of `num_parallel_calls`."""
TEXT_METHODS = (
    *("decode", "encode", "format", "join", "lower", "lstrip", "read_text", "readline", "rstrip"),
    *("strip", "title", "upper"),
)
SPLITTING_METHODS = ("readlines", "rsplit", "split", "splitlines")
"""Methods of texts and files that return a list of texts."""
SHUFFLED = "the dataset is shuffled without a seed"
STEPS = ("apply_gradients", "apply", "minimize", "assign", "assign_add", "assign_sub")
SERIAL = "op determinism runs this serially, which is repeatable but can be slow"
FLOWS = ("flow", "flow_from_directory", "flow_from_dataframe")
FLAG_TYPES = ("DEFINE_integer", "DEFINE_bool", "DEFINE_boolean", "DEFINE_float", "DEFINE_string")


class Methods(Trainings):
    """Calls of methods that no class of the project defines."""

    def call_method(self, owner: Value, name: str, call: Call) -> Value:
        """Return what a method returns."""
        if isinstance(owner, Either):
            return join_all(self.call_method(each, name, call) for each in owner.options)
        if isinstance(owner, Sequence) and name in LIST_METHODS:
            return LIST_METHODS[name](self, owner, call)
        if isinstance(owner, Table) and name in TABLE_METHODS:
            return TABLE_METHODS[name](self, owner, call)
        if isinstance(owner, Made):
            # Sorted, as a set of words has another order in every run: two marks may have a row.
            for mark in sorted(owner.marks):
                row = MARKED.get((mark, name)) or MARKED.get((mark, ""))
                if row is not None:
                    return row(self, owner, name, call)
        return self.call_any(owner, name, self.end_unordered(name, call))

    def call_any(self, owner: Value, name: str, call: Call) -> Value:
        """Return what a method returns that is known by its name only."""
        # `assign_sub` trains where it is given the gradients of a tape.
        if name in TRAINING_METHODS or (name in STEPS and self.has_gradients(call)):
            return self.call_trainer(owner, name, call)
        if name in ANY_METHODS:
            found = ANY_METHODS[name](self, owner, name, call)
            if found is not None:
                return found
        if self.is_dataset(owner):
            return self.call_dataset(owner, name, call)
        if call.discarded:  # such as `array.fill(0)`
            self.fill(owner)
        self.use_functions(call)
        taints = self.collect_all_taints([owner, *call.list_values()])
        if name in SHOWING_METHODS or name.startswith("assert"):
            self.ledger.show(taints)
            return Value()
        self.ask_or_tell(owner, name, call)
        return self.make_result(owner, name, taints)

    def ask_or_tell(self, owner: Value, name: str, call: Call) -> None:
        """Record that a method of an unknown object is given values that depend on chance."""
        if name == "run" and self.is_only_asked(call):
            # What is fed has been computed before: a step that NumPy takes (ENV108/bad_fed.py).
            self.apply_gradients([*call.arguments[1:], *call.keywords.values()])
            return
        if name == "run" and any(
            "step" in each.marks for each in self.list_made([call.get_first()])
        ):
            self.note_race(owner, call.node, "train one model")
        self.fill(*call.list_values())
        if call.discarded and name.startswith("to_"):  # to_csv, to_sql
            self.count(owner)
        # What only asks hands its arguments to its result: they count where the result does.
        asks = name in ASKING_METHODS or owner.kind in ("text", "number")
        if asks and (name == "join" or not call.discarded):
            return
        if self.collect_taints(owner) and not call.discarded and not isinstance(owner, Made):
            return
        self.hand_out(call)
        # `picture.save()`: what was drawn has an effect that is not seen.
        if call.discarded and not isinstance(owner, Made):
            self.ledger.count(
                frozenset(each for each in self.collect_taints(owner) if each[0].kind == "draw")
            )
        if name in KEEPERS:
            for value in call.list_values():
                self.teach(owner, value)

    def is_only_asked(self, call: Call) -> bool:
        """Return whether a session computes only what is known to be no training."""
        fetched = call.get_first()
        parts = [fetched]
        if isinstance(fetched, Sequence):
            parts = fetched.items or []
        return bool(parts) and all(each.kind == "tensor" for each in parts)

    def make_result(self, owner: Value, name: str, taints: Taints) -> Value:
        """Return what a method of something unknown returns."""
        kind = ""
        if name in TEXT_METHODS:
            kind = "text"
        if name in SPLITTING_METHODS and owner.kind not in ("tensor", "number"):
            # Each part carries what the whole was drawn or picked by.
            text = Value(self.get_element(Value(taints)).taints, "text")
            return self.make_sequence(None, text).add_taints(taints)
        if owner.kind in ("tensor", "number") and not kind:
            kind = owner.kind
        return Value(taints, kind)

    def call_dataset(self, owner: Value, name: str, call: Call) -> Value:
        """Return what a method of a dataset returns: mostly another one."""
        self.use_functions(call)
        if name == "options":
            return self.make("tf.data.Options", call.node, "options")
        made = self.make("tf.data.Dataset", call.node)
        taints = self.collect_taints(owner)
        # These take a function, whose effects are seen where it is looked into.
        if name not in ("map", "filter", "interleave", "flat_map"):
            taints |= self.collect_array_taints(call.list_values())
        return made.add_taints(taints)

    def shuffle(self, owner: Value, name: str, call: Call) -> Value | None:
        """Shuffle a dataset; what is shuffled may be something else, until it is used as a dataset."""
        if not self.is_dataset(owner) and not {"tf", "keras"} & self.source.packages:
            return None
        if isinstance(owner, Instance | Library | Sequence):
            return None
        seeded = self.is_seeded(call, "seed", 1)
        if self.is_dataset(owner):
            if not seeded:
                self.leave_unseeded(call.node, self.source, SHUFFLED)
            return self.call_dataset(owner, name, call)
        # A generator, a queue or a model is not a dataset.
        if seeded or (isinstance(owner, Made) and owner.marks):
            return None
        made = self.make("shuffled", call.node, "pending")
        made.add_taints(self.collect_taints(owner))
        return made

    def confirm(self, owner: Made, name: str, call: Call) -> Value:
        """Judge what was shuffled once it is seen to be a dataset.

        A parameter with a method `shuffle` may be a list's wrapper or a dataset: what is called
        on it next tells them apart.
        """
        if name not in DATASET_METHODS:
            self.call_any(Value(owner.taints), name, call)
            return owner
        self.leave_unseeded(owner.node, owner.source, SHUFFLED)
        made = self.make("tf.data.Dataset", owner.node).add_taints(owner.taints)
        return self.call_method(made, name, call)

    def map_each(self, owner: Value, name: str, call: Call) -> Value | None:
        """Run a function on each element, of a dataset or by workers."""
        deterministic = call.get("deterministic")
        # `pool.map(f, values)` has its values where a dataset has the number of calls.
        position: int | None = None
        if self.is_dataset(owner):
            position = PARALLEL[name]
        parallel = call.get("num_parallel_calls", position)
        calls = call.get_constant("num_parallel_calls", PARALLEL[name])
        is_parallel = parallel is not None and calls not in (None, 1)
        if deterministic is not None and deterministic.default is False:
            self.give_up_order(call, f"{name} can give its elements in any order")
        if not self.is_dataset(owner) and parallel is None:
            # A method `map` of something unknown that takes a function and values is a pool's.
            if len(call.arguments) > 1:
                return self.work_each(owner, name, call)
            return None
        mapped = call.get("map_func", 0)
        deeds = self.look_into(mapped, owner, call)
        if is_parallel:
            self.report_parallel(deeds, call)
        made = self.make("tf.data.Dataset", call.node)
        return made.add_taints(self.collect_taints(owner))

    def report_parallel(self, deeds: list[Deed], call: Call) -> None:
        """Report what is stateful in a function that runs on several elements at a time."""
        # What Python itself draws, it draws once: while the function is traced.
        in_graph = [deed for deed in deeds if deed.kind != "python"]
        if in_graph:
            what = self.describe_deed(in_graph[0])
            self.report_fixed_by_switch("ENV301", call.node, f"{what} runs in parallel", SERIAL)

    def describe_deed(self, deed: Deed) -> str:
        """Return what is done, and where, as the subject of a message."""
        if deed.kind == "opaque":
            return f"{deed.name}, whose function is not visible here,"
        if deed.kind == "layer":  # it may lie in another file
            return deed.name
        return f"{deed.name} (line {getattr(deed.node, 'lineno', 0)})"

    def look_into(self, mapped: Value | None, owner: Value, call: Call) -> list[Deed]:
        """Return what a function does that is stateful."""
        raise NotImplementedError

    def report_fixed_by_switch(self, rule: str, node: ast.AST, message: str, remark: str) -> None:
        """Report what op determinism fixes from TensorFlow 2.7 on."""
        if matches_version(["<2.7"], self.tensorflow) or not self.state.switched:
            self.ledger.report(rule, self.source, Hit(node, message))
        else:
            self.ledger.report(rule, self.source, Hit(node, f"{message}; {remark}", "info"))

    def give_up_order(self, call: Call, message: str) -> None:
        """Report a dataset that may give its elements in any order."""
        self.report_fixed_by_switch("ENV302", call.node, message, "op determinism overrides it")

    def work_each(self, owner: Value, name: str, call: Call) -> Value | None:
        """Run a function on values by a pool: the results are in their order, or as they come."""
        if not call.arguments:
            return None
        function, given = call.arguments[0], call.arguments[1:]
        values = [self.take_in_turn(each, call.node) for each in given]
        each = [self.get_element(value) for value in values]
        if name == "starmap" and each:
            packed = each[0]
            if isinstance(packed, Sequence) and packed.items is not None:
                each = packed.items
        if isinstance(function, Function | Partial | Method | Class | Instance):
            result = self.call(function, Call(call.node, each))
        else:
            result = self.combine(each)
        if name in ARRIVAL_METHODS:
            chance = self.add_chance("ENV307", "order", name, call.node)
            return self.make_sequence(None, self.strip_orders(result), "iterator").add_taints(
                frozenset({(chance, "order")})
            )
        orders = CLEAN
        for value in values:
            orders |= in_mode(value.taints, "order")
        return self.make_sequence(None, result, "iterator").add_taints(orders)

    def submit(self, owner: Value, name: str, call: Call) -> Value:
        """Run a function by a pool; of a queue that several fill it takes what comes first."""
        # A pool is there for several tasks, also where one line submits them.
        for value in call.list_values():
            if isinstance(value, Made) and "queue" in value.marks:
                value.marks.add("many")
        handed = Call(call.node, call.arguments[1:], call.keywords)
        # Tasks of one worker run one after the other, in the order in which they are submitted.
        threads = isinstance(owner, Made) and "Thread" in owner.name and not self.has_one(owner)
        result = self.run_worker(call.get_first(), handed, is_thread=threads)
        # It runs in a thread of the pool, when the task is done.
        callback = call.get("callback")
        if callback is not None and name == "apply_async":
            self.run_worker(callback, Call(call.node, [result]), is_thread=True)
        return Value(self.collect_taints(result))

    def has_one(self, pool: Made) -> bool:
        """Return whether a pool is made with one worker: `ThreadPool(1)`, or by any keyword."""
        given = [*pool.arguments[:1], *pool.keywords.values()]
        return any(isinstance(each, Constant) and each.default == 1 for each in given)

    def call_back(self, owner: Value, name: str, call: Call) -> Value:
        """Run a function when a worker has finished."""
        handed = Call(call.node, [Value(owner.taints)])
        self.run_worker(call.get_first(), handed, is_thread=True)
        return Value()

    def take_batch(self, owner: Made, name: str, call: Call) -> Value:
        """Take a batch in the order of NumPy's generator."""
        self.count(owner)
        return self.make_sequence([Value(owner.taints), Value(owner.taints)], form="tuple")

    def make_queue_of_manager(self, owner: Made, name: str, call: Call) -> Value:
        """Return a queue that a process of its own holds."""
        return self.make(f"multiprocessing.{name}", call.node, "queue")

    def put(self, owner: Made, name: str, call: Call) -> Value:
        """Fill a queue: workers that a loop started do so in any order."""
        for worker in self.workers[-1:]:
            # A worker whose own loop puts something twice is still one.
            is_second = "fed" in owner.marks and owner not in worker.fed
            if worker.is_many(owner.born) or is_second:
                owner.marks.add("many")
            owner.marks.add("fed")
            worker.fed.append(owner)
        taints = self.collect_all_taints(call.list_values())
        orders = in_mode(taints, "each") & self.find_orders_since(owner.born)
        owner.add_taints(self.forget(taints, "each") | as_mode(orders, "order"))
        return Value()

    def take(self, owner: Made, name: str, call: Call) -> Value:
        """Take from a queue: several workers fill it in any order."""
        taints = self.collect_taints(owner)
        ordered = in_mode(taints, "order")
        # What comes first is another one in every run, as `names[0]` is.
        taken = self.forget(taints, "order") | as_mode(ordered, "value")
        if "many" in owner.marks:
            taken |= {(self.add_chance("ENV307", "order", "queue", call.node), "each")}
        return Value(taken)

    def draw_by_generator(self, owner: Made, name: str, call: Call) -> Value:
        """Draw from a generator of one's own."""
        if name in ("seed", "set_state"):
            owner.marks.discard("unseeded")
            # It was made without a seed, which is a finding only if none follows.
            self.ledger.seeded_later.add(owner.node)
            owner.taints = CLEAN
            return Value()
        if name not in GENERATOR_METHODS:
            return Value(self.collect_taints(owner))
        kind = "python" if owner.name.startswith(("numpy.", "random.")) else "generator"
        self.do(kind, f"{name} of a {owner.name}", call.node)
        return self.draw_from(name, Value(owner.taints, "number"), call)

    def use_environment(self, owner: Made, name: str, call: Call) -> Value:
        """Use an environment for reinforcement learning; `reset` with a seed and `seed` seed it."""
        seed: Value | None = None
        if name == "seed":
            seed = call.get("seed", 0)
        elif name == "reset":
            seed = call.get("seed")
        if seed is not None and not self.is_none(seed):
            owner.marks.add("seeded")
        return Value()

    def use_space(self, owner: Made, name: str, call: Call) -> Value:
        """Sample a space of an environment, or seed it."""
        environment = owner.arguments[0]
        # Spaces have a generator of their own, which the seed of the environment does not reach:
        # https://gymnasium.farama.org/api/spaces/
        if not isinstance(environment, Made):
            return Value(kind="number")
        if name == "seed":
            environment.marks.add("spaces seeded")
        elif name == "sample" and "spaces seeded" not in environment.marks:
            message = "the space of an environment is sampled, and nothing seeds it"
            self.ledger.report("ENV209", self.source, Hit(call.node, message))
        return Value(kind="number")

    def flow(self, owner: Value, name: str, call: Call) -> Value | None:
        """Make batches of images in the order of NumPy's generator."""
        # Other things flow as well; only `flow_from_directory` and its like say what they are.
        images = isinstance(owner, Made) and owner.name.endswith("ImageDataGenerator")
        if not self.uses_keras() or (name == "flow" and not images):
            return None
        if self.is_seeded(call, "seed") or call.get_constant("shuffle") is False:
            return Value()
        return Value(self.draw("ENV205", name, call, "numpy").taints)

    def list_path(self, owner: Value, name: str, call: Call) -> Value | None:
        """List a folder by its path; other things have a method `glob` or `iterdir`, too."""
        if "pathlib" not in self.source.module.packages:
            return None
        return self.list_folder(f"Path.{name}", Call(call.node))

    def show_or_write(self, owner: Made, name: str, call: Call) -> Value:
        """Write into a file that is open: in a loop by chance its order gets into the file."""
        for value in call.list_values():
            self.teach(owner, value)
        self.hand_out(call)
        return Value()

    def differentiate(self, owner: Made, name: str, call: Call) -> Value:
        """Return the gradient that a tape gives."""
        if name not in ("gradient", "jacobian"):
            return Value()
        chance = self.ledger.add_chance("TAPE", "order", "tape", owner.node, owner.source)
        return Value(self.collect_all_taints(call.list_values()) | {(chance, "value")}, "tensor")

    def compute_gradients(self, owner: Value, name: str, call: Call) -> Value:
        """Return gradients that an optimizer gives."""
        return self.differentiate_in_graph(name, call)

    def assign(self, owner: Value, name: str, call: Call) -> Value:
        """Change a variable: threads that do so interfere."""
        self.count(*call.list_values())
        if name.startswith(("assign", "scatter")):
            self.note_race(owner, call.node, "change one variable")
            self.do("write", f"{name} of a tf.Variable", call.node)
        # A step that is written out, without an optimizer: ENV108/bad_assigned.py.
        tapes = self.find_tapes(call)
        if tapes:
            self.train_by_tape(tapes[0].node, tapes[0].source)
        elif self.has_gradients(call):
            self.train(call)
        if name.startswith("scatter"):
            self.check_scatter(owner, call)
        return Value(self.collect_taints(owner), "tensor")

    def check_scatter(self, owner: Value, call: Call) -> None:
        """Report a scattered sum."""
        raise NotImplementedError

    def sort_values(self, owner: Value, name: str, call: Call) -> Value:
        """Sort a table of rows or anything else, in place or not."""
        if call.discarded or call.get_constant("inplace") is True:
            self.sort_in_place(owner)
            if type(owner) is Value:
                owner.taints = self.forget(owner.taints, "order")
        return Value(self.forget(self.collect_taints(owner), "order", "each"))

    def save_weights(self, owner: Value, name: str, call: Call) -> Value | None:
        """Save the weights of a model."""
        if self.uses_keras() and not isinstance(owner, Instance):
            self.check_weights_file(call.get_constant("filepath", 0), call)
        return None

    def name_graph(self, owner: Value, name: str, call: Call) -> Value | None:
        """Return the graph of TensorFlow 1 that becomes the default one."""
        if isinstance(owner, Made) and owner.name == "tf.Graph":
            return owner
        return None

    def write_away(self, owner: Value, name: str, call: Call) -> Value | None:
        """Record the values that an unknown object is given to store."""
        if not isinstance(owner, Library | Instance):
            for value in call.list_values():
                self.teach(owner, value)
            return Value()
        return None


CHANGES = ("assign", "assign_add", "assign_sub", "scatter_add", "scatter_sub", "scatter_update")
"""Methods that change a variable."""

AnyRow = Callable[[Methods, Value, str, Call], "Value | None"]
MARKED: dict[tuple[str, str], Callable[[Methods, Made, str, Call], Value]] = {
    ("parser", "add_argument"): Methods.add_flag,
    ("parser", "add_option"): Methods.add_flag,
    ("parser", "parse_args"): Methods.parse_flags,
    ("parser", "parse_known_args"): Methods.parse_flags,
    ("parser", ""): Methods.use_parser,
    ("mnist", "next_batch"): Methods.take_batch,
    ("queue", "Queue"): Methods.make_queue_of_manager,
    ("queue", "JoinableQueue"): Methods.make_queue_of_manager,
    ("queue", "put"): Methods.put,
    ("queue", "put_nowait"): Methods.put,
    ("queue", "get"): Methods.take,
    ("queue", "get_nowait"): Methods.take,
    ("generator", ""): Methods.draw_by_generator,
    ("environment", ""): Methods.use_environment,
    ("space", ""): Methods.use_space,
    ("pending", ""): Methods.confirm,
    ("writer", "write"): Methods.show_or_write,
    ("writer", "writelines"): Methods.show_or_write,
    ("tape", ""): Methods.differentiate,
    **dict.fromkeys((("variable", word) for word in CHANGES), Methods.assign),
}
ANY_METHODS: dict[str, AnyRow] = {
    **dict.fromkeys(PARALLEL, Methods.map_each),
    **dict.fromkeys(
        ("imap", "starmap", "uimap", "imap_unordered", "map_unordered"), Methods.work_each
    ),
    **dict.fromkeys(("submit", "apply_async"), Methods.submit),
    "add_done_callback": Methods.call_back,
    "as_default": Methods.name_graph,
    "compile": Methods.compile_model,
    "compute_gradients": Methods.compute_gradients,
    "execute": Methods.execute,
    "save_weights": Methods.save_weights,
    **dict.fromkeys(LISTING_METHODS, Methods.list_path),
    **dict.fromkeys(FLOWS, Methods.flow),
    **dict.fromkeys(NUMPY_METHODS, Methods.sample_any),
    **dict.fromkeys(("sort_values", "sort_index", "sort"), Methods.sort_values),
    **dict.fromkeys(("scatter_add", "scatter_sub"), Methods.assign),
    **dict.fromkeys(KEEPERS, Methods.write_away),
    "shuffle": Methods.shuffle,
}
