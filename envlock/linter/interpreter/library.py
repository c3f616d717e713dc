"""What functions of Python and of libraries do with values: transfer rows, and sinks."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.computations import Computations
from envlock.linter.interpreter.orders import UNFILLED
from envlock.linter.interpreter.queries import is_unordered
from envlock.linter.interpreter.run_state import Worker
from envlock.linter.interpreter.source_files import Source
from envlock.linter.interpreter.values import (
    Class,
    Constant,
    Function,
    Instance,
    Library,
    Made,
    Method,
    Partial,
    Sequence,
    Table,
    Value,
    as_mode,
    in_mode,
    options,
)
from envlock.linter.module import Hit
from envlock.linter.names import (
    ARRIVALS,
    ASSIGNING_FUNCTIONS,
    DATASETS,
    DISTRIBUTIONS,
    LISTINGS,
    OLD_PATCHES,
    PURE,
    PYTHON_FUNCTIONS,
    QUEUES,
    RANDOM_LAYERS,
    RECORDS,
    SHOWERS,
    SORTERS,
    STEP_MAKERS,
    SWITCH,
    THREADED_QUEUES,
    WEIGHTLESS,
)

MODELS = ("keras.Sequential", "keras.Model", "keras.models.", "keras.applications.")
KERAS_MADE = ("keras.layers.", *MODELS)
FILE_TIMES = ("os.path.getmtime", "os.path.getctime", "os.path.getatime")
EMPTY = ("numpy.empty", "numpy.empty_like", "numpy.ndarray")
READ_SQL = ("pandas.read_sql", "pandas.read_sql_query", "pandas.read_sql_table")
SQL_DATASET = "tf.data.experimental.SqlDataset"
WRITING = frozenset("wax")
"""Letters of the modes in which `open` writes."""
OUTPUT = ("sys.stdout", "sys.stderr")
STARTERS = ("threading.Thread", "multiprocessing.Process", "torch.multiprocessing.Process")
OPTIMIZERS = ("tf.train.", "keras.optimizers.", "tf.optimizers.", "tensorflow_addons.optimizers.")
PARSERS = ("argparse.ArgumentParser", "optparse.OptionParser", "configargparse.ArgumentParser")


class Libraries(Computations):
    """Calls of what no file of the project defines."""

    def call_library(self, name: str, call: Call) -> Value:
        """Return what a function of a library returns."""
        row = _find_row(name)
        return self.call_unknown(call, name) if row is None else row(self, name, call)

    def call_shower(self, name: str, call: Call) -> Value:
        """Return what a function returns that only shows what it is given."""
        self.show(call, self.collect_all_taints(call.list_values()))
        self.use_functions(call)
        return Value()

    def wrap_environment(self, name: str, call: Call) -> Value:
        """Return the environment that is wrapped: what seeds the outer one seeds it, and they are
        one cause.
        """
        return call.get_first()

    def make_distribution(self, name: str, call: Call) -> Value:
        """Return a distribution, which can be sampled."""
        made = self.make(name, call.node, "distribution")
        return made.add_taints(self.collect_all_taints(call.list_values()))

    # ------------------------------------------------------------ keras and tensorflow

    def make_keras(self, name: str, call: Call) -> Value:
        """Return a layer or a model."""
        made = self.make(name, call.node, "keras")
        made.arguments, made.keywords = call.arguments, call.keywords
        # `keras.layers.add(...)` is the operation, `keras.layers.Add` the layer.
        if name.startswith("keras.layers.") and name.rpartition(".")[2][:1].islower():
            return self.compute(name, call)
        # A model that a file gives has its weights from there.
        loads = name.endswith(("load_model", "model_from_json", "clone_model"))
        if not name.endswith(WEIGHTLESS) and not loads:
            self.make_weights(made)
        made.add_taints(self.collect_all_taints(call.arguments))
        self.use_functions(call)
        if name in RANDOM_LAYERS:
            made.marks.add("random")
        inside = [*call.arguments, *call.keywords.values()]
        if any("random" in each.marks for each in self.list_made(inside)):
            made.marks.add("random")
        return made

    def list_made(self, values: list[Value]) -> list[Made]:
        """Return the library objects among values and in lists of them."""
        found: list[Made] = []
        for value in values:
            for option in options(value):
                if isinstance(option, Made):
                    found.append(option)
                elif isinstance(option, Sequence):
                    for item in option.items or [option.element]:
                        found += [each for each in options(item) if isinstance(each, Made)]
        return found

    def make_weights(self, made: Made | None) -> None:
        """Note that weights of Keras are made: their seeds come from Python's random."""
        self.state.weights = True
        # What a test makes is not what other programs train.
        if self.program is None or not self.program.is_test:
            self.built = True
        seeded = self.state.seeded
        # Which of the two counts depends on the version: one of them is enough here, and Keras
        # without Python's seed from TensorFlow 2.10 on is ENV201, below.
        if made is not None and not {"tf", "python"} & seeded.keys():
            made.marks.add("unseeded")
        if "tf" in seeded and "python" not in seeded and not self.off:
            self.report_partial(*seeded["tf"])

    def report_partial(self, node: ast.AST, source: Source) -> None:
        """Report seeds that do not reach Keras."""
        raise NotImplementedError

    def make_dataset(self, name: str, call: Call) -> Value:
        """Return a dataset, or one of its options."""
        self.use_functions(call)
        sloppy = call.get("sloppy")
        if sloppy is not None and call.get_constant("sloppy") not in (False, None):
            what = "gives" if call.get_constant("sloppy") is True else "can give"
            word = name.rpartition(".")[2]
            self.give_up_order(call, f"a sloppy {word} {what} its elements in any order")
        if name == "tf.data.Options":
            return self.make(name, call.node, "options")
        if name == "tensorflow_datasets.load":
            self.check_files_shuffled(call)
        made = self.make("tf.data.Dataset", call.node)
        return made.add_taints(self.collect_array_taints(call.list_values()))

    def check_files_shuffled(self, call: Call) -> None:
        """Report files that are read as they come."""
        # A `read_config` may hold the seed.
        if call.get("shuffle_files") is None or call.get("read_config") is not None:
            return
        if call.get_constant("shuffle_files") not in (False, None):
            message = "files that are shuffled without a seed of their own are read in any order"
            self.give_up_order(call, message)

    def give_up_order(self, call: Call, message: str) -> None:
        """Report a dataset that may give its elements in any order."""
        raise NotImplementedError

    def make_special(self, name: str, call: Call) -> Value:
        """Return a variable, a tape or an optimizer."""
        made = self.make(name, call.node)
        made.arguments, made.keywords = call.arguments, call.keywords
        if name == "tf.Variable":
            made.marks.add("variable")
            taints = self.collect_all_taints(call.list_values())
            # First values count where something learns from there:
            # ENV204/good_weights_untrained.py.
            drawn = frozenset(each for each in taints if each[0].rule == "ENV204")
            self.ledger.weigh(drawn, self.in_entry)
            return made.add_taints(taints - drawn)
        if name == "tf.GradientTape":
            made.marks.add("tape")
            self.trains.add(self.source)
            return made
        made.marks.add("optimizer")
        return made

    # ------------------------------------------------------------ rows for single names

    def make_context(self, name: str, call: Call) -> Value:
        """Return what only its name and arguments matter of: a device, a collection of a graph."""
        made = self.make(name, call.node)
        made.arguments = call.arguments
        return made

    def print(self, name: str, call: Call) -> Value:
        """Print to the screen, which shows, or into a file, which keeps."""
        file = call.get("file")
        taints = self.collect_all_taints(call.arguments)
        screen = file is None or (isinstance(file, Library) and file.name in OUTPUT)
        if not screen:
            # Line by line, the file keeps the order of a loop by chance.
            self.ledger.count(taints | as_mode(in_mode(taints, "each"), "value"))
            return Value()
        # A number that was drawn may be the result of a program that prints it
        # (ENV206/bad_printed.py). Names and orders only look otherwise.
        results = frozenset(each for each in taints if each[0].kind == "draw" and each[1] != "pick")
        self.ledger.count(results)
        self.ledger.show(taints - results)
        return Value()

    def get_attribute(self, name: str, call: Call) -> Value:
        """Return `getattr(object, "name")`."""
        word = call.arguments[1] if len(call.arguments) > 1 else Value()
        if isinstance(word, Constant) and isinstance(word.value, str):
            return self.look_up_attribute(call.get_first(), word.value, call.node)
        return Value(self.collect_taints(call.get_first()))

    def set_attribute(self, name: str, call: Call) -> Value:
        """Do `setattr(object, "name", value)`."""
        if len(call.arguments) == 3:
            word = call.arguments[1]
            if isinstance(word, Constant):
                self.set_member(call.get_first(), str(word.value), call.arguments[2], call.node)
        return Constant(None)

    def look_up_attribute(self, owner: Value, name: str, node: ast.AST) -> Value:
        """Return an attribute."""
        raise NotImplementedError

    def set_member(self, owner: Value, name: str, value: Value, node: ast.AST) -> None:
        """Give an object an attribute."""
        raise NotImplementedError

    def call(self, called: Value, call: Call) -> Value:
        """Return what a call returns."""
        raise NotImplementedError

    def make_system_random(self, name: str, call: Call) -> Value:
        """Return a generator that cannot be seeded."""
        made = self.make(name, call.node, "generator")
        return made.add_taints(
            frozenset({(self.add_chance("ENV206", "draw", name, call.node), "value")})
        )

    def make_partial(self, name: str, call: Call) -> Value:
        """Return `functools.partial`."""
        if not call.arguments:
            return Value()
        return Partial(call.arguments[0], call.arguments[1:], call.keywords)

    def cast(self, name: str, call: Call) -> Value:
        """Return the value: the type is for a type checker."""
        return call.get("val", 1) or Value()

    def open_file(self, name: str, call: Call) -> Value:
        """Return an open file; what is read from it is as by chance as its name."""
        made = self.make(name, call.node, "file")
        mode = call.get_constant("mode", 1)
        if isinstance(mode, str) and not WRITING.isdisjoint(mode):
            made.marks.add("writer")
            return made
        return made.add_taints(self.collect_all_taints(call.arguments))

    def switch_on(self, name: str, call: Call) -> Value:
        """Turn op determinism on."""
        self.state.switched = True
        return Constant(None)

    def run_map(self, name: str, call: Call) -> Value:
        """Run the body of a loop of TensorFlow."""
        raise NotImplementedError

    def run_python(self, name: str, call: Call) -> Value:
        """Run a Python function of a graph."""
        given = call.get("func", PYTHON_FUNCTIONS[name])
        known = isinstance(given, Function | Partial | Method | Class) or (
            isinstance(given, Library) and given.name.startswith(PURE)
        )
        before = len(self.deeds[-1]) if self.deeds else 0
        self.use_functions(call)
        # A function that is not seen may draw; one that is seen has been looked into by its call.
        if not known and self.deeds:
            self.do("opaque", name, call.node)
        elif self.deeds and len(self.deeds[-1]) > before:
            self.do("py_function", f"{name} with {self.deeds[-1][before].name}", call.node)
        return Value(self.collect_all_taints(call.list_values()), "tensor")

    def start_worker(self, name: str, call: Call) -> Value:
        """Start a thread or a process: what several of them fill is filled in any order."""
        target = call.get("target", 1)
        arguments = call.get("args", 3)
        handed = list(arguments.items or []) if isinstance(arguments, Sequence) else []
        for value in handed:
            if isinstance(value, Made) and "queue" in value.marks:
                # One worker fills it in its own order; the second one makes it a race. A loop that
                # began after the queue was made starts several.
                if self.is_repeated(value.born) or "fed" in value.marks:
                    value.marks.add("many")
                else:
                    value.marks.add("fed")
        if target is not None:
            keywords = call.get("kwargs")
            named = keywords.items if isinstance(keywords, Table) else {}
            words = {str(word): value for word, value in named.items()}
            is_thread = name.endswith("Thread")
            self.run_worker(target, Call(call.node, handed, words), is_thread=is_thread)
        return self.make(name, call.node)

    def run_worker(self, target: Value, call: Call, *, is_thread: bool) -> Value:
        """Run a function as a thread or a process of the loops around does."""
        self.workers.append(Worker(tuple(self.rounds), is_thread))
        result = self.call(target, call)
        self.workers.pop()
        return result

    def make_queue(self, name: str, call: Call) -> Value:
        """Return a queue between workers."""
        return self.make(name, call.node, "queue")

    def make_parser(self, name: str, call: Call) -> Value:
        """Return a parser of the command line."""
        return self.make(name, call.node, "parser")

    def name_backend(self, name: str, call: Call) -> Value:
        """Return what Keras computes with: TensorFlow, unless some file speaks of another."""
        # A branch for another backend is not taken by default: ENV205/good_backend.py.
        if self.sources.names_keras_backend:
            return Value()
        return Constant("tensorflow")

    def make_step(self, name: str, call: Call) -> Value:
        """Return a step of a training in a graph."""
        self.train(call)
        return Value(self.collect_all_taints(call.list_values()), "tensor")

    def differentiate_in_graph(self, name: str, call: Call) -> Value:
        """Return gradients in a graph; a training is reported where they are applied."""
        self.trains.add(self.source)
        self.trained = True
        chance = self.ledger.add_chance("TAPE", "order", "graph", call.node, self.source)
        return Value(self.collect_all_taints(call.list_values()) | {(chance, "value")}, "tensor")

    def assign_in_graph(self, name: str, call: Call) -> Value:
        """Give a variable another value: along a gradient this is a step of a training."""
        if self.has_gradients(call):
            self.train(call)
        return self.compute(name, call)

    def has_gradients(self, call: Call) -> bool:
        """Return whether a call is given gradients."""
        taints = self.collect_all_taints(call.list_values())
        return any(chance.rule == "TAPE" for chance, _ in taints)

    def train(self, call: Call, node: ast.AST | None = None) -> None:
        """Note that a training takes place."""
        raise NotImplementedError

    def check_threads(self, name: str, call: Call) -> None:
        """Report a queue that several threads fill."""
        at = THREADED_QUEUES[name]
        threads: Value | None = None
        if at >= 0:
            threads = call.get("num_threads", at)
        many = threads is not None and call.get_constant("num_threads", at) != 1
        # At -1 the table has readers that are several in any case.
        if at < 0 or many:
            message = f"the threads of {name} fill its queue in the order in which they finish"
            self.give_up_order(call, message)

    def ask_instance(self, name: str, call: Call) -> Value:
        """Return `isinstance(...)`: what it narrows is seen where it is tested."""
        return Value(kind="number")

    def copy_file(self, name: str, call: Call) -> Value:
        """Copy one open file into another."""
        target = call.get("fdst", 1)
        source = call.get("fsrc", 0)
        if target is not None and source is not None:
            self.teach(target, source)
        return Value()

    def make_checkpoint(self, name: str, call: Call) -> Value:
        """Return a callback that saves a model."""
        if call.get_constant("save_weights_only") is True:
            self.check_weights_file(call.get_constant("filepath", 0), call)
        return self.compute(name, call)

    def check_weights_file(self, path: object, call: Call) -> None:
        """Report a file of weights that Keras 3 refuses."""
        if isinstance(path, str) and not path.endswith(".weights.h5"):
            message = f"Keras 3 raises ValueError: {path!r} does not end in .weights.h5"
            fix = "Let the name end in `.weights.h5`."
            self.ledger.report("ENV111", self.source, Hit(call.node, message, fix=fix))

    def read_time(self, name: str, call: Call) -> Value:
        """Return the time of a file, which its copies do not have."""
        return Value(self.collect_all_taints(call.arguments), "moment")

    def make_empty(self, name: str, call: Call) -> Value:
        """Return an array that holds what was in memory; one of objects holds None, one of no rows
        nothing.
        """
        shape = call.get_first()
        sizes = shape.items or [] if isinstance(shape, Sequence) else [shape]
        nothing = any(isinstance(each, Constant) and each.value == 0 for each in sizes)
        kind = call.get("dtype", 1)
        objects = isinstance(kind, Library) and kind.name in ("object", "numpy.object_")
        given = name == "numpy.ndarray" and call.get("buffer", 2) is not None
        if nothing or objects or given or call.get_constant("dtype", 1) in ("O", "object"):
            return Value(kind="tensor")
        chance = self.add_chance(UNFILLED, "clock", name, call.node)
        return Value(frozenset({(chance, "value")}), "unfilled")

    def read_rows(self, name: str, call: Call) -> Value:
        """Return the rows of a table, in the order that the query asks for."""
        if name == SQL_DATASET:
            made = self.make("tf.data.Dataset", call.node)
            query = call.get("query", 2)
        else:
            made = self.make(name, call.node)
            query = call.get("sql", 0)
        unordered = isinstance(query, Constant) and is_unordered(str(query.value))
        # It takes no query, so that nothing can ask for an order.
        if name.endswith("read_sql_table") or unordered:
            chance = self.add_chance("ENV308", "order", "query", call.node)
            made.add_taints(frozenset({(chance, "order")}))
        return made

    def take_super(self, name: str, call: Call) -> Value:
        """Return the object as its parent class sees it."""
        # By its usual name, although any would do: few write another one (PEP 8).
        owner = self.frames[-1].scope.find("self")
        if isinstance(owner, Instance):
            return Method(owner, "super()")
        return Value()


