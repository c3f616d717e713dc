"""The names the rules look for, canonical (`tf.`, `keras.`, `numpy.`); they are rows of
lint_names.toml.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any

from envlock.data.lint_tables import load_lint_names


@lru_cache(maxsize=65536)
def canonical(dotted: str) -> str:
    """Return the one way in which the rules write this name."""
    words = dotted.split(".")
    if words[0] in ("tensorflow", "tf"):
        words[0] = "tf"
        _shorten_tensorflow(words)
    elif words[0] == "tf_keras":
        words[0] = "keras"
    if words[0] == "keras":
        _shorten(words)
    return ".".join(words)


def _shorten_tensorflow(words: list[str]) -> None:
    """Take out of a name of TensorFlow the files and packages that it is passed on by."""
    while words[1:3] in (["compat", "v1"], ["compat", "v2"]):
        del words[1:3]
    inner = words[1:3]
    if inner == ["python", "keras"]:
        del words[:2]
    elif inner == ["python", "platform"] and words[3:4] == ["gfile"]:
        del words[1:3]
    # `tensorflow.python.ops.math_ops.add_n` is `tf.add_n`: without the file.
    elif inner in (["python", "ops"], ["python", "framework"]):
        is_module = words[3:4] in (["rnn_cell"], ["rnn_cell_impl"])  # in TensorFlow, too
        words[1:4] = ["nn", "rnn_cell"] if is_module else []
    elif words[1:2] == ["keras"]:
        del words[0]
    elif words[1:4] == ["contrib", "rnn", "core_rnn_cell"]:  # TensorFlow 1.0 and 1.1
        del words[3]


def _shorten(words: list[str]) -> None:
    """Take out of a name of Keras what says only where it was kept once."""
    while words[1:2] in (["src"], ["api"]):
        del words[1]
    if words[1:2] == ["layers"]:
        while words[2:3] in (["experimental"], ["preprocessing"]):
            del words[2]


_GROUPS = load_lint_names()


def _names(group: str) -> frozenset[str]:
    return frozenset(_GROUPS[group].list_names())


def _values(group: str) -> dict[str, Any]:
    return _GROUPS[group].get_values()


def _list_words(names: Collection[str]) -> frozenset[str]:
    """Return the last words of names, by which a call is worth a look."""
    return frozenset(name.rpartition(".")[2] for name in names)


SWITCH = "tf.config.experimental.enable_op_determinism"
SEEDS: dict[str, list[str]] = _values("seeds")
"""The generators that each function seeds: `tf`, `numpy`, `python`, or `keras` whatever the version."""
NUMPY_USERS: dict[str, str] = _values("numpy_users")
OWN_GENERATORS: dict[str, str] = _values("own_generators")
NEED_OP_SEED: dict[str, int] = _values("need_own_seed")
SAMPLERS: dict[str, int] = _values("samplers")
THREADED_QUEUES: dict[str, int] = _values("threaded_queues")
CLOCKED_SAVES: dict[str, str] = _values("clocked_saves")
GONE_MODULES: dict[str, str] = _values("gone_modules")
NUMPY_NOT_DRAWN = _names("numpy_not_drawn")
NUMPY_DRAWS = _names("numpy_draws")
CLOCKS = _names("clocks")
TENSORFLOW_1 = _names("of_sessions")
FRAMEWORK_METHODS = _names("framework_methods")
TRAINING_METHODS = _names("training_methods")
LISTING_METHODS = _names("listing_methods")
ARRIVAL_METHODS = _names("arrival_methods")
SHOWING_METHODS = _names("showing_methods")
FIT_WORDS = _names("fit_words")
SETTLING = _names("settling")
TEXTUAL = _names("textual")
UNROLLING = _names("unrolling")
FEEDING = _names("feeding")
FOREIGN = _names("foreign")
DISTRIBUTIONS = tuple(_names("distributions"))
SHOWERS = tuple(_names("showers"))
STARTS_NOTHING = tuple(_names("starts_nothing"))
WEIGHTLESS = tuple(_names("weightless"))
OLD_PATCHES = tuple(sorted(_names("switches") - {SWITCH}))
SETTERS = _names("switches") | _names("seeds")
"""Functions that do something only when they are called."""
DATA = frozenset(
    {"tf", "keras", "numpy", "pandas", "torch", "sklearn", "datasets", "jax", "tensorflow_datasets"}
)
"""Packages of programs for which the order of data matters."""
VARIABLES = frozenset({"tf.contrib.framework.model_variable", "tf.get_variable"})
"""What makes a variable by an initializer of its own where it is given none."""

_EFFECTS: dict[str, str] = {
    name: effect
    # Of a name in two groups the later one counts.
    for effect in (
        "workers",
        "step_makers",
        "noisy_on_gpu",
        "clocks",
        "clocked_saves",
        "threaded_queues",
        "arrivals",
        "listings",
        "environments",
        "random_layers",
        "random_weights",
        "random_operations",
        "samplers",
        "need_own_seed",
        "own_entropy",
        "own_generators",
        "numpy_users",
        "generators",
        "python_draws",
        "switches",
        "seeds",
    )
    for name in _names(effect)
}
LIBRARIES = frozenset(
    {"tensorflow", "tf_keras"}
    | {
        name.partition(".")[0]
        for row in _GROUPS.values()
        for name in row.list_names()
        if name.find(".") > 0
    }
)
"""The packages of which the rules know a name; names without a dot are methods, keywords and words."""
WORDS = _list_words(
    _EFFECTS.keys()
    | NUMPY_DRAWS
    | TRAINING_METHODS
    | ARRIVAL_METHODS
    | LISTING_METHODS
    | _names("keras_words")
    | _names("read_methods")
    | {"hash"}
)


@lru_cache(maxsize=2**14)
def find_effect(name: str) -> str:
    """Return the effect of a library's function, or an empty text."""
    if name in _EFFECTS:
        return _EFFECTS[name]
    head, _, last = name.rpartition(".")
    if head == "numpy.random" and last not in NUMPY_NOT_DRAWN and last.islower():
        return "numpy_draws"
    if name.startswith(DISTRIBUTIONS):
        return "distributions"
    if last == "map_and_batch":
        return "parallel_maps"
    return "keras" if name.startswith("keras.") else ""
