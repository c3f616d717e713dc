"""Operations that give other bits from run to run, by the table of sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from envlock.data.determinism import Solution, Source, holds, sources_table
from envlock.linter.module import DEPTH, Hit, Module, argument, constant, has_star
from envlock.linter.names import TRAINING_METHODS, canonical
from envlock.linter.program import SWITCHED, TRAINS
from envlock.linter.rules.seeds import and_more
from envlock.linter.scopes import Function
from envlock.linter.stateful import draws

LOOPS = {
    "tf.map_fn": "fn",
    "tf.while_loop": "body",
    "tf.scan": "fn",
    "tf.foldl": "fn",
    "tf.foldr": "fn",
}
SCATTERS = ("scatter_add", "scatter_sub")
SPARSE_OPTIMIZERS = ("SGD", "Adagrad", "Ftrl")
CARRYING = ("tf.while_loop", "tf.scan", "tf.foldl", "tf.foldr")
"""Loops whose iterations get what the one before computed."""
IN_GRAPH = ("op", "generator")
NEAREST = ("nearest", "NEAREST_NEIGHBOR")
ONE_RULE_EACH = ("addn-buffer-order", "map-fn-parallel-random", "xla-stateful-random")

Condition = Callable[[Module, ast.Call, str], bool]


def noisy(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV401: what the table lists for this TensorFlow, where op determinism does not make it repeat by itself."""
    on, nothing = frozenset({SWITCHED}), frozenset[str]()
    said: set[tuple[ast.Call, frozenset[str]]] = set()
    for call, source in _called(module):
        if not source.active(tensorflow) or not _certain(module, call):
            continue
        needs = frozenset({TRAINS} if "backward" in source.path else ())
        with_it, without = _with_switch(source, tensorflow), _without(source, tensorflow)
        for found, more, unless in ((with_it, on, nothing), (without, nothing, on)):
            if (
                found is not None and (call, unless) not in said
            ):  # one on GPUs and one on CPUs: the first tells enough
                said.add((call, unless))
                yield Hit(
                    call, found[0], None, found[1], f"source:{source.id}", needs | more, unless
                )


def _called(module: Module) -> Iterator[tuple[ast.Call, Source]]:
    """Yield every call of an operation of the table that meets the conditions under which it is noisy."""
    for call, name in module.called(_operations()):
        for source in _operations()[name]:
            condition = CONDITIONS.get(source.id)
            if condition is None or condition(module, call, name):
                yield call, source
    scatter = next(each for each in sources_table().source if each.id == "resource-scatter-add-cpu")
    yield from (
        (call, scatter) for call, _ in module.methods(SCATTERS) if _is_variable(module, call)
    )


@cache
def _operations() -> dict[str, list[Source]]:
    found: dict[str, list[Source]] = {}
    for source in sources_table().source:
        if source.category == "op" or source.id == "parameter-server-strategy":
            for name in source.calls:
                if source.id not in ONE_RULE_EACH:
                    found.setdefault(canonical(name), []).append(source)
    return found


def _with_switch(source: Source, tensorflow: str) -> tuple[str, str] | None:
    """Return what an operation does under op determinism, and the remedy; None where nothing need be said."""
    solutions = source.solutions_for(tensorflow)
    kinds = {solution.kind for solution in solutions}
    errors = source.errors_in(tensorflow)
    if errors and "raises" in kinds:
        text = f"under op determinism this raises {errors[0].error} on a GPU: {source.component}"
        return text, _note(solutions) or "Replace it, or run it on the CPU."
    if kinds & {"api", "env", "raises", "default"}:
        return None
    text = f"this differs from run to run{_where(source)}, even under op determinism: {source.component}"
    return text, _note(solutions) or "Replace it."


def _without(source: Source, tensorflow: str) -> tuple[str, str] | None:
    """Return what an operation does without op determinism, and the remedy; what it mends on GPUs is ENV108's."""
    solutions = source.solutions_for(tensorflow)
    switches = [each for each in solutions if each.kind in ("api", "env")]
    if any(each.kind == "default" for each in solutions) or (switches and source.platform == "gpu"):
        return None
    text = f"this differs from run to run{_where(source)}: {source.component}"
    if switches and switches[0].api:
        return text, f"Turn op determinism on: {switches[0].api}."
    return text, _note(solutions) or "Replace it."


def _where(source: Source) -> str:
    return {"gpu": " on a GPU", "cpu": " on a CPU"}.get(source.platform, "")


def _note(solutions: Sequence[Solution]) -> str | None:
    return next((each.note for each in solutions if each.kind == "workaround" and each.note), None)


