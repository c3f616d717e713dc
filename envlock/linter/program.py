"""What a rule must know of the other files: what the programs that a file is part of seed and turn on.

A file is part of every program that imports it, directly or not; what any file of such a program does counts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from envlock.data.determinism import holds
from envlock.linter.defaults import given_by_default, handed_to_worker, is_off, is_optional
from envlock.linter.environ import assignments
from envlock.linter.module import Definition, Module, argument, constant
from envlock.linter.names import (
    EVALUATING_WORDS,
    PYTHON_DRAWS,
    SEEDS,
    STARTED,
    SWITCHES,
    TENSORFLOW_1,
    TRAINING_METHODS,
    TRAINING_NAMES,
    TRAINING_WORDS,
)
from envlock.linter.places import Places, absolute
from envlock.linter.purposes import words
from envlock.linter.stateful import draws

LOADERS = ("importlib.import_module", "imp.load_source", "importlib.util.spec_from_file_location")
TRUE = ("1", "true", "True", "TRUE")


_KERAS = (
    "layers.",
    "Model",
    "Sequential",
    "models.",
    "applications.",
    "initializers.",
    "optimizers.",
)
DRAWING = tuple(f"keras.{name}" for name in _KERAS)
"""Names that appear only where weights are drawn."""
WEIGHTLESS = (
    ".layers",
    ".Flatten",
    ".Reshape",
    ".Permute",
    ".Activation",
    ".ReLU",
    ".Softmax",
    ".Concatenate",
    ".Add",
)
"""Layers without weights, which draw nothing."""

TF, NUMPY, PYTHON = "seeds-tf", "seeds-numpy", "seeds-python"
SWITCHED, TRAINS, KERAS, GRAPHS = "switch", "trains", "keras", "graphs"
"""What a file can do for its programs: seed one of three generators, turn op determinism on, train, use Keras, use the
sessions of TensorFlow 1, in which Keras takes its seeds from the graph."""
SEEDS_ENVIRONMENT, SEEDS_SPACES, SEEDS_EACH = (
    "seeds-environment",
    "seeds-spaces",
    "seeds-each-environment",
)
"""It calls a method `seed`, or `reset` with a seed, of something, or `seed` of a space, or of each one in a list."""
LEARNS, MAY_LEARN = "learns", "may-learn"
"""It trains or evaluates, or calls something by a name of that; some program that is not seen may use it so."""
TESTED = "tested"
"""It has a `tf.test.TestCase`, whose setUp seeds all three generators: for tests, not for programs that import it."""
HANDLES_DATA, PROJECT = "data", "project"
"""It imports one of DATA; some file of those looked at does."""
DATA = frozenset({"tf", "keras", "numpy", "pandas", "torch", "sklearn", "datasets", "jax"})
"""Packages of programs for which the order of data matters."""
WRITERS = ("write", "writelines", "writerow", "dump", "to_csv", "savetxt")
"""Methods with which a file that imports none of them writes data for others."""
SEEDED = frozenset({TF, NUMPY, PYTHON})
PREPARED = SEEDED | {SWITCHED}
"""What pytest can do for a test before it runs."""


@dataclass(frozen=True)
class Summary:
    """What a file does for its programs, and what it imports.

    Attributes:
        loads: it imports by a name that only the run knows.
        is_program: it says what it does as a program.
        offers: its functions that seed, each with what it does: it counts for those who name the function.
        words: the names of what it calls and hands to calls.
    """

    path: str
    does: frozenset[str]
    imports: frozenset[str]
    loads: bool = False
    is_program: bool = False
    offers: tuple[tuple[str, frozenset[str]], ...] = ()
    words: frozenset[str] = frozenset()


def summary(module: Module, tensorflow: str) -> Summary:
    """Return what one file does."""
    does: set[str] = set()
    offers: list[tuple[str, frozenset[str]]] = []
    names = module.named.keys()
    for call, name in module.called(SEEDS):
        if (
            _seeds(module, call)
            and not is_off(module, call)
            and not _is_taken_back(module, call, name)
        ):
            drawn = drawn_from(module, call.args[0]) if call.args else None
            by = f"-by-{drawn}" if drawn else ""
            seeds = frozenset(f"seeds-{generator}{by}" for generator in SEEDS[name])
            if _is_of_evaluation(module, call):
                continue
            function = _function(module, call)
            if function is None:
                does |= seeds
            else:
                offers.append((function, seeds))
    does.update({NUMPY, PYTHON} if _is_seeded_by_sacred(module) else ())
    does.update({SWITCHED} if not names.isdisjoint(SWITCHES) else ())
    does.update({GRAPHS} if not names.isdisjoint(TENSORFLOW_1) else ())
    does.update(
        {TRAINS} if not names.isdisjoint(TRAINING_NAMES) or module.methods(TRAINING_METHODS) else ()
    )
    does.update({LEARNS} if TRAINS in does or any(map(LEARNING.search, module.words)) else ())
    resets = [
        call
        for call in module.worded(("reset",))
        if argument(call, "seed") is not None and _is_own(module, call)
    ]
    seeding = [
        call
        for call, _ in module.methods(("seed",))
        if call.args and module.name(call.func) not in SEEDS
    ]
    seeded = [call for call in seeding if _is_own(module, call)]
    does.update({SEEDS_ENVIRONMENT} if resets or seeded else ())
    does.update(
        {SEEDS_EACH} if any(_is_of_list(module, call) for call in (*seeded, *resets)) else ()
    )
    spaces = [getattr(call.func, "value", call) for call in seeded]
    does.update(
        {SEEDS_SPACES}
        if any(getattr(each, "attr", "").endswith("space") for each in spaces)
        else ()
    )
    if _sets_the_variable(module, tensorflow):
        does.add(SWITCHED)
    if any(
        module.name(base) == "tf.test.TestCase"
        for node in module.nodes(ast.ClassDef)
        for base in node.bases
    ):
        does.add(TESTED)
    does.update(
        {KERAS} if builds_models(module) else (), {HANDLES_DATA} if DATA & module.packages else ()
    )
    loaded = module.called(LOADERS)
    loads = any(call.args and constant(call.args[0]) is ... for call, _ in loaded)
    is_program = "__main__" in module.text
    return Summary(
        module.path,
        frozenset(does),
        module.imports,
        loads,
        is_program,
        tuple(offers),
        _words(module),
    )


def _is_of_evaluation(module: Module, call: ast.Call) -> bool:
    """Return whether a seed stands in a function that evaluates, by its name: no training is seeded there."""
    functions = [around.name for around in module.ancestors(call) if isinstance(around, Definition)]
    told = {
        word for name in functions if not name.lower().startswith(STARTED) for word in words(name)
    }
    return not told & TRAINING_WORDS and bool(told & EVALUATING_WORDS)


def _is_seeded_by_sacred(module: Module) -> bool:
    """Return whether a configuration of Sacred has a seed, with which it seeds both before the program's main function.

    Source: "Controlling Randomness" in Sacred's documentation.
    """
    if not any(each.partition(".")[0] == "sacred" for each in module.imports):
        return False
    configs = (
        node
        for node in module.nodes(ast.FunctionDef)
        if any(getattr(each, "attr", "") == "config" for each in node.decorator_list)
    )
    set_here = (each for node in configs for each in ast.walk(node) if isinstance(each, ast.Assign))
    return any(
        getattr(each.targets[0], "id", "") == "seed" and constant(each.value) is not None
        for each in set_here
    )


def _is_of_list(module: Module, call: ast.Call) -> bool:
    """Return whether a method is called of an element: of a loop or by its number."""
    owner = getattr(call.func, "value", call)
    bindings = module.bindings(owner) if isinstance(owner, ast.Name) else None
    return isinstance(owner, ast.Subscript) or any(
        each.node is _iterated(module, each.node) for each in bindings or []
    )


def _iterated(module: Module, node: ast.AST) -> ast.AST | None:
    """Return what the loop around a node runs over, if it is one."""
    return getattr(module.parent(node), "iter", None)


def _is_own(module: Module, call: ast.Call) -> bool:
    """Return whether a call gives a seed by itself: a wrapper's method of the same name only hands one on."""
    function = module.function_around(call)
    return (
        not isinstance(call.func, ast.Attribute)
        or getattr(function, "name", None) != call.func.attr
    )


