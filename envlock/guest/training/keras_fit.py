"""Train a Keras model with its own `fit`, and record inputs, predictions, loss, gradients and
weights of every step.

The values of a step are copied into variables inside the graph, and a callback reads them after the
step: the mode of execution (eager, graph, XLA) remains the user's. Works with Keras 2 and 3 over
TensorFlow.

Import it only when there is a model: it imports TensorFlow.
"""

from __future__ import annotations

import sys

import tensorflow as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

    from tensorflow import Tensor, Variable
    from tensorflow.keras import Model
    from tensorflow.keras.callbacks import Callback

    Parts = Mapping[str, Tensor]
    Taker = Callable[[int, Mapping[str, object]], None]
    Undo = List[Tuple[str, object]]
    """Attributes of objects that hide a method of their class."""

ORDER = ("inputs", "predictions", "loss", "gradients", "weights")
"""In the order of computation: the first one that differs is nearest to the cause."""


def train(
    model: Model,
    data: object,
    fit_arguments: Optional[Mapping[str, object]] = None,
    *,
    taker: Taker,
) -> None:
    """Call `model.fit`, and pass the values of each batch to `taker(step, values)`.

    `data` is the first argument of `fit`: a dataset or generator, or a tuple of `(x, y)` or `(x, y,
    sample_weight)`.
    """
    taps = Taps()
    undo = [*_tap_step(model, taps), *_tap_gradients(model, taps)]
    # A function that was built earlier, without the taps, would be used again.
    model.train_function = None
    arguments: Dict[str, object] = {"verbose": 0, **dict(fit_arguments or {})}
    callbacks: Sequence[object] = arguments.get("callbacks") or []  # type: ignore[assignment]
    arguments["callbacks"] = [*callbacks, _make_callback(model, taps, taker)]
    try:
        if isinstance(data, (tuple, list)):
            names = ("x", "y", "sample_weight")[: len(data)]
            model.fit(**dict(zip(names, data)), **arguments)
        else:
            model.fit(data, **arguments)
    finally:
        for name, owner in undo:
            delattr(owner, name)
        model.train_function = None


class Taps:
    """Variables with the values of the last step, by quantity.

    A step that was traced for a batch of another shape has its own set of variables; the set whose
    counter a step has increased is the one that it has filled.
    """

    def __init__(self) -> None:
        self.sets: Dict[str, List[Set]] = {}

    def hold(self, quantity: str, parts: Parts, *, is_static: bool = False) -> None:
        """Copy tensors into variables, inside the step; if XLA compiles it, only those of known
        shape.
        """
        # The values of a replica would need variables of the strategy.
        if tf.distribute.has_strategy():
            return
        tensors = {name: tf.convert_to_tensor(part) for name, part in parts.items()}
        if not tensors:
            return
        if is_static and not all(part.shape.is_fully_defined() for part in tensors.values()):
            return
        self._find_set(quantity, tensors, is_static=is_static).fill(tensors)

    def _find_set(self, quantity: str, parts: Parts, *, is_static: bool) -> Set:
        """Return the set of variables for such parts, which is created with the first ones."""
        sets = self.sets.setdefault(quantity, [])
        for candidate in sets:
            if candidate.can_hold(parts):
                return candidate
        # Outside of the step's graph, or the variables would be deleted with it.
        with tf.init_scope():
            made = Set(parts, is_static=is_static)
        sets.append(made)
        return made

    def read(self) -> Dict[str, Dict[str, object]]:
        """Return the values of the last step, in the order in which a step computes them."""
        values: Dict[str, Dict[str, object]] = {}
        for quantity in ORDER:
            for candidate in self.sets.get(quantity, []):
                if candidate.has_new_values():
                    values[quantity] = candidate.read()
        return values


class Set:
    """Variables for parts of these types, and how often they were filled."""

    def __init__(self, parts: Parts, *, is_static: bool) -> None:
        self.variables: Dict[str, Variable] = {
            name: _make_variable(part, is_static=is_static) for name, part in parts.items()
        }
        self.filled = tf.Variable(0, dtype=tf.int64, trainable=False, name="envlock_filled")
        self.seen = 0

    def can_hold(self, parts: Parts) -> bool:
        """Return whether the variables can store these parts."""
        if self.variables.keys() != parts.keys():
            return False
        for name, variable in self.variables.items():
            part = parts[name]
            if variable.dtype.base_dtype != part.dtype:
                return False
            if not variable.shape.is_compatible_with(part.shape):
                return False
        return True

    def fill(self, parts: Parts) -> None:
        """Copy the parts, inside the step."""
        for name, variable in self.variables.items():
            variable.assign(parts[name])
        self.filled.assign_add(1)

    def has_new_values(self) -> bool:
        """Return whether it was filled since the last call."""
        before, self.seen = self.seen, int(self.filled.numpy())
        return self.seen != before

    def read(self) -> Dict[str, object]:
        """Return the values of the variables."""
        return {name: variable.numpy() for name, variable in self.variables.items()}