def _certain(module: Module, call: ast.Call) -> bool:
    """Return whether the operation surely runs where it is noisy.

    What changes images is mostly part of a data pipeline, which runs on the CPU; in a model or a step it is not.
    """
    if not (module.name(call.func) or "").startswith("tf.image."):
        return True
    function = module.function_around(call)
    if function is None or getattr(function, "name", "") in ("call", "train_step", "build"):
        return True
    return any(
        module.name(node) == "tf.GradientTape"
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
    )


def _is_variable(module: Module, call: ast.Call) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    if any(map(_makes_unique, ast.walk(module.function_around(call) or call))):
        return False
    made = any(
        isinstance(each, ast.Call) and module.name(each.func) == "tf.Variable"
        for each in module.values(owner)
    )
    given = call.args[0] if call.args else None
    if isinstance(given, ast.Call) and module.name(given.func) == "tf.IndexedSlices":
        return (
            type(constant(argument(given, "values", 0))) is not int
        )  # whole numbers add up alike in any order
    return made


def _makes_unique(node: ast.AST) -> bool:
    """Return whether a function is called that leaves each index once, by its name: then nothing is added twice."""
    function = node.func if isinstance(node, ast.Call) else None
    name = getattr(function, "attr", "") or getattr(function, "id", "")
    return "unique" in name or "dedup" in name


def _nearest(module: Module, call: ast.Call, name: str) -> bool:
    if name == "tf.image.resize":
        method = argument(call, "method", 2)
        last = (module.name(method) or "").rpartition(".")[2] if method is not None else ""
        return constant(method) in NEAREST or last in NEAREST
    if name == "keras.layers.UpSampling2D":
        given = argument(call, "interpolation", 2)
        return not has_star(call) and (given is None or constant(given) == "nearest")
    return True


def _goes_on(module: Module, call: ast.Call, name: str) -> bool:
    """Return whether the first result is kept: a gradient flows through the maxima, none through their places."""
    parent = module.parent(call)
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else None
    return not (isinstance(first, ast.Name) and first.id == "_")


def _bilinear(module: Module, call: ast.Call, name: str) -> bool:
    return name != "tf.image.resize" or argument(call, "method", 2) is None


def _weighted(module: Module, call: ast.Call, name: str) -> bool:
    given = argument(call, "weights", 1)
    return given is not None and constant(given) is not None


def _frozen(module: Module, call: ast.Call, name: str) -> bool:
    return name == "tf.nn.fused_batch_norm" and constant(argument(call, "is_training")) is False


def _never(module: Module, call: ast.Call, name: str) -> bool:
    return False


def _sparse_updates(module: Module, call: ast.Call, name: str) -> bool:
    """Return whether an embedding is trained with an optimizer that adds sparse gradients to it, in this file."""
    if name != "keras.layers.Embedding" or not module.methods(TRAINING_METHODS):
        return False
    optimizers = [each for each, made in module.calls if "optim" in made]
    here = module.function_around(call)
    near = [
        each for each in optimizers if here is not None and module.function_around(each) is here
    ] or optimizers
    made = any(
        (module.name(each.func) or "").rpartition(".")[2] in SPARSE_OPTIMIZERS for each in near
    )
    return made or any(
        str(constant(argument(each, "optimizer", 0))).lower()
        in [name.lower() for name in SPARSE_OPTIMIZERS]
        for each, _ in module.methods(("compile",))
    )


TABLES = re.compile(r"embed|lookup|table|weight|kernel|param|codebook", re.IGNORECASE)
MADE_ONCE = (
    "tf.constant",
    "tf.convert_to_tensor",
    "tf.range",
    "tf.zeros",
    "tf.ones",
    "tf.one_hot",
    "numpy.",
)
WHOLE = frozenset(
    {
        f"tf.{name}"
        for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
    }
)


def _of_trained(module: Module, call: ast.Call, name: str) -> bool:
    """Return whether rows are taken from weights: what is no constant, and is made or called so."""
    given = argument(call, "params", 0)
    made = (
        [
            module.name(each.func) or ""
            for each in module.values(given)
            if isinstance(each, ast.Call)
        ]
        if given
        else []
    )
    if any(each.startswith(MADE_ONCE) for each in made):
        return False
    written = ast.unparse(given) if given is not None else ""
    variables = any(each.endswith((".Variable", ".get_variable", "add_weight")) for each in made)
    return variables or TABLES.search(written) is not None


def _of_trained_filter(module: Module, call: ast.Call, name: str) -> bool:
    """Return whether a filter or a bias can be trained: one that is made of numbers, to blur or to sharpen, is not."""
    given = (
        []
        if name.startswith("keras.")
        else [argument(call, "filter", 1), argument(call, "bias", 1)]
    )
    made = [each for one in given if one is not None for each in (one, *module.values(one))]
    names = [module.name(each.func) or "" for each in made if isinstance(each, ast.Call)]
    return not any(each.startswith(MADE_ONCE) for each in names)