def _seeds(module: Module, call: ast.Call) -> bool:
    """Return whether a call gives a seed that has a value by default."""
    none = bool(call.args) and (
        constant(call.args[0]) is None
        or is_optional(module, call.args[0])
        or _is_left_open(module, call.args[0])
    )
    drawn = drawn_from(module, call.args[0]) if call.args else None
    return (
        bool(call.args or call.keywords)
        and not none
        and (drawn is None or drawn not in SEEDS[module.name(call.func) or ""])
    )


def _is_left_open(module: Module, node: ast.expr) -> bool:
    """Return whether a seed is a parameter that a method leaves open, as `split(rows, seed=None)`."""
    function = module.function_around(node) if isinstance(node, ast.Name) else None
    if (
        not isinstance(node, ast.Name)
        or not isinstance(function, Definition)
        or "seed" in function.name
    ):
        return False
    given = (
        given_by_default(module, node)
        if isinstance(module.parent(function), ast.ClassDef)
        else None
    )
    bound = [each.kind for each in module.bindings(node) or []]
    return (
        given is not None
        and constant(given) is None
        and bound == ["parameter"]
        and function.name != "__init__"
    )


def drawn_from(module: Module, node: ast.expr) -> str | None:
    """Return the global generator from which a seed is drawn, `numpy` or `python`, or None."""
    handed = handed_to_worker(module, node) if isinstance(node, ast.Name) else []
    for each in (node, *module.values(node), *handed):
        name = (module.name(each.func) or "") if isinstance(each, ast.Call) else ""
        if name.startswith("numpy.random.rand"):
            return "numpy"
        if name in PYTHON_DRAWS:
            return "python"
    return None


