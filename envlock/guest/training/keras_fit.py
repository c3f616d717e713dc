"""Train a Keras model with its own `fit`, and show inputs, predictions, loss, gradients and weights of every step.

What a step computes is copied inside of the graph into variables, and read by a callback when the step is over: the
mode of execution (eager, graph, XLA) stays the user's. Works with Keras 2 and 3 over TensorFlow.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional

ORDER = ("inputs", "predictions", "loss", "gradients", "weights")
"""As they are computed: the first of them that differs is nearest to the cause."""


def train(
    model: Any,
    data: Any,
    fit_arguments: Optional[Mapping[str, Any]] = None,
    *,
    taker: Callable[..., None],
) -> None:
    """Call `model.fit`, and give what each batch computed to `taker(step, values)`.

    `data` is what `fit` takes first: a dataset or generator, or a tuple of `(x, y)` or `(x, y, sample_weight)`.
    """
    taps = Taps()
    undo = [*_tap_step(model, taps), *_tap_gradients(model, taps)]
    model.train_function = None  # or one that was traced before, without the taps, is used
    arguments = {"verbose": 0, **dict(fit_arguments or {})}
    arguments["callbacks"] = [*(arguments.get("callbacks") or []), _callback(model, taps, taker)]
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
    """Variables that hold what the last step computed, by quantity.

    A step that was traced for a batch of another shape has its own set of them; the set that a step has counted up
    is the one that it has filled.
    """

    def __init__(self) -> None:
        self.sets: Dict[str, List[Set]] = {}

    def hold(self, quantity: str, parts: Mapping[str, Any], *, static: bool = False) -> None:
        """Copy tensors into variables, from inside of the step; compiled by XLA (`static`), only known shapes fit."""
        import tensorflow as tf

        if (
            tf.distribute.has_strategy()
        ):  # a replica's values would need variables of the strategy's own
            return
        found = {name: tf.convert_to_tensor(part) for name, part in parts.items()}
        if not found or (
            static and not all(part.shape.is_fully_defined() for part in found.values())
        ):
            return
        sets = self.sets.setdefault(quantity, [])
        held = next((each for each in sets if each.fits(found)), None)
        if held is None:
            with tf.init_scope():
                held = Set(found, static=static)
            sets.append(held)
        held.fill(found)

    def read(self) -> Dict[str, Dict[str, Any]]:
        """Return what the last step has filled, in the order in which a step computes it."""
        found: Dict[str, Dict[str, Any]] = {}
        for quantity in ORDER:
            for each in self.sets.get(quantity, []):
                if each.moved():
                    found[quantity] = {
                        name: variable.numpy() for name, variable in each.variables.items()
                    }
        return found


class Set:
    """Variables for parts of these kinds, and how often they were filled."""

    def __init__(self, parts: Mapping[str, Any], *, static: bool) -> None:
        import tensorflow as tf

        self.variables = {name: _room(part, static=static) for name, part in parts.items()}
        self.filled = tf.Variable(0, dtype=tf.int64, trainable=False, name="envlock_filled")
        self.seen = 0

    def fits(self, parts: Mapping[str, Any]) -> bool:
        """Return whether the variables can hold these parts."""
        return self.variables.keys() == parts.keys() and all(
            variable.dtype.base_dtype == parts[name].dtype
            and variable.shape.is_compatible_with(parts[name].shape)
            for name, variable in self.variables.items()
        )

    def fill(self, parts: Mapping[str, Any]) -> None:
        """Copy the parts, from inside of the step."""
        for name, variable in self.variables.items():
            variable.assign(parts[name])
        self.filled.assign_add(1)

    def moved(self) -> bool:
        """Return whether it was filled since this was asked last."""
        before, self.seen = self.seen, int(self.filled.numpy())
        return self.seen != before


def _room(value: Any, *, static: bool) -> Any:
    import tensorflow as tf

    shape = value.shape if static else tf.TensorShape(None)
    filling = [size or 0 for size in shape.as_list()] if static else []
    first = tf.fill(filling, "") if value.dtype == tf.string else tf.zeros(filling, value.dtype)
    return tf.Variable(first, shape=shape, trainable=False, name="envlock_tap")


def _parts(values: Any) -> Dict[str, Any]:
    """Return the tensors of a structure by their number, those of ragged and sparse ones too."""
    import tensorflow as tf

    flat = [each for each in tf.nest.flatten(values, expand_composites=True) if each is not None]
    return {str(n): each for n, each in enumerate(flat)}


def _gradient_parts(gradients: List[Any], variables: List[Any]) -> Dict[str, Any]:
    """Return the gradients by number and name of their variable; a sparse one has two."""
    found: Dict[str, Any] = {}
    for n, (gradient, variable) in enumerate(zip(gradients, variables)):
        name = f"{n}/{_name(variable)}"
        if hasattr(gradient, "indices") and hasattr(gradient, "values"):
            found.update({f"{name}/indices": gradient.indices, f"{name}/values": gradient.values})
        elif gradient is not None:
            found[name] = gradient
    return found


def _tap_step(model: Any, taps: Taps) -> List[Any]:
    """Let the model show its inputs, predictions and loss; return what is to be undone."""
    step: Any = model.train_step
    loss_of: Any = getattr(model, "compute_loss", None)  # TensorFlow before 2.8 has none

    def train_step(data: Any) -> Any:
        taps.hold("inputs", _parts(data), static=_compiled(model))
        return step(data)

    def compute_loss(*args: Any, **kwargs: Any) -> Any:
        loss = loss_of(*args, **kwargs)
        predictions = kwargs.get("y_pred", args[2] if len(args) > 2 else None)
        taps.hold("predictions", _parts(predictions), static=_compiled(model))
        taps.hold("loss", _parts(loss), static=_compiled(model))
        return loss

    model.train_step = train_step
    if loss_of is None:
        return [("train_step", model)]
    model.compute_loss = compute_loss
    return [("train_step", model), ("compute_loss", model)]


def _tap_gradients(model: Any, taps: Taps) -> List[Any]:
    """Let the optimizer show the gradients that it is given; return what is to be undone."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        return []
    name = (
        "apply" if hasattr(optimizer, "apply") else "apply_gradients"
    )  # Keras 3's calls the former
    original = getattr(optimizer, name)

    def apply(gradients: Any, *args: Any, **kwargs: Any) -> Any:
        gradients = list(gradients)
        if name == "apply":
            variables = args[0] if args else kwargs.get("trainable_variables")
            parts = _gradient_parts(gradients, list(variables or model.trainable_variables))
        else:
            parts = _gradient_parts(
                [each for each, _ in gradients], [variable for _, variable in gradients]
            )
        taps.hold("gradients", parts, static=_compiled(model))
        return original(gradients, *args, **kwargs)

    setattr(optimizer, name, apply)
    return [(name, optimizer)]


