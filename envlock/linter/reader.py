"""Reads what the calls of a file do: by the rows of lint_names.toml, or as methods of something."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property

from envlock.linter import names as tables
from envlock.linter.arguments import find_seed, get_keyword, has_seed, is_none, is_shuffled
from envlock.linter.events import KERAS, NUMPY, OWN, PYTHON, TENSORFLOW, Event
from envlock.linter.module import get_last_word, read_literal
from envlock.linter.origins import Origins
from envlock.linter.project import File, Project

MODELS = ("keras.Model", "keras.Sequential", "keras.models.Model", "keras.models.Sequential")
FIXED = ("zeros", "ones", "constant", "identity", "get", "serialize", "deserialize")
"""Initializers that draw nothing."""


def read_events(project: Project, file: File) -> Iterator[Event]:
    """Yield the events of a file, in the order of the text."""
    if not file.module.imports and not file.module.starred:
        return
    reader = Reader(project, file)
    for call in file.module.list_nodes(ast.Call):
        function = call.func
        word = get_last_word(function)
        if word in tables.WORDS or (word in reader.aliases and isinstance(function, ast.Name)):
            yield from reader.read_call(call, function, word)
        elif isinstance(function, ast.Call):
            yield from reader.read_made(call, function)
    yield from reader.read_keys()


class Reader:
    """Reads the events of one file."""

    def __init__(self, project: Project, file: File) -> None:
        self.project = project
        self.file = file
        self.module = file.module
        self.origins = Origins(project, file)
        reach = project.list_reach(file)
        self.has_keras = not project.with_keras.isdisjoint(reach)
        self.has_tensorflow = self.has_keras or not project.with_tensorflow.isdisjoint(reach)

    def make(self, kind: str, of: str, name: str, node: ast.AST) -> Event:
        """Return an event at a place of this file."""
        return Event(kind, of, name, node, self.file.find_scope(node))

    def read_made(self, call: ast.Call, maker: ast.Call) -> Iterator[Event]:
        """Yield an initializer that is made and called at once: `GlorotUniform()((4, 4))`."""
        name = self.project.resolve(self.file, maker.func) or ""
        if _draws_weights(name) and not has_seed(maker):
            yield self.make("initializer", KERAS, name, call)

    def read_call(self, call: ast.Call, function: ast.expr, word: str) -> Iterator[Event]:
        """Yield what a call does."""
        name = self.project.resolve(self.file, function) or ""
        if name.partition(".")[0] in tables.LIBRARIES:
            yield from self.read_named(call, name)
        elif isinstance(function, ast.Attribute):
            if word in METHODS and not self.origins.is_own(call, function.value, word):
                yield from METHODS[word](self, call, word, function.value)
        elif word == "hash" and word not in self.module.own_names:
            yield self.make("hash", "", word, call)

    @cached_property
    def aliases(self) -> frozenset[str]:
        """Names of the file that may stand for something of another name."""
        origins = self.module.origins.items()
        found = {word for word, origin in origins if not origin.endswith(f".{word}")}
        return self.module.own_names | found

    def read_named(self, call: ast.Call, name: str) -> Iterator[Event]:
        """Yield what a call of a library's function does."""
        effect = tables.find_effect(name)
        if effect in PLAIN:
            yield self.make(*PLAIN[effect], name, call)
        elif effect in EFFECTS:
            yield from EFFECTS[effect](self, call, name)

    def read_keys(self) -> Iterator[Event]:
        """Yield what sorts by a salted hash or by a place in memory: `sorted(things, key=id)`."""
        for each in self.module.list_nodes(ast.keyword):
            word = getattr(each.value, "id", "")
            if each.arg == "key" and word in ("id", "hash") and word not in self.module.own_names:
                yield self.make("hash", "", word, each.value)

    # ------- seeds and generators

    def read_seed(self, call: ast.Call, name: str) -> Iterator[Event]:
        given = (
            call.args[0] if call.args else get_keyword(call, "seed", "a", "random_seed", "value")
        )
        # It seeds with ENVLOCK_SEED or 42 when it is given nothing.
        if given is None and name == "envlock.activate":
            given = ast.Constant(0)
        own = name.removesuffix("seed") if name.endswith("random.seed") else "-"
        problem = "none" if given is None else self.origins.find_chance(given, own)
        if problem:
            yield self.make("chance", problem, name, call)
            return
        for generator in tables.SEEDS[name]:
            yield self.make("seed", generator, name, call)

    def read_generator(self, call: ast.Call, name: str) -> Iterator[Event]:
        given = call.args[0] if call.args else find_seed(call)
        problem = "none" if given is None else self.origins.find_chance(given)
        if problem == "none":
            yield self.make("draw", PYTHON_OWN if name.startswith("random.") else OWN, name, call)
        elif problem:
            yield self.make("chance", problem, name, call)

    def read_user(self, call: ast.Call, name: str) -> Iterator[Event]:
        given = get_keyword(call, tables.NUMPY_USERS[name])
        # These shuffle only when asked to; train_test_split and image_dataset_from_directory do so
        # by default.
        is_fold = name.endswith("KFold")
        if not is_shuffled(call, default=not is_fold and not name.endswith("_from_array")):
            return
        if is_none(given):
            yield self.make("draw", NUMPY, name, call)
        elif given is not None and self.origins.find_chance(given) == "clock":
            yield self.make("chance", "clock", name, call)

    def read_own_entropy(self, call: ast.Call, name: str) -> Iterator[Event]:
        if "set_global_generator" not in self.module.text:
            yield self.make("entropy", OWN, name, call)

    def read_study(self, call: ast.Call, name: str) -> Iterator[Event]:
        if is_none(get_keyword(call, tables.OWN_GENERATORS[name])):
            yield self.make("draw", OWN, name, call)

    def read_entropy(self, call: ast.Call, name: str) -> Iterator[Event]:
        if not has_seed(call, tables.NEED_OP_SEED[name]):
            yield self.make("entropy", OWN, name, call)

    # ------- TensorFlow and Keras

    def is_seeded(self, call: ast.Call, at: int = -1) -> bool:
        """Return whether a call is given a seed that is not None for every caller."""
        given = find_seed(call, at)
        return given is not None and self.origins.find_chance(given) != "none"

    def read_operation(self, call: ast.Call, name: str) -> Iterator[Event]:
        if not self.is_seeded(call):
            yield self.make("draw", TENSORFLOW, name, call)

    def read_weights(self, call: ast.Call, name: str) -> Iterator[Event]:
        """Yield weights whose first values are drawn; another initializer is named where it is made."""
        given = get_keyword(call, "initializer", "kernel_initializer", "weights_initializer")
        if name in tables.VARIABLES:
            # get_variable(name, shape, dtype, initializer); with a name alone, it is one that exists.
            if given is None and len(call.args) > 3:
                given = call.args[3]
            if not is_none(given) or len(call.args) + len(call.keywords) < 2:
                return
        if not has_seed(call) and not isinstance(given, ast.Call):
            yield self.make("weights", TENSORFLOW, name, call)

    def read_layer(self, call: ast.Call, name: str) -> Iterator[Event]:
        if not has_seed(call):
            yield self.make("layer", KERAS, name, call)

    def read_keras(self, call: ast.Call, name: str) -> Iterator[Event]:
        last = name.rpartition(".")[2]
        weights = get_keyword(call, "weights")
        # Models of `applications` have the weights of ImageNet by default.
        pretrained = weights is None or read_literal(weights) is not None
        if name in MODELS or (name.startswith("keras.applications.") and not pretrained):
            yield self.make("model", KERAS, name, call)
        elif name.startswith("keras.layers.") and last[:1].isupper():
            if not name.endswith(tables.WEIGHTLESS):
                yield self.make("weighted", KERAS, name, call)
        elif _draws_weights(name) and not has_seed(call):
            yield self.make("weighted", KERAS, name, call)

    def read_noisy(self, call: ast.Call, name: str) -> Iterator[Event]:
        yield self.make("noisy", TENSORFLOW, name, call)
        if name.startswith("keras."):
            yield from self.read_keras(call, name)

    def read_sampler(self, call: ast.Call, name: str) -> Iterator[Event]:
        if is_shuffled(call, default=all(read_literal(each) is not False for each in call.args)):
            if not self.is_seeded(call, tables.SAMPLERS[name]):
                yield self.make("shuffle", TENSORFLOW, name, call)
            if name in tables.THREADED_QUEUES:
                yield from self.read_threaded(call, name)

    def read_threaded(self, call: ast.Call, name: str) -> Iterator[Event]:
        at = tables.THREADED_QUEUES[name]
        given = get_keyword(call, "num_threads")
        if given is None and 0 <= at < len(call.args):
            given = call.args[at]
        if at < 0 or (given is not None and read_literal(given) != 1):
            yield self.make("arrival", "queue", name, call)

    def read_arrival(self, call: ast.Call, name: str) -> Iterator[Event]:
        if read_literal(get_keyword(call, "workers")) != 1:
            yield self.make("arrival", "", name, call)

    def read_save(self, call: ast.Call, name: str) -> Iterator[Event]:
        given = get_keyword(call, tables.CLOCKED_SAVES[name])
        # It saves every 600 s if it is not told otherwise.
        by_default = name == "tf.train.Supervisor" and given is None
        never = is_none(given) or read_literal(given) == 0 or isinstance(given, ast.BinOp)
        if by_default or not never:
            yield self.make("clocked", "save", name, call)

    # ------- methods of something, and built-in functions

    def read_training(self, call: ast.Call, word: str, value: ast.expr) -> Iterator[Event]:
        """Yield where a model is trained: by its methods, or by an optimizer."""
        if self.origins.is_foreign(value):
            return
        if word in ("minimize", "apply_gradients", "compute_gradients", "get_updates"):
            if self.has_tensorflow:
                yield self.make("train", TENSORFLOW, word, call)
            return
        words = {each.arg for each in call.keywords}
        is_keras = self.has_keras or (self.has_tensorflow and words & tables.FIT_WORDS)
        if is_keras:
            # A `fit` of one thing can be that of a scaler of scikit-learn.
            many = len(call.args) > 1 or any(isinstance(each, ast.Starred) for each in call.args)
            if word != "fit" or many or None in words or words & tables.FIT_WORDS:
                yield self.make("train", KERAS, word, call)

    def read_estimator(self, call: ast.Call, word: str, value: ast.expr) -> Iterator[Event]:
        if get_keyword(call, "input_fn", "max_steps") is not None:
            yield self.make("train", TENSORFLOW, word, call)

    def read_gradient(self, call: ast.Call, word: str, value: ast.expr) -> Iterator[Event]:
        if "GradientTape" in self.module.text:
            yield self.make("step", TENSORFLOW, word, call)

    def read_shuffle(self, call: ast.Call, word: str, value: ast.expr) -> Iterator[Event]:
        """Yield a dataset's shuffle; that of a list or a generator returns nothing, or is given it."""
        given = find_seed(call, 1)
        chance = "none" if given is None else self.origins.find_chance(given)
        is_statement = isinstance(self.module.get_parent(call), ast.Expr)
        if not self.has_tensorflow or is_statement:
            yield from self.read_numpy(call, word, value)
        elif chance == "clock":
            yield self.make("chance", "clock", word, call)
        elif chance == "none":
            first = call.args[0] if call.args else get_keyword(call, "buffer_size")
            if first is not None and not isinstance(first, ast.List | ast.ListComp):
                yield self.make("shuffle", TENSORFLOW, word, call)

    def read_map(self, call: ast.Call, word: str, value: ast.expr) -> Iterator[Event]:
        given = get_keyword(call, "num_parallel_calls", "num_parallel_batches")
        if self.has_tensorflow and (given is not None or len(call.args) > 1):
            yield self.make("parallel", word, word, call)

    def read_numpy(self, call: ast.Call, word: str, value: ast.expr) -> Iterator[Event]:
        """Yield a draw of `np_random`, as environments have it."""
        if isinstance(value, ast.Attribute) and value.attr == "np_random":
            yield self.make("environment", "own", f"np_random.{word}", call)

    def read_sampling(self, call: ast.Call, word: str, value: ast.expr) -> Iterator[Event]:
        """Yield a draw of a table, of an environment's space, or of a distribution."""
        makers = self.origins.list_makers(value)
        if isinstance(value, ast.Attribute) and value.attr in ("action_space", "observation_space"):
            yield self.make("environment", "space", f"{value.attr}.sample", call)
        elif has_seed(call):
            return
        elif word == "rvs" or ("pandas" in self.module.packages and _takes_rows(call)):
            yield self.make("draw", NUMPY, word, call)
        elif any(name.startswith(tables.DISTRIBUTIONS) for name in makers):
            yield self.make("draw", TENSORFLOW, word, call)

    def read_flow(self, call: ast.Call, word: str, value: ast.expr) -> Iterator[Event]:
        makers = self.origins.list_makers(value)
        known = word != "flow" or any(name.endswith(".ImageDataGenerator") for name in makers)
        if known and self.has_keras and not has_seed(call) and is_shuffled(call, default=True):
            yield self.make("draw", NUMPY, word, call)

    def read_reset(self, call: ast.Call, word: str, value: ast.expr) -> Iterator[Event]:
        given = get_keyword(call, "seed")
        if given is None and word == "seed" and call.args:
            given = call.args[0]
        if given is not None:
            is_chance = word == "seed" and is_none(given)
            of = "space" if "_space" in getattr(value, "attr", "") else ""
            yield self.make(*(("chance", "none") if is_chance else ("reset", of)), word, call)

    def read_listing(self, call: ast.Call, word: str, value: ast.expr) -> Iterator[Event]:
        yield self.make("list", "", word, call)

    def read_arriving(self, call: ast.Call, word: str, value: ast.expr) -> Iterator[Event]:
        yield self.make("arrival", "", word, call)

    def read_get(self, call: ast.Call, word: str, value: ast.expr) -> Iterator[Event]:
        # With an argument, it is that of a dictionary.
        if word != "get" or not (call.args or call.keywords):
            yield self.make("get", "", word, call)