Row = Callable[[Libraries, str, Call], Value]


def _list_rows() -> dict[str, Row]:
    found: dict[str, Row] = {}
    found.update(dict.fromkeys(("sorted", *SORTERS), Libraries.sort))
    found.update(dict.fromkeys(("len", "any", "all", "min", "max"), Libraries.end))
    found.update(dict.fromkeys(("set", "frozenset", "weakref.WeakSet"), Libraries.make_set))
    listers = (
        "list",
        "tuple",
        "iter",
        "reversed",
        "tqdm",
        "tqdm.tqdm",
        "tqdm.auto.tqdm",
        "tqdm.notebook.tqdm",
    )
    found.update(dict.fromkeys(listers, Libraries.make_list))
    found.update(dict.fromkeys(("map", "filter", "itertools.starmap"), Libraries.map))
    found.update(dict.fromkeys(("str", "repr", "format"), Libraries.make_text))
    found.update(dict.fromkeys(("int", "float", "bool"), Libraries.convert))
    found.update(dict.fromkeys(("hash", "id"), Libraries.use_hash))
    found.update(dict.fromkeys(LISTINGS, Libraries.list_folder))
    found.update(dict.fromkeys(ARRIVALS, Libraries.arrive))
    found.update(dict.fromkeys(QUEUES, Libraries.make_queue))
    found.update(dict.fromkeys(PARSERS, Libraries.make_parser))
    found.update(dict.fromkeys(STARTERS, Libraries.start_worker))
    found.update(dict.fromkeys((SWITCH, *OLD_PATCHES), Libraries.switch_on))
    found.update(dict.fromkeys(PYTHON_FUNCTIONS, Libraries.run_python))
    writers = (
        "open",
        "io.open",
        "gzip.open",
        "codecs.open",
        "tf.io.gfile.GFile",
        "tf.gfile.GFile",
        "tf.gfile.Open",
    )
    found.update(dict.fromkeys(writers, Libraries.open_file))
    found.update(dict.fromkeys(STEP_MAKERS, Libraries.make_step))
    found.update(dict.fromkeys(ASSIGNING_FUNCTIONS, Libraries.assign_in_graph))
    found.update(
        {
            **dict.fromkeys(EMPTY, Libraries.make_empty),
            **dict.fromkeys(FILE_TIMES, Libraries.read_time),
            **dict.fromkeys((*READ_SQL, SQL_DATASET), Libraries.read_rows),
            "keras.backend.backend": Libraries.name_backend,
            "keras.config.backend": Libraries.name_backend,
            "keras.callbacks.ModelCheckpoint": Libraries.make_checkpoint,
            "dict.fromkeys": Libraries.fill_from,
            "random.SystemRandom": Libraries.make_system_random,
            "enumerate": Libraries.enumerate,
            "zip": Libraries.zip,
            "sum": Libraries.sum,
            "dict": Libraries.make_dict,
            "collections.OrderedDict": Libraries.make_dict,
            "collections.Counter": Libraries.make_default_dict,
            "collections.defaultdict": Libraries.make_default_dict,
            "range": Libraries.make_range,
            "itertools.count": Libraries.make_range,
            "print": Libraries.print,
            "tf.print": Libraries.print,
            "tf.gradients": Libraries.differentiate_in_graph,
            "keras.backend.gradients": Libraries.differentiate_in_graph,
            "tf.device": Libraries.make_context,
            "tf.get_collection": Libraries.make_context,
            "getattr": Libraries.get_attribute,
            "setattr": Libraries.set_attribute,
            "next": Libraries.take_next,
            "functools.partial": Libraries.make_partial,
            "typing.cast": Libraries.cast,
            "functools.reduce": Libraries.reduce,
            "isinstance": Libraries.ask_instance,
            "shutil.copyfileobj": Libraries.copy_file,
            "super": Libraries.take_super,
        }
    )
    return found


LIBRARY = _list_rows()
FAMILIES: tuple[tuple[tuple[str, ...], Row], ...] = (
    (SHOWERS, Libraries.call_shower),
    (("gym.wrappers.", "gymnasium.wrappers."), Libraries.wrap_environment),
    (KERAS_MADE, Libraries.make_keras),
    (DISTRIBUTIONS, Libraries.make_distribution),
    (("tf.data.",), Libraries.make_dataset),
    (RECORDS, Libraries.compute),
    (("tf.python.training.training_ops.",), Libraries.assign_in_graph),
    (OPTIMIZERS, Libraries.make_special),
    (PURE, Libraries.compute),
)
"""What is done for names that begin so; the first that fits counts."""


@lru_cache(maxsize=2**14)
def _find_row(name: str) -> Row | None:
    """Return what is done for a name of a library, or None for a name in no table."""
    if name in LIBRARY:
        return LIBRARY[name]
    if name in DATASETS:
        return Libraries.make_dataset
    if name in ("tf.Variable", "tf.GradientTape"):
        return Libraries.make_special
    for words, row in FAMILIES:
        if name.startswith(words):
            return row
    return None
