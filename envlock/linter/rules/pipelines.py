"""Data pipelines whose elements, or their order, depend on threads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from envlock.data.determinism import holds
from envlock.linter.datasets import is_dataset
from envlock.linter.defaults import default
from envlock.linter.module import Hit, Module, argument, constant
from envlock.linter.names import THREADED_QUEUES
from envlock.linter.program import SWITCHED
from envlock.linter.stateful import Draw, drawn_by, random_layer

PARALLEL = {"map": 1, "interleave": 3, "map_and_batch": 2, "map_with_legacy_function": 1}
"""Methods that run a function on each element, and the position of `num_parallel_calls`."""
FITS = frozenset(
    {"fit", "fit_generator", "evaluate_generator", "predict_generator", "evaluate", "predict"}
)
SERIAL = "op determinism runs this serially, which is repeatable but can be slow"


def stateful_map(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV301: random numbers or Python functions in a map with `num_parallel_calls`."""
    for call, _ in module.methods(PARALLEL):
        if not _is_parallel(module, call):
            continue
        mapped = argument(call, "map_func", 0)
        found = _stateful(module, mapped) if mapped is not None else None
        if found is not None:
            yield from _mended(call, f"{_what(found)} runs in parallel", SERIAL, tensorflow)


def _is_parallel(module: Module, call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in PARALLEL:
        return False
    given = argument(call, "num_parallel_calls", PARALLEL[call.func.attr])
    if given is None or constant(given) in (None, 1):
        return False
    return any(keyword.arg == "num_parallel_calls" for keyword in call.keywords) or is_dataset(
        module, call.func.value
    )


def _stateful(module: Module, mapped: ast.expr) -> Draw | None:
    layer = random_layer(module, mapped)
    if layer is not None:
        return Draw("layer", layer, mapped)
    found = drawn_by(module, mapped)
    return found[0] if found else None


def _what(found: Draw) -> str:
    if found.kind == "opaque":
        return f"{found.name}, whose function is not visible here,"
    where = f" (line {found.node.lineno})" if hasattr(found.node, "lineno") else ""
    return f"{found.name}{where}"


def _mended(node: ast.AST, message: str, remark: str, tensorflow: str) -> Iterator[Hit]:
    """Yield a hit, and the one that takes its place where op determinism mends it."""
    if holds(["<2.7"], tensorflow):
        yield Hit(node, message)
    else:
        yield Hit(node, message, unless=frozenset({SWITCHED}))
        yield Hit(node, f"{message}; {remark}", "info", needs=frozenset({SWITCHED}))


def any_order(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV302: `deterministic=False`, `options.deterministic = False`, `sloppy=True`."""
    for node, message in _orders_given_up(module):
        yield from _mended(node, message, "op determinism overrides it", tensorflow)


def _orders_given_up(module: Module) -> Iterator[tuple[ast.AST, str]]:
    for call, method in module.methods(PARALLEL):
        given = argument(call, "deterministic")
        if given is not None and _may_be_false(module, given):
            yield call, f"{method.attr} can give its elements in any order"
    if "tf" in module.packages and "sloppy" in module.text:
        yield from filter(None, (_sloppy(module, call) for call in module.nodes(ast.Call)))
    for assign in module.nodes(ast.Assign):
        for target in assign.targets:
            if _is_option(module, target) and _may_be_false(module, assign.value):
                yield assign, "the dataset's options let its elements come in any order"
    yield from _read_by_threads(module)


def _sloppy(module: Module, call: ast.Call) -> tuple[ast.AST, str] | None:
    given = argument(call, "sloppy")
    sloppy = default(module, given, parameters=True) if given is not None else None
    if not isinstance(call.func, ast.Attribute) or sloppy in (False, None):
        return None
    return (
        call,
        f"a sloppy {call.func.attr} {'gives' if sloppy is True else 'can give'} its elements in any order",
    )


def _read_by_threads(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield what reads in several threads, and keeps what comes first."""
    for call in (
        module.worded(("load", "as_dataset")) if "tensorflow_datasets" in module.packages else ()
    ):
        shuffled = argument(call, "shuffle_files")
        if (
            constant(shuffled) not in (False, None)
            and shuffled is not None
            and argument(call, "read_config") is None
        ):
            yield call, "files that are shuffled without a seed of their own are read in any order"
    for call, name in module.called(THREADED_QUEUES):
        at = THREADED_QUEUES[name]
        threads = None if at < 0 else argument(call, "num_threads", at)
        if at < 0 or (threads is not None and default(module, threads) != 1):
            yield call, f"the threads of {name} fill its queue in the order in which they finish"


def _may_be_false(module: Module, node: ast.expr) -> bool:
    """Return whether something is False by default, or the opposite of what the program decides."""
    found = default(module, node)
    return found is False or (found is ... and isinstance(node, ast.UnaryOp))


def _is_option(module: Module, target: ast.expr) -> bool:
    """Return whether this is the option of a dataset: its name is used for nothing else, or its owner is one."""
    if not isinstance(target, ast.Attribute):
        return False
    if target.attr == "experimental_deterministic":
        return True
    if target.attr != "deterministic":
        return False
    values = module.values(target.value)
    made = any(
        isinstance(each, ast.Call) and module.name(each.func) == "tf.data.Options"
        for each in values
    )
    options = (
        isinstance(target.value, ast.Call) and getattr(target.value.func, "attr", "") == "options"
    )
    return (
        made
        or options
        or any(getattr(getattr(each, "func", None), "attr", "") == "options" for each in values)
    )


def workers(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV306: `fit(workers=4)`, `PyDataset(use_multiprocessing=True)`."""
    if not module.uses_keras:
        return
    loaders = [call for call, _ in module.called(("keras.utils.PyDataset", "keras.utils.Sequence"))]
    for call in (*loaders, *(call for call, _ in module.methods((*FITS, "__init__")))):
        if is_dataset(module, argument(call, "x", 0)):  # workers read generators only
            continue
        number, processes = (
            default(module, argument(call, each)) for each in ("workers", "use_multiprocessing")
        )
        if isinstance(number, int) and number > 1:
            yield Hit(call, f"{number} Python workers feed the model")
        elif processes is True:
            yield Hit(call, "Python worker processes feed the model")