def _of_fractions(module: Module, call: ast.Call, name: str) -> bool:
    """Return whether what is added can be anything but whole numbers, which add up alike in any order."""
    given = argument(call, "updates", 2 if "tensor_scatter" in name else 1)
    made = [] if given is None else [given, *module.values(given)]
    calls = [each for each in made if isinstance(each, ast.Call)]
    kinds = [
        each
        for call in calls
        for each in (*call.args, *(keyword.value for keyword in call.keywords))
    ]
    ones = any(module.name(each.func) in ("tf.ones", "tf.ones_like") for each in calls)
    return not ones and not any(module.name(each) in WHOLE for each in kinds)


def _of_repeated(module: Module, call: ast.Call, name: str) -> bool:
    """Return whether an index can come twice: an optimizer of TensorFlow 1 gets each once in its own method."""
    return not any(
        "apply_sparse" in getattr(around, "name", "") for around in module.ancestors(call)
    )


CONDITIONS: dict[str, Condition] = {
    "resize-nearest-backprop": _nearest,
    "upsampling-nearest-backprop": _nearest,
    "bias-add-backprop": _of_trained_filter,
    "depthwise-conv-backprop-filter": _of_trained_filter,
    "resize-bilinear-backprop": _bilinear,
    "max-pool-with-argmax-backprop": _goes_on,
    "bincount": _weighted,
    "bincount-weighted-cpu": _weighted,
    "fused-batch-norm-frozen-backprop": _frozen,
    "indexed-slices-to-tensor": _never,
    "gather-backprop": _of_trained,
    "scatter-nd": _of_fractions,
    "scatter-ref-variables": _of_repeated,
    "resource-scatter-add-cpu": _sparse_updates,
}
"""When a call that the table lists is noisy; without an entry: always."""


def random_in_loop(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV403: stateful random operations in the body of tf.map_fn or tf.while_loop."""
    for call, name in module.called(LOOPS):
        if constant(argument(call, "parallel_iterations")) == 1 or has_star(call):
            continue
        body = argument(call, LOOPS[name], 1 if name == "tf.while_loop" else 0)
        function = module.definition(body) if body is not None else None
        found = (
            [each for each in draws(module, function) if each.kind in IN_GRAPH]
            if function is not None
            else []
        )
        if name in CARRYING and function is not None:
            found = [each for each in found if not _hangs_on_state(module, each.node, function)]
        if found:
            yield Hit(
                call, f"{found[0].name} draws in iterations that run in parallel{and_more(found)}"
            )


def _hangs_on_state(module: Module, draw: ast.AST, body: Function) -> bool:
    """Return whether a draw needs what the iteration before computed, so that draws follow one after the other.

    A counter is no such state, and neither is the shape of anything.
    """
    if not isinstance(draw, ast.Call) or module.function_around(draw) is not body:
        return False
    counters = {each.left.id for each in ast.walk(body) if _raises(each)}  # type: ignore[attr-defined]
    stack: list[ast.AST] = [*draw.args, *draw.keywords]
    seen: set[ast.AST] = set()
    while stack and len(seen) < DEPTH * 8:
        node = stack.pop()
        if node in seen or _is_shape(node):
            continue
        seen.add(node)
        stack.extend(ast.iter_child_nodes(node))
        for binding in (module.bindings(node) or []) if isinstance(node, ast.Name) else []:
            if binding.kind == "parameter" and module.function_around(binding.node) is body:
                if getattr(node, "id", "") not in counters:
                    return True
            elif isinstance(binding.node, ast.expr):
                stack.append(binding.node)
    return False


def _is_shape(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return "shape" in getattr(called, "attr", "") or (
        isinstance(node, ast.Call) and "shape" in getattr(called, "id", "")
    )


def _raises(node: ast.AST) -> bool:
    """Return whether this is `i + 1`."""
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.left, ast.Name)
        and constant(node.right) == 1
    )


def random_under_xla(module: Module, tensorflow: str) -> Iterator[Hit]:
    """ENV404: a stateful random operation in a function with jit_compile=True."""
    for function in module.nodes(ast.FunctionDef):
        if not any(_compiles(module, decorator) for decorator in function.decorator_list):
            continue
        layers = holds(["<2.16"], tensorflow)  # later ones draw with stateless operations
        found = [
            each
            for each in draws(module, function)
            if each.kind == "op" or (each.kind == "layer" and layers)
        ]
        if found:
            message = f"{found[0].name} in {function.name}, which XLA compiles{and_more(found)}, ignores the seeds"
            yield Hit(found[0].node, message)


def _compiles(module: Module, decorator: ast.expr) -> bool:
    if not isinstance(decorator, ast.Call) or module.name(decorator.func) != "tf.function":
        return False
    return True in (
        constant(argument(decorator, "jit_compile")),
        constant(argument(decorator, "experimental_compile")),
    )
