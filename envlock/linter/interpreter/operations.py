"""Operations that give different bits from run to run, by the table of sources, and sums whose
order is not guaranteed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from collections.abc import Sequence as Several
from functools import cache

from envlock.data.determinism import Solution, load_source_table
from envlock.data.determinism import Source as Row
from envlock.data.specifiers import matches_version
from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.methods import Methods
from envlock.linter.interpreter.shared_terms import ADDERS, is_first_shared, is_only_minimized
from envlock.linter.interpreter.values import (
    Constant,
    Either,
    Library,
    Made,
    Sequence,
    Table,
    Value,
    options,
)
from envlock.linter.module import Hit
from envlock.linter.names import (
    LEGACY_KERAS,
    SPARSE_OPTIMIZERS,
    TRAINING_METHODS,
    canonical,
)

# Rows of the table that rules of their own judge: ENV402, ENV403, ENV404.
ONE_RULE_EACH = ("addn-buffer-order", "map-fn-parallel-random", "xla-stateful-random")
WIDTHS = {
    "tf.contrib.layers.fully_connected": ("num_outputs", 1),
    "tf.contrib.slim.fully_connected": ("num_outputs", 1),
    "tf.layers.dense": ("units", 1),
    "tf.one_hot": ("depth", 1),
    "tf.placeholder": ("shape", 1),
}
"""What makes a tensor of known rows: the argument that says how many numbers each has."""
FEW_CLASSES = 128
"""Up to this number of classes the kernel adds each row in one thread (determinism_sources.toml)."""
NEAREST = ("nearest", "NEAREST_NEIGHBOR")
SCATTER = "resource-scatter-add-cpu"
IN_MODELS = ("call", "train_step", "build")


class Operations(Methods):
    """What the tables know of operations."""

    def check_operation(self, name: str, call: Call) -> None:
        """Report an operation that is noisy as it is called here."""
        if name in ADDERS:
            self.check_sum(name, call)
        for row in _list_operations().get(name, ()):
            condition = CONDITIONS.get(row.id)
            if (condition is None or condition(self, name, call)) and self.is_certain(name):
                self.report_noisy(row, call)

    def report_noisy(self, row: Row, call: Call) -> None:
        """Report a noisy operation; what is so on the way back counts where something is trained."""
        if not row.is_active(self.tensorflow) or self.dead:
            return
        if row.platform == "gpu" and self.is_on_cpu():
            return
        # What needs only some variables is quiet in a program that sets all of them.
        for each in row.find_solutions(self.tensorflow):
            if each.kind == "env" and each.set and each.set.keys() <= self.variables:
                return
        if self.state.switched:
            said = _describe_with_switch(row, self.tensorflow)
        else:
            said = _describe_without_switch(row, self.tensorflow)
        if said is None:
            return
        message, fix = said
        hit = Hit(call.node, message, None, fix, f"source:{row.id}")
        # The first row of a call, and of several calls of its function: one place, one finding.
        self.ledger.noisy.setdefault(call.node, (self.source, hit, "backward" in row.path))

    def is_certain(self, name: str) -> bool:
        """Return whether an operation surely runs where it is noisy.

        What changes images runs mostly in a pipeline, on a CPU and without gradients. In a model,
        and beside a tape, gradients flow through it.
        """
        if not name.startswith("tf.image."):
            return True
        node = self.frames[-1].node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return True
        return node.name in IN_MODELS or self.has_tape()

    def has_tape(self) -> bool:
        """Return whether the code that runs has made a tape."""
        for value in self.scope.names.values():
            for each in options(value):
                if isinstance(each, Made) and "tape" in each.marks:
                    return True
        return False

    # ------------------------------------------------------------ conditions

    def is_nearest(self, name: str, call: Call) -> bool:
        """Return whether the nearest pixel is taken."""
        if name == "tf.image.resize":
            method = call.get("method", 2)
            last = method.name.rpartition(".")[2] if isinstance(method, Library) else ""
            return call.get_constant("method", 2) in NEAREST or last in NEAREST
        if name == "keras.layers.UpSampling2D":  # it takes the nearest by default
            return not call.starred and call.get_constant("interpolation", 2) in (None, "nearest")
        return True

    def is_bilinear(self, name: str, call: Call) -> bool:
        """Return whether pixels are mixed, as they are by default."""
        return name != "tf.image.resize" or call.get("method", 2) is None

    def is_weighted(self, name: str, call: Call) -> bool:
        """Return whether what is counted has weights."""
        return call.get("weights", 1) is not None and call.get_constant("weights", 1) is not None

    def is_overlapping(self, name: str, call: Call) -> bool:
        """Return whether windows overlap: otherwise each number gets one gradient, in any order."""
        if name.startswith("keras."):
            if call.get_constant("strides", 1) is None:  # as large as a window
                return False
            sizes, strides = call.get("pool_size", 0), call.get("strides", 1)
        else:
            sizes, strides = call.get("ksize", 1), call.get("strides", 2)
        every, steps = _list_numbers(sizes), _list_numbers(strides)
        if not every or not steps:
            return True
        if len(every) != len(steps):  # one number stands for all
            return max(every) > min(steps)
        return any(size > step for size, step in zip(every, steps, strict=True))

    def note_width(self, name: str, call: Call, made: Value) -> None:
        """Note how many numbers each row of a tensor has, where that is written or a setting."""
        size = call.get(*WIDTHS[name])
        if isinstance(size, Sequence) and size.items:  # the shape of a placeholder
            size = size.items[-1]
        if size is not None and type(size.default) is int:
            self.widths[made] = size.default

    def has_many_classes(self, name: str, call: Call) -> bool:
        """Return whether there are more classes than one thread adds up, as far as that is written.

        Where it is not, there are mostly fewer: of 13 findings of rounds 43 to 45 without a number
        10 were false.
        """
        known = [self.widths[each] for each in call.list_values() if each in self.widths]
        return bool(known) and min(known) > FEW_CLASSES

    def is_frozen(self, name: str, call: Call) -> bool:
        """Return whether a normalization is not trained."""
        return name == "tf.nn.fused_batch_norm" and call.get_constant("is_training") is False

    def goes_on(self, name: str, call: Call) -> bool:
        """Return whether a gradient flows through the maxima: none does through their places."""
        return call.node not in self.first_dropped

    def is_never(self, name: str, call: Call) -> bool:
        """Return False: another rule tells it."""
        return False

    def is_trained(self, name: str, call: Call) -> bool:
        """Return whether rows are taken from weights that are trained."""
        given = call.get("params", 0)
        every = options(given or Value())
        found = [each for each in every if isinstance(each, Made) and not _is_fixed(each)]
        # A variable on a CPU is looked up and updated there.
        found = [each for each in found if "on CPU" not in each.marks]
        return any("variable" in each.marks or each.name.endswith("add_weight") for each in found)

    def is_trained_filter(self, name: str, call: Call) -> bool:
        """Return whether a filter or a bias can be trained: one that is made of numbers is not."""
        if name.startswith("keras."):
            return True
        given = [call.get("filter", 1), call.get("bias", 1)]
        return not any(
            each.kind in ("tensor", "number", "whole") for each in given if each is not None
        )

    def is_fraction(self, name: str, call: Call) -> bool:
        """Return whether an order can matter to what is added: not to whole numbers, and not where
        each place comes once.
        """
        first = 0
        if "tensor_scatter" in name:  # after the tensor
            first = 1
        places, given = call.get("indices", first), call.get("updates", first + 1)
        if places is not None and places.kind == "unique":
            return False
        return given is None or "whole" not in given.kind

    def is_repeated_index(self, name: str, call: Call) -> bool:
        """Return whether an index can come twice: an optimizer of TensorFlow 1 gets each once in
        its own method.
        """
        return not any("apply_sparse" in getattr(frame.node, "name", "") for frame in self.frames)

    def is_sparsely_updated(self, name: str, call: Call) -> bool:
        """Return whether an embedding is made; whether its optimizer adds sparse gradients is
        checked where the optimizer is given.
        """
        return name == "keras.layers.Embedding" and self.has_sparse_optimizer(call.node)

    def has_sparse_optimizer(self, node: ast.AST) -> bool:
        """Return whether the function around, or else the file, trains with an optimizer that
        updates sparsely.
        """
        module = self.source.module
        if next(module.find_methods(TRAINING_METHODS), None) is None:
            return False
        # Keras 2 adds the rows of an index that comes twice before it applies them
        # (benchmarks/README.md, rounds 38 and 39).
        words = module.imports | module.quoted_words
        if words & LEGACY_KERAS and matches_version([">=2.16"], self.tensorflow):
            return False
        here = module.find_function_around(node)
        made = [(call, name) for call, name in module.calls if "optim" in name]
        # A file of several models: the optimizer of this one is made in the same function.
        near: list[tuple[ast.Call, str]] = []
        if here is not None:
            near = [each for each in made if module.find_function_around(each[0]) is here]
        names: list[str] = []
        for made_by, name in near or made:
            if not _has_momentum(made_by):
                names.append(name.rpartition(".")[2])
        for call in module.find_methods(("compile",)):
            # The optimizer by its name, as a text.
            given = call.args[:1]
            given += [word.value for word in call.keywords if word.arg == "optimizer"]
            names += [str(each.value) for each in given if isinstance(each, ast.Constant)]
        for name in names:
            versions = SPARSE_OPTIMIZERS.get(name.lower())
            if versions is not None and matches_version(versions, self.tensorflow):
                return True
        return False

    def check_scatter(self, owner: Value, call: Call) -> None:
        """Report a scattered sum into a variable, unless its places are made unique."""
        row = next(each for each in load_source_table().source if each.id == SCATTER)
        if not isinstance(owner, Made) or "variable" not in owner.marks:
            return
        given = call.get_first()
        if isinstance(given, Made) and given.name == "tf.IndexedSlices":
            first = given.arguments[0] if given.arguments else Value()
            places = given.arguments[1] if len(given.arguments) > 1 else Value()
            if type(first.default) is int or "unique" in (first.kind, places.kind):
                return
        self.report_noisy(row, call)

    # ------------------------------------------------------------ sums

    def check_sum(self, name: str, call: Call) -> None:
        """Report AddN of three or more."""
        # Outside of graphs it adds in the order given. A function may become one (`tf.function`).
        inside = any(
            isinstance(frame.node, ast.FunctionDef | ast.AsyncFunctionDef) for frame in self.frames
        )
        if not inside and not self.source.has_sessions:
            return
        given = call.get("inputs", ADDERS[name]) or Value()
        # What a graph collects, such as losses, is mostly used nowhere else: then AddN adds in order
        # (benchmarks/README.md, round 41).
        if isinstance(given, Made) and given.name == "tf.get_collection":
            return
        many = self.count_terms(given)
        if many is not None and many < 3:  # a + b is b + a
            return
        if self.is_counted(given) or self.is_asserted(call):
            return
        if "accumulate" not in name and not is_first_shared(self.source.module, call.node):
            return
        if is_only_minimized(self.source.module, call.node):
            return
        if many is not None and isinstance(given, Sequence) and given.items is not None:
            message = f"{name} adds {many} tensors in any order"
        else:
            message = f"{name} adds three or more tensors in any order"
        if matches_version([">=1.15"], self.tensorflow):
            self.ledger.report("ENV402", self.source, Hit(call.node, message))

    def count_terms(self, given: Value) -> int | None:
        """Return how many tensors there are at most."""
        if isinstance(given, Either):
            most = 0
            for each in given.options:
                count = self.count_terms(each)
                if count is None:
                    return None
                most = max(most, count)
            return most
        if isinstance(given, Sequence | Table):
            return given.most
        return None

    def is_counted(self, given: Value) -> bool:
        """Return whether each of what is added is a size: whole numbers add up alike in any order."""
        return isinstance(given, Sequence) and given.element.kind == "whole"

    def is_asserted(self, call: Call) -> bool:
        """Return whether a test reads the sum at once: then it is not part of a graph."""
        parent = self.source.module.get_parent(call.node)
        function = parent.func if isinstance(parent, ast.Call) else None
        return isinstance(function, ast.Attribute) and function.attr.startswith("assert")


def _has_momentum(call: ast.Call) -> bool:
    """Return whether an optimizer is made with momentum: then it updates whole variables."""
    for word in call.keywords:
        if word.arg == "momentum":
            return not isinstance(word.value, ast.Constant) or bool(word.value.value)
    return False


Condition = Callable[[Operations, str, Call], bool]
CONDITIONS: dict[str, Condition] = {
    "resize-nearest-backprop": Operations.is_nearest,
    "upsampling-nearest-backprop": Operations.is_nearest,
    "bias-add-backprop": Operations.is_trained_filter,
    "depthwise-conv-backprop-filter": Operations.is_trained_filter,
    "resize-bilinear-backprop": Operations.is_bilinear,
    "cudnn-max-pool-backprop": Operations.is_overlapping,
    "max-pool-with-argmax-backprop": Operations.goes_on,
    "bincount": Operations.is_weighted,
    "bincount-weighted-cpu": Operations.is_weighted,
    "fused-batch-norm-frozen-backprop": Operations.is_frozen,
    "indexed-slices-to-tensor": Operations.is_never,
    "gather-backprop": Operations.is_trained,
    "scatter-nd": Operations.is_fraction,
    "softmax-cross-entropy": Operations.has_many_classes,
    "sparse-softmax-cross-entropy": Operations.has_many_classes,
    "scatter-ref-variables": Operations.is_repeated_index,
    "resource-scatter-add-cpu": Operations.is_sparsely_updated,
}
"""When a call that the table lists is noisy; without an entry: always."""


def _list_numbers(value: Value | None) -> list[int]:
    """Return the sizes that a call gives, as a number or a list of them; none where one is unknown."""
    items = [value]
    if isinstance(value, Sequence):
        items = list(value.items or [])
    numbers: list[int] = []
    for each in items:
        if each is None or not isinstance(each.default, int):
            return []
        numbers.append(each.default)
    return numbers


def is_listed(name: str) -> bool:
    """Return whether the tables know an operation."""
    return name in ADDERS or name in _list_operations()


@cache
def _list_operations() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for source in load_source_table().source:
        if source.category == "op" or source.id == "parameter-server-strategy":
            for name in source.calls:
                if source.id not in ONE_RULE_EACH:
                    found.setdefault(canonical(name), []).append(source)
    return found


def _is_fixed(variable: Made) -> bool:
    """Return whether a variable is made with `trainable=False`."""
    trainable = variable.keywords.get("trainable")
    return isinstance(trainable, Constant) and trainable.value is False


def _describe_with_switch(source: Row, tensorflow: str) -> tuple[str, str] | None:
    """Return what an operation does under op determinism, and the remedy; None where nothing need
    be said.
    """
    solutions = source.find_solutions(tensorflow)
    kinds = {solution.kind for solution in solutions}
    errors = source.find_errors(tensorflow)
    # First, as an error is worse than noise, and the switch that causes it would seem to help.
    if errors and "raises" in kinds:
        text = f"under op determinism this raises {errors[0].error} on a GPU: {source.component}"
        return text, _find_note(solutions) or "Replace it, or run it on the CPU."
    if kinds & {"api", "env", "raises", "default"}:
        return None
    text = f"this differs from run to run{_name_platform(source)}, even under op determinism: {source.component}"
    return text, _find_note(solutions) or "Replace it."


def _describe_without_switch(source: Row, tensorflow: str) -> tuple[str, str] | None:
    """Return what an operation does without op determinism, and the remedy; those that it fixes on
    GPUs belong to ENV108.
    """
    solutions = source.find_solutions(tensorflow)
    switches = [each for each in solutions if each.kind in ("api", "env")]
    # Before 2.1 no single switch makes all operations of a GPU deterministic, so that ENV108 does
    # not speak for each.
    all_at_once = source.platform == "gpu" and matches_version([">=2.1"], tensorflow)
    if any(each.kind == "default" for each in solutions) or (switches and all_at_once):
        return None
    text = f"this differs from run to run{_name_platform(source)}: {source.component}"
    if switches and switches[0].api:
        return text, f"Turn op determinism on: {switches[0].api}."
    if switches and switches[0].set:
        sets = " ".join(f"{name}={value}" for name, value in switches[0].set.items())
        return text, f"Set {sets} before the process starts."
    return text, _find_note(solutions) or "Replace it."


def _name_platform(source: Row) -> str:
    return {"gpu": " on a GPU", "cpu": " on a CPU"}.get(source.platform, "")


def _find_note(solutions: Several[Solution]) -> str | None:
    return next((each.note for each in solutions if each.kind == "workaround" and each.note), None)