PYTHON_OWN = f"{OWN} {PYTHON}"
PLAIN = {
    "python_draws": ("draw", PYTHON),
    "numpy_draws": ("draw", NUMPY),
    "distributions": ("distribution", TENSORFLOW),
    "environments": ("environment", OWN),
    "listings": ("list", ""),
    "clocks": ("clock", ""),
    "step_makers": ("train", TENSORFLOW),
    "parallel_maps": ("parallel", "map_and_batch"),
    "workers": ("worker", ""),
    "switches": ("switch", ""),
}
"""Effects that a call has whatever it is given: kind and generator of the event."""
EFFECTS: dict[str, Callable[[Reader, ast.Call, str], Iterator[Event]]] = {
    "seeds": Reader.read_seed,
    "generators": Reader.read_generator,
    "numpy_users": Reader.read_user,
    "own_generators": Reader.read_study,
    "need_own_seed": Reader.read_entropy,
    "own_entropy": Reader.read_own_entropy,
    "samplers": Reader.read_sampler,
    "random_operations": Reader.read_operation,
    "random_weights": Reader.read_weights,
    "random_layers": Reader.read_layer,
    "noisy_on_gpu": Reader.read_noisy,
    "keras": Reader.read_keras,
    "arrivals": Reader.read_arrival,
    "threaded_queues": Reader.read_threaded,
    "clocked_saves": Reader.read_save,
}
METHODS: dict[str, Callable[[Reader, ast.Call, str, ast.expr], Iterator[Event]]] = {
    **dict.fromkeys(tables.NUMPY_DRAWS, Reader.read_numpy),
    **dict.fromkeys(tables.TRAINING_METHODS, Reader.read_training),
    **dict.fromkeys(tables.ARRIVAL_METHODS, Reader.read_arriving),
    **dict.fromkeys(tables.LISTING_METHODS, Reader.read_listing),
    **dict.fromkeys(("shuffle", "shuffle_and_repeat"), Reader.read_shuffle),
    **dict.fromkeys(("map", "map_and_batch"), Reader.read_map),
    **dict.fromkeys(("sample", "rvs"), Reader.read_sampling),
    **dict.fromkeys(("flow", "flow_from_directory", "flow_from_dataframe"), Reader.read_flow),
    **dict.fromkeys(("seed", "reset"), Reader.read_reset),
    **dict.fromkeys(("get", "get_nowait", "recv", "recv_multipart", "recv_pyobj"), Reader.read_get),
    "train": Reader.read_estimator,
    "gradient": Reader.read_gradient,
}


def _draws_weights(name: str) -> bool:
    """Return whether a name is that of an initializer which draws."""
    last = name.rpartition(".")[2].lower().replace("_", "")
    return name.startswith("keras.initializers.") and last not in FIXED


def _takes_rows(call: ast.Call) -> bool:
    """Return whether `sample` is that of a table: `rows.sample(frac=1)`, `rows.sample(len(rows))`."""
    if {"frac", "n"} & {each.arg for each in call.keywords}:
        return True
    first = call.args[0] if len(call.args) == 1 and not call.keywords else None
    return isinstance(first, ast.Call) and getattr(first.func, "id", "") == "len"
