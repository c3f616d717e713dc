"""Seeds that are missing, and random operations that nothing seeds or nothing can."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from envlock.linter.datasets import is_chained
from envlock.linter.defaults import default, is_off, is_optional
from envlock.linter.flows import Flow
from envlock.linter.module import Definition, Hit, Module, argument, constant, has_star, in_order
from envlock.linter.names import (
    DISTRIBUTIONS,
    ENVIRONMENTS,
    NEED_OP_SEED,
    NUMPY_METHODS,
    NUMPY_NOT_DRAWN,
    NUMPY_OWN,
    NUMPY_RESEEDERS,
    NUMPY_USERS,
    OWN_ENTROPY,
    PYTHON_DRAWS,
    RANDOM_OPS,
    RANDOM_WEIGHTS,
    SAMPLERS,
    SEEDS,
    TENSORFLOW_1,
    TRAINING_NAMES,
)
from envlock.linter.program import (
    DATA,
    HANDLES_DATA,
    KERAS,
    LEARNS,
    MAY_LEARN,
    NUMPY,
    PROJECT,
    PYTHON,
    SEEDS_EACH,
    SEEDS_ENVIRONMENT,
    SEEDS_SPACES,
    TF,
    WRITERS,
    builds_models,
    drawn_from,
)
from envlock.linter.purposes import FITS, is_dummy, is_no_data
from envlock.linter.shown import only_shows
from envlock.linter.stateful import OTHER_MODELS, hands_on, is_of_keras, is_tape

FLOWS = ("flow_from_directory", "flow_from_dataframe", "flow")
SHUFFLES = {
    "list_files": 1,
    "string_input_producer": 2,
    "slice_input_producer": 2,
    "range_input_producer": 2,
}
"""What shuffles by default, and the position of the argument that decides."""
SHUFFLING_IF_TOLD = ("KFold", "timeseries_dataset_from_array")


VECTOR = re.compile("Vec(tor)?(ized)?Env|make_vec")
"""What seeds each of the environments that it is made of."""


def and_more(drawn: Sequence[object]) -> str:
    """Return how many more uses follow the one that is reported."""
    return f", and {len(drawn) - 1} more below" if len(drawn) > 1 else ""


def partial(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV201: `tf.random.set_seed` and no `random.seed`, where Keras draws from `random`; the first in a file."""
    calls = module.called(SEEDS)
    if not OTHER_MODELS.isdisjoint(module.packages - {"sklearn"}) and not builds_models(module):
        return  # the model that is trained beside tf.data is of another package
    python = {module.function_around(call) for call, name in calls if "python" in SEEDS[name]}
    alone = [
        call
        for call, name in calls
        if SEEDS[name] == ("tf",) and module.function_around(call) not in python
    ]
    alone = [
        call for call in alone if not (call.args and constant(call.args[0]) is None)
    ]  # those are ENV207's
    if alone and module.named.keys().isdisjoint(
        TENSORFLOW_1
    ):  # in sessions Keras takes its seeds from the graph
        more = f" (as {len(alone) - 1} more below)" if len(alone) > 1 else ""
        message = f"this seeds TensorFlow{more}, but nothing seeds Python's random, from which Keras draws its seeds"
        yield Hit(alone[0], message, needs=frozenset({KERAS}), unless=frozenset({PYTHON}))


