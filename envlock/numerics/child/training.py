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
    model: Any, data: Any, fit_arguments: Optional[Mapping[str, Any]] = None, *, taker: Callable[..., None]
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


class Taps:
    """Variables that hold what the last step computed, by quantity."""

    def __init__(self) -> None:
        self.variables: Dict[str, List[Any]] = {}

    def hold(self, quantity: str, values: Any, *, static: bool = False) -> None:
        """Copy the tensors in `values`; where the step is compiled by XLA (`static`), only those of a known shape."""
        import tensorflow as tf

        flat = [part for value in tf.nest.flatten(values) for part in _tensors(value)]
        if static and not all(
            getattr(each, "shape", None) is not None and each.shape.is_fully_defined() for each in flat
        ):
            self.variables.pop(quantity, None)
            return
        flat = [tf.convert_to_tensor(each) for each in flat]
        held = self.variables.get(quantity)
        if held is None or not _fits(held, flat):
            with tf.init_scope():
                held = self.variables[quantity] = [_room(each, static=static) for each in flat]
        for variable, value in zip(held, flat):
            variable.assign(value)

    def read(self) -> Dict[str, List[Any]]:
        """Return the values, in the order in which a step computes them."""
        found = {name: [v.numpy() for v in self.variables[name]] for name in ORDER if name in self.variables}
        return {name: values for name, values in found.items() if values}


def _tensors(value: Any) -> List[Any]:
    """Return the tensors of a gradient, which may be sparse; none for None."""
    if value is None:
        return []
    if hasattr(value, "indices") and hasattr(value, "values"):
        return [value.indices, value.values]
    return [value]


def _fits(held: List[Any], flat: List[Any]) -> bool:
    return len(held) == len(flat) and all(
        v.dtype.base_dtype == each.dtype and v.shape.is_compatible_with(each.shape) for v, each in zip(held, flat)
    )


def _room(value: Any, *, static: bool) -> Any:
    import tensorflow as tf

    shape = value.shape if static else tf.TensorShape(None)
    filling = [size or 0 for size in shape.as_list()] if static else []
    first = tf.fill(filling, "") if value.dtype == tf.string else tf.zeros(filling, value.dtype)
    return tf.Variable(first, shape=shape, trainable=False, name="envlock_tap")


def _tap_step(model: Any, taps: Taps) -> List[Any]:
    """Let the model show its inputs, predictions and loss; return what is to be undone."""
    step: Any = model.train_step
    loss_of: Any = getattr(model, "compute_loss", None)  # TensorFlow before 2.8 has none

    def train_step(data: Any) -> Any:
        taps.hold("inputs", data, static=_compiled(model))
        return step(data)

    def compute_loss(*args: Any, **kwargs: Any) -> Any:
        loss = loss_of(*args, **kwargs)
        predictions = kwargs.get("y_pred", args[2] if len(args) > 2 else None)
        taps.hold("predictions", predictions, static=_compiled(model))
        taps.hold("loss", loss, static=_compiled(model))
        return loss

    model.train_step = train_step
    if loss_of is None:
        return [("train_step", model)]
    model.compute_loss = compute_loss
    return [("train_step", model), ("compute_loss", model)]


def _tap_gradients(model: Any, taps: Taps) -> List[Any]:
    """Let the optimizer show the gradients that it is given; return what is to be undone."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None or _distributed():
        return []
    name = "apply" if hasattr(optimizer, "apply") else "apply_gradients"  # Keras 3's calls the former
    original = getattr(optimizer, name)

    def apply(gradients: Any, *args: Any, **kwargs: Any) -> Any:
        gradients = list(gradients)
        shown = gradients if name == "apply" else [gradient for gradient, _ in gradients]
        taps.hold("gradients", [part for each in shown for part in _tensors(each)], static=_compiled(model))
        return original(gradients, *args, **kwargs)

    setattr(optimizer, name, apply)
    return [(name, optimizer)]


def _distributed() -> bool:
    tf = sys.modules["tensorflow"]
    return bool(tf.distribute.has_strategy())


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
            values: Dict[str, Any] = dict(taps.read())
            if "loss" not in values and logs and "loss" in logs:  # a train_step of the user's own
                values["loss"] = logs["loss"]
            values["weights"] = {f"{n}/{_name(w)}": w for n, w in enumerate(model.weights)}
            values = {name: value[0] if _alone(value) else value for name, value in values.items()}
            taker(self.step, values)
            self.step += 1

    return Shows()


def _alone(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 1


def _name(weight: Any) -> str:
    """Return the last word of a weight's name; the first ones count the models of the process."""
    return str(weight.name).rpartition("/")[2].partition(":")[0]
