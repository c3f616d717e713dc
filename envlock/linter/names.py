"""The names the rules look for, canonical (`tf.`, `keras.`, `numpy.`); they are rows of
lint_names.toml.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from envlock.data.lint_tables import load_lint_names


@lru_cache(maxsize=2**14)  # a name is asked for wherever it stands
def name_starred(star: str, name: str) -> str:
    """Return the name of a library that `from star import *` gives as a name."""
    if canonical(star).startswith("keras.") and name in STARRED:
        return STARRED[name]
    return canonical(f"{star}.{name}")


@lru_cache(maxsize=65536)
def canonical(dotted: str) -> str:
    """Return the one way in which the rules write this name."""
    words = dotted.split(".")
    if words[0] in ("tensorflow", "tf"):
        words[0] = "tf"
        while words[1:3] in (["compat", "v1"], ["compat", "v2"]):
            del words[1:3]
        inner = words[1:3]
        if inner == ["python", "keras"]:
            del words[:2]
        # `tensorflow.python.ops.math_ops.add_n` is `tf.add_n`: without the file.
        elif inner in (["python", "ops"], ["python", "framework"]):
            if words[3:4] in (["rnn_cell"], ["rnn_cell_impl"]):  # a module in TensorFlow, too
                words[1:4] = ["nn", "rnn_cell"]
            else:
                del words[1:4]
        elif words[1:2] == ["keras"]:
            del words[0]
        elif words[1:4] == ["contrib", "rnn", "core_rnn_cell"]:  # TensorFlow 1.0 and 1.1
            del words[3]
    elif words[0] == "tf_keras":
        words[0] = "keras"
    if words[0] == "keras":
        _shorten(words)
    return ".".join(words)


def _shorten(words: list[str]) -> None:
    """Take out of a name of Keras what says only where it was kept once."""
    while words[1:2] in (["src"], ["api"]):
        del words[1]
    if words[1:2] == ["layers"]:
        while words[2:3] in (["experimental"], ["preprocessing"]):
            del words[2]


_GROUPS = load_lint_names()


def _names(group: str) -> frozenset[str]:
    return frozenset(_GROUPS[group].names)


def _values(group: str) -> dict[str, Any]:
    return dict(_GROUPS[group].values)


def _list_libraries() -> frozenset[str]:
    """Return the packages of all names with a dot; the others are methods, keywords and words."""
    found = {"tensorflow", "tf_keras"}
    for group in _GROUPS.values():
        for name in (*group.names, *group.values):
            if "." in name:
                found.add(name.partition(".")[0])
    return frozenset(found)


def _list_samplers() -> dict[str, int | None]:
    """Return the position of the seed of what samples, None where it has only a name.

    In the table that is -1, as TOML has no null.
    """
    found: dict[str, int | None] = {}
    for name, at in _values("samplers").items():
        found[name] = None if at < 0 else at
    return found


LIBRARIES = _list_libraries()
"""The packages of which the rules know a name."""
DATA = frozenset({"tf", "keras", "numpy", "pandas", "torch", "sklearn", "datasets", "jax"})
"""Packages of programs for which the order of data matters."""
SWITCH = "tf.config.experimental.enable_op_determinism"
SEEDS: dict[str, tuple[str, ...]] = {
    name: tuple(seeded) for name, seeded in _values("seeds").items()
}
OLD_PATCHES = tuple(sorted(_names("old_patches")))
SETTERS = _names("setters") | {SWITCH, *SEEDS, *OLD_PATCHES}
"""Functions that do something only when they are called."""
TRAINING_METHODS = _names("training_methods")
RANDOM_OPS = _names("random_operations")
OWN_ENTROPY: dict[str, str] = _values("own_entropy")
NEED_OP_SEED: dict[str, int] = _values("need_own_seed")
RANDOM_LAYERS = _names("random_layers")
TEST_CASES = _names("test_cases")
OWN_GENERATORS: dict[str, str] = {
    **_values("own_generators"),
    **_values("own_generators_of_optuna"),
}
NUMPY_OWN = _names("numpy_generators")
NUMPY_NOT_DRAWN = _names("numpy_not_drawn")
NUMPY_USERS: dict[str, str] = _values("numpy_users")
NUMPY_RESEEDERS: dict[str, str] = _values("numpy_reseeders")
PYTHON_DRAWS = _names("python_draws")
CLOCKS = _names("clocks")
CLOCKED_SAVES: dict[str, str] = _values("clocked_saves")
LISTINGS = _names("listings")
LISTING_METHODS = _names("listing_methods")
PYTHON_FUNCTIONS: dict[str, int] = _values("python_functions")
DATASETS = _names("datasets")
SORTERS = _names("sorters")
KEEPERS = _names("keepers")
ARRIVALS = _names("arrivals") | _names("unordered_maps")
ARRIVAL_METHODS = _names("arrival_methods")
QUEUES = _names("queues")
GENERATORS = _names("generators")
GENERATOR_METHODS = _names("generator_methods")
RANDOM_WEIGHTS = _names("random_weights")
DISTRIBUTIONS = tuple(sorted(_names("distributions")))
RECORDS = tuple(sorted(_names("records")))
STEP_MAKERS = _names("step_makers")
ASSIGNING_FUNCTIONS = _names("assigning_functions")
STARRED: dict[str, str] = _values("starred")
SAMPLERS = _list_samplers()
THREADED_QUEUES: dict[str, int] = _values("threaded_queues")
NUMPY_METHODS: dict[str, list[str]] = _values("numpy_methods")
ENVIRONMENTS = _names("environments")
STARTS_NOTHING = tuple(sorted(_names("starts_nothing")))
TENSORFLOW_1 = _names("of_sessions")
UNSHARED_RESULTS = _names("unshared_results")
SPARSE_OPTIMIZERS: dict[str, list[str]] = _values("sparse_optimizers")
LEGACY_KERAS = _names("legacy_keras")
GONE_MODULES: dict[str, str] = _values("gone_modules")
SHOWERS = tuple(sorted(_names("showers")))
SHOWING_METHODS = _names("showing_methods")
FILLING_METHODS = _names("filling_methods")
ASKING_METHODS = _names("asking_methods")
PICKS = _names("picks")
PURE = tuple(sorted(_names("pure")))
NAMING_KEYWORDS = _names("naming_keywords")
UNORDERED_FUNCTIONS = _names("unordered_functions")
UNORDERED_KEYWORDS = _names("unordered_keywords")
DATASET_METHODS = _names("dataset_methods")
WEIGHTLESS = tuple(sorted(_names("weightless")))