def model_without_seed(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV202: a model is trained, and nothing seeds anything."""
    trainers = [
        call
        for call, _ in module.methods(FITS)
        if is_of_keras(module, call) and not hands_on(module, call)
    ]
    tapes = [call for call, _ in module.called(TRAINING_NAMES)] if module.uses_keras else []
    for call in in_order([*trainers, *tapes]):
        if call in trainers or is_tape(module, call):
            message = "a Keras model is trained here, but nothing seeds its weights"
            yield Hit(call, message, needs=frozenset({KERAS}), unless=frozenset({TF, PYTHON}))
            return


def numpy(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV205: numpy's random numbers; the first use of the global generator, and every generator of one's own."""
    for call, name in module.called(NUMPY_OWN):
        if not has_star(call) and _has_no_entropy(call) and not _is_seeded_later(module, call):
            yield Hit(call, f"{name} without a seed takes entropy from the operating system")
    for call, name in module.called(NUMPY_RESEEDERS):
        given = argument(call, NUMPY_RESEEDERS[name])
        if (
            not has_star(call)
            and (given is None or constant(given) is None)
            and module.worded(("next_batch",))
        ):
            message = "read_data_sets without a seed shuffles by numpy's generator, which the system then seeds"
            yield Hit(call, message, unless=frozenset({NUMPY, TF}))
    drawing = [
        name for name in module.named if name in NUMPY_USERS or name.startswith("numpy.random.")
    ]
    drawn = [(call, name) for call, name in module.called(drawing) if _draws(call, name)]
    drawn += [
        (call, method.attr)
        for call, method in module.methods(FLOWS)
        if _is_unseeded_flow(module, call)
    ]
    drawn += [
        (call, method.attr)
        for call, method in module.methods(NUMPY_METHODS)
        if _draws_by_method(module, call)
    ]
    drawn = _that_matter(module, drawn, "numpy.random.shuffle")
    if drawn:
        call, name = drawn[0]
        message = (
            f"{name} draws from numpy's global generator{and_more(drawn)}, which nothing seeds"
        )
        yield Hit(call, message, unless=frozenset({NUMPY}))


def _that_matter(
    module: Module, drawn: list[tuple[ast.Call, str]], shuffle: str
) -> list[tuple[ast.Call, str]]:
    """Return draws in the order of the text, without shuffles whose order reaches no data and what only shows."""
    kept = [each for each in drawn if each[1] != shuffle or Flow(module).shuffled(each[0])]
    kept = [
        each for each in kept if not is_no_data(module, each[0]) and not only_shows(module, each[0])
    ]
    seeds = module.named.get(shuffle.replace("shuffle", "seed"), [])
    kept = [each for each in kept if not _is_seeded_before(module, each[0], seeds)]
    return sorted(kept, key=lambda each: each[0].lineno)


def _is_seeded_before(module: Module, call: ast.Call, seeds: Sequence[ast.Call]) -> bool:
    """Return whether the last seed before a draw, in the same function, has a number: what follows may take it back."""
    here = module.function_around(call) if seeds else None
    before = [
        each for each in seeds if each.lineno < call.lineno and module.function_around(each) is here
    ]
    last = next(reversed(before), None)
    given = [] if last is None or is_off(module, last) else last.args[:1]
    fixed = (each for each in given if constant(each) is not None and not drawn_from(module, each))
    return any(not is_optional(module, each) for each in fixed)


def _draws(call: ast.Call, name: str) -> bool:
    """Return whether a call draws from numpy's global generator."""
    if name in NUMPY_USERS:
        given = argument(call, NUMPY_USERS[name])
        told = constant(argument(call, "shuffle"))
        shuffles = told is True if name.endswith(SHUFFLING_IF_TOLD) else told is not False
        return shuffles and not has_star(call) and (given is None or constant(given) is None)
    words = name.split(".")
    plain = words[:2] == ["numpy", "random"] and len(words) == 3 and words[2][:1].islower()
    return plain and name not in NUMPY_OWN and words[2] not in NUMPY_NOT_DRAWN


def _is_unseeded_flow(module: Module, call: ast.Call) -> bool:
    """Return whether a generator of images shuffles without a seed, as it does by default."""
    if not module.uses_keras or not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "flow" and not _is_of_images(module, call.func.value):
        return False
    seed, shuffle = argument(call, "seed"), argument(call, "shuffle")
    seeded = seed is not None and constant(seed) is not None
    return not seeded and constant(shuffle) is not False and not has_star(call)


def _is_of_images(module: Module, node: ast.expr) -> bool:
    made = [each for each in (node, *module.values(node)) if isinstance(each, ast.Call)]
    return any((module.name(each.func) or "").endswith(".ImageDataGenerator") for each in made)


def _draws_by_method(module: Module, call: ast.Call) -> bool:
    """Return whether a table of pandas or a distribution of SciPy is sampled without a state of its own."""
    word = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    given = {keyword.arg for keyword in call.keywords}
    of_pandas = "pandas" in module.packages and not given.isdisjoint(NUMPY_METHODS[word])
    of_scipy = "scipy" in module.packages and not NUMPY_METHODS[word]
    state = argument(call, "random_state")
    seeded = has_star(call) or (state is not None and constant(state) is not None)
    return (of_pandas or of_scipy) and not seeded


def _is_seeded_later(module: Module, call: ast.Call) -> bool:
    """Return whether what a call makes gets a name, on which the method `seed` is called."""
    assign = module.parent(call)
    names = (
        [ast.unparse(target) for target in assign.targets] if isinstance(assign, ast.Assign) else []
    )
    return any(ast.unparse(method.value) in names for _, method in module.methods(("seed",)))


def _has_no_entropy(call: ast.Call) -> bool:
    given = argument(call, "seed", 0) or argument(call, "entropy")
    return given is None or constant(given) is None


def python(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV206: Python's random numbers; the first use of the global generator, and every generator of one's own."""
    for call, name in module.called(("random.Random", "random.SystemRandom")):
        if (
            name == "random.Random"
            and not has_star(call)
            and (not call.args or constant(call.args[0]) is None)
        ):
            yield Hit(
                call, "random.Random() without a seed takes entropy from the operating system"
            )
        if name == "random.SystemRandom":
            yield Hit(call, "random.SystemRandom cannot be seeded", fix="Use random.Random(seed).")
    drawn = _that_matter(module, module.called(PYTHON_DRAWS), "random.shuffle")
    if drawn:
        call, name = drawn[0]
        message = (
            f"{name} draws from Python's global generator{and_more(drawn)}, which nothing seeds"
        )
        yield from beside_data(module, Hit(call, message, unless=frozenset({PYTHON})))


def beside_data(module: Module, hit: Hit) -> Iterator[Hit]:
    """Yield a hit less where it is a tool's: a file without data that writes none, in a project that has some."""
    if DATA & module.packages or module.methods(WRITERS):
        yield hit
    else:
        yield replace(hit, needs=hit.needs | {HANDLES_DATA})
        yield replace(hit, unless=hit.unless | {PROJECT})


def dataset(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV203: shuffle, list_files and samplers without a seed."""
    if not {"tf", "keras"} & module.packages:
        return
    makers = [call for call, _ in module.called(SAMPLERS)]
    for call in (*makers, *(call for call, _ in module.methods(("shuffle",)))):
        found = None if has_star(call) else _unseeded(module, call)
        if found is not None:
            yield Hit(call, found, unless=frozenset({TF}))


def _unseeded(module: Module, call: ast.Call) -> str | None:
    """Return what a call that makes or shuffles a dataset leaves to chance, or None."""
    name = module.name(call.func) or ""
    if name in SAMPLERS:
        at = SHUFFLES.get(name.rpartition(".")[2])
        ordered = default(module, argument(call, "shuffle", at), parameters=True) is False
        if ordered or not _is_unseeded(module, call, SAMPLERS[name]):
            return None
        shuffles = name == "tf.data.Dataset.list_files"
        return (
            f"{name} shuffles by default, and nothing seeds it"
            if shuffles
            else f"{name} without a seed"
        )
    shuffles = (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "shuffle"
        and _is_unseeded(module, call, 1)
    )
    return (
        "the dataset is shuffled without a seed" if shuffles and is_chained(module, call) else None
    )


def operation(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV204: the first random operation in a file without a seed of its own or a global one."""
    called = module.called((RANDOM_OPS | RANDOM_WEIGHTS) - NEED_OP_SEED.keys())
    called += [
        (call, "sample")
        for call, each in module.methods(("sample",))
        if _is_distribution(module, each.value)
    ]
    called += [each for each in module.called(("tf.get_variable",)) if _is_new_variable(each[0])]
    drawn = [
        (call, name)
        for call, name in called
        if _is_unseeded(module, call, None) and not has_star(call)
    ]
    drawn = [each for each in drawn if not is_dummy(module, each[0])]
    drawn += _handed(module)
    drawn = sorted(
        (each for each in drawn if not _is_given_weights(*each)), key=lambda each: each[0].lineno
    )
    others = [each for each in drawn if not _is_of_weights(module, *each)]
    inside = bool(drawn) and module.function_around(drawn[0][0]) is not None
    learns = MAY_LEARN if inside else LEARNS
    for found, needs, unless in (
        (drawn, {learns}, set()),
        (others, set(), {learns}),
    ):  # weights count where they learn
        if found:
            call, name = found[0]
            message = (
                f"{name} draws from TensorFlow's generator{and_more(found)}, which nothing seeds"
            )
            yield Hit(call, message, needs=frozenset(needs), unless=frozenset({TF} | unless))


def _handed(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """Yield the calls that are given a function that draws: `tf.vectorized_map(tf.random.shuffle, rows)`."""
    for call in module.nodes(ast.Call):
        for given in call.args:
            name = module.name(given) if isinstance(given, ast.Attribute) else None
            if name in RANDOM_OPS and str(name).startswith("tf.random."):
                yield call, str(name)


def _is_of_weights(module: Module, call: ast.Call, name: str) -> bool:
    """Return whether a draw gives a variable its first values."""
    if name in RANDOM_WEIGHTS or name == "tf.get_variable":
        return True
    around = module.parent(call)
    while isinstance(around, ast.BinOp | ast.keyword):
        around = module.parent(around)
    return isinstance(around, ast.Call) and module.name(around.func) == "tf.Variable"


def _is_distribution(module: Module, node: ast.expr) -> bool:
    """Return whether an expression is a distribution, also one that a function of this file returns."""
    calls = [each for each in (node, *module.values(node)) if isinstance(each, ast.Call)]
    functions = [
        each
        for each in (module.definition(call.func) for call in calls)
        if isinstance(each, Definition)
    ]
    given = [
        each.value
        for one in functions
        for each in ast.walk(one)
        if isinstance(each, ast.Return) and each.value
    ]
    returned = [value for each in given for value in (each, *module.values(each))]
    made = [each.func for each in (*calls, *returned) if isinstance(each, ast.Call)]
    return any(
        (module.name(each) or "").startswith(DISTRIBUTIONS)
        for each in (*made, *_said_of(module, node))
    )


def _said_of(module: Module, node: ast.expr) -> Iterator[ast.expr]:
    """Yield the classes that a file says a name is of: as a parameter, or where it asks."""
    for binding in (module.bindings(node) or []) if isinstance(node, ast.Name) else []:
        annotation = (
            getattr(binding.node, "annotation", None) if binding.kind == "parameter" else None
        )
        yield from [annotation] if annotation is not None else []
    for call in module.worded(("isinstance",)):
        if len(call.args) == 2 and ast.unparse(call.args[0]) == ast.unparse(node):
            yield call.args[1]


def _last_word(node: ast.expr) -> str:
    return getattr(node, "attr", "") or getattr(node, "id", "")


def _is_new_variable(call: ast.Call) -> bool:
    """Return whether tf.get_variable makes a variable with the default values: one without a shape is there already."""
    return argument(call, "initializer", 3) is None and argument(call, "shape", 1) is not None


def _is_given_weights(call: ast.Call, name: str) -> bool:
    """Return whether a layer gets an initializer for its weights, which is judged where it is made."""
    return name in RANDOM_WEIGHTS and any(
        "initializer" in (keyword.arg or "") for keyword in call.keywords
    )


def environment(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV209: an environment of Gym that nothing seeds."""
    made = module.called(ENVIRONMENTS)
    listed = [(call, name) for call, name in made if _is_listed(module, call)]
    for call, name in [each for each in made if each not in listed][:1]:
        yield Hit(
            call,
            f"{name} makes an environment that nothing seeds",
            unless=frozenset({SEEDS_ENVIRONMENT}),
        )
    for call, name in listed[:1]:
        yield Hit(
            call,
            f"{name} makes environments of a list, which nothing seeds",
            unless=frozenset({SEEDS_EACH}),
        )
    sampled = [
        call
        for call, method in module.methods(("sample",))
        if _last_word(method.value).endswith("space")
    ]
    for call in sampled[:1]:
        yield Hit(
            call,
            "the space of an environment is sampled, and nothing seeds it",
            unless=frozenset({SEEDS_SPACES}),
        )


def _is_listed(module: Module, call: ast.Call) -> bool:
    """Return whether an environment becomes one of a list, which no vector of environments is made of here."""
    node: ast.AST = call
    for around in module.ancestors(call):
        if isinstance(around, ast.ListComp):
            assign = module.parent(around)
            kept = isinstance(assign, ast.Assign) and node is around.elt
            return kept and not any(VECTOR.search(word) for word in module.words)
        if (
            isinstance(around, ast.Call)
            and node is not around.func
            and getattr(around.func, "attr", "") == "append"
        ):
            return not any(VECTOR.search(word) for word in module.words)
        if not isinstance(around, ast.Attribute | ast.Call):
            return False
        node = around
    return False


def own_entropy(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV208: what the global seed does not reach."""
    setters = module.named.get("tf.random.set_global_generator", [])
    given = any(call.args and constant(call.args[0]) is not None for call in setters)
    for call, name in module.called({*OWN_ENTROPY, *NEED_OP_SEED}):
        seed = argument(call, "seed", NEED_OP_SEED.get(name))
        if name in OWN_ENTROPY and not (given and name == "tf.random.get_global_generator"):
            message = f"{name} takes entropy from the operating system, whatever the seeds are"
            yield Hit(call, message, fix=OWN_ENTROPY[name])
        elif (
            name in NEED_OP_SEED
            and not has_star(call)
            and (seed is None or constant(seed) in (None, 0))
        ):
            yield Hit(call, f"{name} ignores the global seed", fix="Pass it a seed that is not 0.")


def _is_unseeded(module: Module, call: ast.Call, position: int | None) -> bool:
    given = argument(call, "seed", position)
    return (
        given is None
        or constant(given) is None
        or (isinstance(given, ast.Name) and is_optional(module, given))
    )