def _compiled(model: Any) -> bool:
    """Return whether XLA compiles the step, which has no room for values of unknown shape."""
    compiled = getattr(model, "jit_compile", None)
    if compiled is None:
        compiled = getattr(model, "_jit_compile", False)
    return bool(compiled)


def _callback(model: Any, taps: Taps, taker: Callable[..., None]) -> Any:
    """Return a callback of the model's own Keras that shows every batch."""
    keras = sys.modules.get("keras") or sys.modules["tensorflow"].keras
    if not any(type_.__module__.partition(".")[0] == "keras" for type_ in type(model).__mro__):
        keras = sys.modules["tf_keras"]

    class Shows(keras.callbacks.Callback):  # type: ignore[name-defined,misc]
        step = 0

        def on_train_batch_end(self, batch: int, logs: Optional[Mapping[str, Any]] = None) -> None:
            values: Dict[str, Any] = {name: _alone(parts) for name, parts in taps.read().items()}
            if "loss" not in values and logs and "loss" in logs:  # a train_step of the user's own
                values["loss"] = logs["loss"]
            values["weights"] = {f"{n}/{_name(w)}": w for n, w in enumerate(model.weights)}
            taker(self.step, values)
            self.step += 1

    return Shows()


def _alone(parts: Mapping[str, Any]) -> Any:
    """Return the only part without a name that is but its number, or all by their names."""
    return parts["0"] if parts.keys() == {"0"} else parts


def _name(weight: Any) -> str:
    """Return the last word of a weight's name; the first ones count the models of the process."""
    return str(weight.name).rpartition("/")[2].partition(":")[0]
