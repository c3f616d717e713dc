"""Orders that nobody promised: of folders, of sets, of workers, of hashes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from envlock.linter.flows import Flow
from envlock.linter.module import Hit, Module, argument
from envlock.linter.names import (
    ARRIVAL_METHODS,
    ARRIVALS,
    LISTING_METHODS,
    LISTINGS,
    NUMPY_OWN,
    QUEUES,
    SAME_ORDER,
    SEEDS,
)
from envlock.linter.program import DATA, HANDLES_DATA, PROJECT, WRITERS
from envlock.linter.purposes import is_aside
from envlock.linter.sets import is_set, looks_like_number, may_hold_sets
from envlock.linter.shown import only_shown
from envlock.linter.sorting import sorts

SALTED = ", which differs from process to process for strings and for objects hashed by address"
WALKS = ("os.walk", "tf.io.gfile.walk", "tf.gfile.Walk")
BUILDERS = frozenset({"setuptools", "distutils"})
"""Packages of files that build programs, and handle no data themselves."""


def files(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV303: os.listdir, glob or iterdir, unsorted, into data."""
    listers = [call for call, _ in module.called(LISTINGS)]
    for call in (
        *listers,
        *(call for call, _ in module.methods(LISTING_METHODS) if call not in listers),
    ):
        name = _listing(module, call)
        if name is not None and _reaches(module, call, name) and not _is_no_matter(module, call):
            yield from _of_data(module, call, f"{name} lists files in the order of the file system")


def _is_no_matter(module: Module, call: ast.Call) -> bool:
    """Return whether no training sees an order: TensorFlow Datasets orders examples by the hashes of their keys."""
    of_tfds = "tensorflow_datasets" in module.packages
    function = module.function_around(call)
    return is_aside(module, call) or (
        of_tfds and getattr(function, "name", "") == "_generate_examples"
    )


def _listing(module: Module, call: ast.Call) -> str | None:
    name = module.name(call.func)
    if name in LISTINGS:
        return name
    if isinstance(call.func, ast.Attribute) and call.func.attr in LISTING_METHODS and name is None:
        paths = any(each == "pathlib" or each.startswith("pathlib.") for each in module.imports)
        return f"Path.{call.func.attr}" if paths else None
    return None


def _reaches(module: Module, call: ast.Call, name: str) -> bool:
    """Return whether the order of a listing reaches data; one of a walk that sorts on its way does not."""
    loop = module.parent(call)
    if name in WALKS and isinstance(loop, ast.For):
        names = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
        read = [node for node in ast.walk(loop) if isinstance(node, ast.Name) and node.id in names]
        if any(sorts(module, node) for node in read):
            return False
    return Flow(module).reaches_data(call) and not only_shown(module, call)


def _of_data(module: Module, node: ast.AST, message: str) -> Iterator[Hit]:
    """Yield a hit where data is handled: by this file, by its programs, or by a project for which it writes files."""
    if DATA & module.packages:
        yield Hit(node, message)
        return
    if not BUILDERS.isdisjoint(module.packages):
        return
    yield Hit(node, message, needs=frozenset({HANDLES_DATA}))
    if module.methods(WRITERS):
        yield Hit(node, message, needs=frozenset({PROJECT}), unless=frozenset({HANDLES_DATA}))


def sets(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV304: list(set(...)), enumerate(set(...)), a loop over a set that fills something."""
    for node, around in _iterations(module) if may_hold_sets(module) else ():
        if not is_set(module, node) or is_aside(module, node):
            continue
        if isinstance(around, ast.Call):
            if not _becomes_numbers(module, around) and Flow(module).reaches_data(node):
                yield from _of_data(module, around, f"a set is turned into a sequence{SALTED}")
        elif Flow(module).reaches_data(node):
            yield from _of_data(module, node, f"a set is iterated over{SALTED}")


def _iterations(module: Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield every expression whose elements are taken one after the other, with what takes them."""
    for call in module.worded(SAME_ORDER | {"fromkeys", "join", "extend", "fromiter"}):
        built_in = (
            isinstance(call.func, ast.Name)
            and call.func.id in SAME_ORDER
            and module.bindings(call.func) is None
        )
        if built_in or getattr(call.func, "attr", "") in ("fromkeys", "join", "extend", "fromiter"):
            yield from ((given, call) for given in call.args)
    yield from ((loop.iter, loop) for loop in module.nodes(ast.For))
    yield from ((loop.iter, loop) for loop in module.nodes(ast.comprehension))
    for starred in module.nodes(ast.Starred):
        yield starred.value, starred


def _becomes_numbers(module: Module, ordered: ast.AST) -> bool:
    """Return whether a list is made an array of whole numbers at once: then it held such."""
    around = module.parent(ordered)
    if not isinstance(around, ast.Call) or module.name(around.func) not in (
        "numpy.array",
        "numpy.asarray",
    ):
        return False
    kind = argument(around, "dtype", 1)
    return kind is not None and "int" in ast.unparse(kind)


def arrivals(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV307: imap_unordered, as_completed, a queue that several workers fill."""
    calls = dict.fromkeys(
        call for call, _ in (*module.called(ARRIVALS), *module.methods((*ARRIVAL_METHODS, "get")))
    )
    for call in calls:
        name = module.name(call.func)
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        shown = name if name in ARRIVALS else method if method in ARRIVAL_METHODS else None
        if is_aside(module, call):
            continue
        if shown is not None and Flow(module).reaches_data(call):
            yield from _of_data(
                module, call, f"{shown} gives results in the order in which workers finish"
            )
        elif method == "get" and _is_shared_queue(module, call) and _is_kept(module, call):
            yield from _of_data(
                module, call, "several workers fill this queue, in the order in which they finish"
            )


def _is_shared_queue(module: Module, call: ast.Call) -> bool:
    """Return whether this takes from a queue, in a file that starts workers in a loop."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call
    made = [each for each in module.values(owner) if isinstance(each, ast.Call)]
    if not any(module.name(each.func) in QUEUES for each in made):
        return False
    return any(
        any(
            isinstance(around, ast.For | ast.comprehension | ast.ListComp)
            for around in module.ancestors(each)
        )
        for each in module.worded(("Thread", "Process"))
    )


def _is_kept(module: Module, call: ast.Call) -> bool:
    """Return whether something in the same loop or list keeps what a queue gives."""
    for around in module.ancestors(call):
        if isinstance(around, ast.Return):
            return Flow(module).reaches_data(call)
        if isinstance(around, ast.ListComp | ast.GeneratorExp):
            return Flow(module).reaches_data(around)
        if isinstance(around, ast.For | ast.AsyncFor | ast.While):
            return Flow(module).loop(around)
    return False


def salted_hash(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV305: `hash(name) % buckets`, `seed(hash(name))`."""
    for call in module.worded(("hash",)):
        if (
            not module.is_builtin(call.func, "hash")
            or not call.args
            or looks_like_number(module, call.args[0])
        ):
            continue
        if _is_own_hash(module, call):
            continue
        for around in module.ancestors(call):
            reduced = isinstance(around, ast.BinOp) and isinstance(around.op, ast.Mod | ast.BitAnd)
            name = module.name(around.func) if isinstance(around, ast.Call) else None
            if reduced or name in SEEDS or name in NUMPY_OWN:
                yield Hit(call, "hash() of a string differs from process to process")
                break
            if isinstance(around, ast.stmt):
                break


def _is_own_hash(module: Module, call: ast.Call) -> bool:
    function = module.function_around(call)
    return getattr(function, "name", "") in ("__hash__", "__eq__")