def _make_variable(value: Tensor, *, is_static: bool) -> Variable:
    """Return a variable that can store such a value: of its shape if that is static, else of any
    shape.
    """
    shape = tf.TensorShape(None)
    sizes: List[int] = []
    if is_static:
        shape = value.shape
        sizes = [size or 0 for size in shape.as_list()]
    if value.dtype == tf.string:
        first = tf.fill(sizes, "")
    else:
        first = tf.zeros(sizes, value.dtype)
    return tf.Variable(first, shape=shape, trainable=False, name="envlock_tap")


def _split(values: object) -> Parts:
    """Return the tensors in a structure by number, including those in ragged and sparse ones."""
    tensors = tf.nest.flatten(values, expand_composites=True)
    present = [tensor for tensor in tensors if tensor is not None]
    return {str(number): tensor for number, tensor in enumerate(present)}


def _name_gradients(gradients: Sequence[Tensor], variables: Sequence[Variable]) -> Parts:
    """Return the gradients by number and name of their variable; a sparse one has two parts."""
    parts: Dict[str, Tensor] = {}
    for number, (gradient, variable) in enumerate(zip(gradients, variables)):
        name = f"{number}/{_get_name(variable)}"
        if hasattr(gradient, "indices") and hasattr(gradient, "values"):
            parts[f"{name}/indices"] = gradient.indices
            parts[f"{name}/values"] = gradient.values
        elif gradient is not None:
            parts[name] = gradient
    return parts


def _tap_step(model: Model, taps: Taps) -> Undo:
    """Record the inputs, predictions and loss of a model; return what to undo."""
    original_step = model.train_step
    original_loss = getattr(model, "compute_loss", None)  # TensorFlow before 2.8 has none

    def train_step(data: object) -> object:
        taps.hold("inputs", _split(data), is_static=_is_compiled(model))
        return original_step(data)

    def compute_loss(*args: object, **kwargs: object) -> object:
        loss = original_loss(*args, **kwargs)  # type: ignore[misc]
        predictions = args[2] if "y_pred" not in kwargs and len(args) > 2 else kwargs.get("y_pred")
        is_static = _is_compiled(model)
        taps.hold("predictions", _split(predictions), is_static=is_static)
        taps.hold("loss", _split(loss), is_static=is_static)
        return loss

    model.train_step = train_step
    if original_loss is None:
        return [("train_step", model)]
    model.compute_loss = compute_loss
    return [("train_step", model), ("compute_loss", model)]


def _tap_gradients(model: Model, taps: Taps) -> Undo:
    """Record the gradients that the optimizer gets; return what to undo."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        return []
    # Keras 3 calls `apply`; before, there is only `apply_gradients`.
    name = "apply" if hasattr(optimizer, "apply") else "apply_gradients"
    original = getattr(optimizer, name)

    def apply_gradients(
        pairs: Sequence[Tuple[Tensor, Variable]], *args: object, **kwargs: object
    ) -> object:
        pairs = list(pairs)
        gradients = [gradient for gradient, _ in pairs]
        variables = [variable for _, variable in pairs]
        parts = _name_gradients(gradients, variables)
        taps.hold("gradients", parts, is_static=_is_compiled(model))
        return original(pairs, *args, **kwargs)

    def apply(gradients: Sequence[Tensor], *args: object, **kwargs: object) -> object:
        gradients = list(gradients)
        variables = args[0] if args else kwargs.get("trainable_variables")
        if not variables:
            variables = model.trainable_variables
        parts = _name_gradients(gradients, list(variables))  # type: ignore[call-overload]
        taps.hold("gradients", parts, is_static=_is_compiled(model))
        return original(gradients, *args, **kwargs)

    if name == "apply":
        optimizer.apply = apply
    else:
        optimizer.apply_gradients = apply_gradients
    return [(name, optimizer)]


def _is_compiled(model: Model) -> bool:
    """Return whether XLA compiles the step, which cannot store values of unknown shape."""
    compiled = getattr(model, "jit_compile", None)
    return bool(getattr(model, "_jit_compile", False) if compiled is None else compiled)


def _make_callback(model: Model, taps: Taps, taker: Taker) -> Callback:
    """Return a callback of the model's own Keras that passes on every batch."""
    keras = sys.modules.get("keras") or sys.modules["tensorflow"].keras
    packages = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    if "keras" not in packages:
        keras = sys.modules["tf_keras"]

    class Shows(keras.callbacks.Callback):  # type: ignore[name-defined,misc]
        step = 0

        def on_train_batch_end(
            self, batch: int, logs: Optional[Mapping[str, object]] = None
        ) -> None:
            values: Dict[str, object] = {}
            for name, parts in taps.read().items():
                values[name] = _unwrap_single(parts)
            # If the user's own train_step computes the loss without `compute_loss`.
            if "loss" not in values and logs and "loss" in logs:
                values["loss"] = logs["loss"]
            weights = {}
            for number, weight in enumerate(model.weights):
                weights[f"{number}/{_get_name(weight)}"] = weight
            values["weights"] = weights
            taker(self.step, values)
            self.step += 1

    return Shows()


def _unwrap_single(parts: Mapping[str, object]) -> object:
    """Return the part if there is only one, else all by name."""
    if parts.keys() == {"0"}:
        return parts["0"]
    return parts


def _get_name(weight: Variable) -> str:
    """Return the last component of a weight's name; the first ones count the models in the process."""
    return str(weight.name).rpartition("/")[2].partition(":")[0]