def _is_taken_back(module: Module, call: ast.Call, name: str) -> bool:
    """Return whether the next call of the same function in the same place is without a number, as seed(None)."""
    here = module.function_around(call)
    calls = [each for each in module.named[name] if module.function_around(each) is here]
    following = calls[calls.index(call) + 1 :][:1]
    return any(
        not each.args or constant(each.args[0]) is None for each in following if not each.keywords
    )


LEARNING = re.compile("train|optimi|learn|fit|gradient|minimi|evaluat|backward", re.IGNORECASE)
"""What stands in the names of functions that train, or ask what is not trained."""
FEW = 12
"""Calls in a function that only prepares; one that also works is a program's own part, whoever starts it."""


def _function(module: Module, call: ast.Call) -> str | None:
    """Return the function at the top that a call stands in, where somebody must name it for the call to run."""
    around = [each for each in module.ancestors(call) if isinstance(each, ast.stmt)]
    last = around[-1] if around else None
    if (
        not isinstance(last, Definition)
        or last.decorator_list
        or last.name.lower().startswith(STARTED)
    ):
        return None
    calls = sum(isinstance(node, ast.Call) for node in ast.walk(last))
    handed = (
        bool(call.args)
        and isinstance(call.args[0], ast.Name)
        and given_by_default(module, call.args[0]) is not None
    )
    return last.name if handed or (calls <= FEW and not draws(module, last)) else None


def _words(module: Module) -> frozenset[str]:
    """Return the names of what is called, and of what is handed to a call: it may call that."""
    handed = {
        given.id
        for call in module.nodes(ast.Call)
        for given in call.args
        if type(given) is ast.Name
    }
    return frozenset(
        handed.union(word for word in module.words if not _gives_no_seed(module, word))
    )


def _gives_no_seed(module: Module, word: str) -> bool:
    """Return whether what is called so is TensorFlow's own, or gets no seed here unless somebody asks for one."""
    calls = module.worded((word,)) if "seed" in word else []
    own = [call for call in calls if module.name(call.func) not in SEEDS]
    return bool(calls) and all(call.args and is_optional(module, call.args[0]) for call in own)


def _sets_the_variable(module: Module, tensorflow: str) -> bool:
    read = holds([">=2.1"], tensorflow)
    return read and any(
        each.name == "TF_DETERMINISTIC_OPS" and each.value in TRUE for each in assignments(module)
    )


def builds_models(module: Module) -> bool:
    """Return whether a file makes layers or models of Keras, or trains them: metrics and losses draw nothing."""
    if not module.uses_keras:
        return False
    bases = (module.name(base) or "" for node in module.nodes(ast.ClassDef) for base in node.bases)
    drawing = {
        name
        for name in (*module.named, *bases)
        if name.startswith(DRAWING) and not name.endswith(WEIGHTLESS)
    }
    steps = all(
        name.startswith("keras.optimizers.") for name in drawing
    )  # of variables that the file gives values
    return bool(drawing) and not (steps and "tf.Variable" in module.named)


def programs(files: Sequence[Summary]) -> list[frozenset[str]]:
    """Return for each file what its programs do: it, all that it imports, all that import it, and all those import.

    Of several programs that import a file, each one that trains has to seed for itself.
    """
    places = Places([file.path for file in files])
    edges = _edges(files, places)
    own = _spread(_with_offers(files, edges), edges)
    _load(files, places, edges)
    down = _spread(_with_offers(files, edges), edges)
    for all_does, does in zip(
        down, own, strict=True
    ):  # what is loaded by a name of the run seeds no program
        all_does -= SEEDED - does
        all_does.update(_drawn_seeds(does))
    _prepare(places.paths, down)
    importers: list[set[int]] = [set() for _ in files]
    tests = [_is_test(path) for path in places.paths]
    for index, imported in enumerate(edges):
        for other in imported:
            if (
                tests[other] or not tests[index]
            ):  # what a test seeds is not seeded when the program runs
                importers[other].add(index)
    project = {PROJECT} if any(HANDLES_DATA in file.does for file in files) else set()
    left = _spread(_left_out(down, importers, tests), importers)
    here = [
        each | (SEEDED if TESTED in file.does else frozenset())
        for each, file in zip(down, files, strict=True)
    ]
    every = zip(_spread(down, importers), left, here, strict=True)
    done = [(does - out) | itself | project for does, out, itself in every]
    learns = any(LEARNS in file.does for file in files)
    for file, does, above in zip(files, done, importers, strict=True):
        alone = (
            learns and not above and not file.is_program
        )  # what a program takes in by a name that is not seen
        does.update({MAY_LEARN} if alone or LEARNS in does else ())
    return [frozenset(does) for does in done]


def _drawn_seeds(does: Set[str]) -> Iterator[str]:
    """Yield the generators that are seeded by a draw from another one, which is seeded."""
    for fact in sorted(SEEDED):
        yield from (
            fact for by in sorted(SEEDED & does) if f"{fact}-by-{by.removeprefix('seeds-')}" in does
        )


def _left_out(
    down: Sequence[set[str]], importers: Sequence[Iterable[int]], tests: Sequence[bool]
) -> list[set[str]]:
    """Return for each program that trains what it does not seed, for which the seeds of others are no help."""
    files = zip(down, importers, tests, strict=True)
    return [
        set(SEEDED - does) if TRAINS in does and not above and not test else set()
        for does, above, test in files
    ]


def _spread(facts: Sequence[Iterable[str]], edges: Sequence[Iterable[int]]) -> list[set[str]]:
    """Return each file's facts with those of all that its edges lead to."""
    known = [set(each) for each in facts]
    changed = True
    while changed:
        changed = False
        for index, others in enumerate(edges):
            before = len(known[index])
            for other in others:
                known[index] |= known[other]
            changed = changed or len(known[index]) > before
    return known


def _edges(files: Sequence[Summary], places: Places) -> list[set[int]]:
    """Return which of the files each file imports."""
    edges: list[set[int]] = []
    for file, folder in zip(files, places.folders, strict=True):
        found: set[int] = set()
        for imported in file.imports:
            found.update(places.meant(absolute(imported, folder), folder))
        edges.append(found)
    return edges


def _with_offers(files: Sequence[Summary], edges: Sequence[Iterable[int]]) -> list[set[str]]:
    """Return what each file does, with what the functions do that it names, of itself or of what it imports."""
    does = [set(file.does) for file in files]
    offering = [at for at, file in enumerate(files) if file.offers]
    reached = _spread([{str(at)} if file.offers else set() for at, file in enumerate(files)], edges)
    for at in offering:
        for name, seeds in files[at].offers:
            for other, file in enumerate(files):
                if name in file.words and str(at) in reached[other]:
                    does[other] |= seeds
    return does


def _load(files: Sequence[Summary], places: Places, edges: list[set[int]]) -> None:
    """Let a file that imports by a name of the run import what lies below it or its users and nothing else imports."""
    imported = set().union(*edges)
    others = [
        at
        for at, file in enumerate(files)
        if at not in imported and not (file.loads or file.is_program)
    ]
    rest = [at for at in others if not _is_test(places.paths[at])]
    for at in [at for at, file in enumerate(files) if file.loads]:
        folders = {
            places.folders[each] for each, others in enumerate(edges) if each == at or at in others
        }
        below = (
            each
            for each in rest
            if any(places.paths[each][: len(folder)] == folder for folder in folders)
        )
        edges[at].update(below)


def _is_test(path: tuple[str, ...]) -> bool:
    return bool(path) and (path[-1].startswith("test_") or path[-1].endswith("_test"))


def _prepare(paths: Sequence[tuple[str, ...]], down: list[set[str]]) -> None:
    """Give test files what pytest seeds and switches before them: in the conftest.py beside them or further above."""
    conftests = [
        (path[:-1], down[index] & PREPARED)
        for index, path in enumerate(paths)
        if path[-1:] == ("conftest",)
    ]
    for path, does in zip(paths, down, strict=True):
        if _is_test(path):
            does.update(*(done for folder, done in conftests if path[: len(folder)] == folder))
            does.update(SEEDED if TESTED in does else ())
