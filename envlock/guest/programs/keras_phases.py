"""Which of a Keras model's functions is running: `train`, `evaluate` or `predict`; and its end after
some batches.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps

from envlock.guest.tracing.runs import find_kerases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Dict, Iterator, List, Mapping, Optional, Tuple

    from tensorflow.keras import Model
PHASES = {
    "fit": "train",
    "train_on_batch": "train",
    "evaluate": "evaluate",
    "test_on_batch": "evaluate",
    "predict": "predict",
    "predict_on_batch": "predict",
}
"""What a method of a Keras model is called in a lockfile."""


class Phases:
    """Knows which method of a Keras model is running, and stops `fit` after some batches."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self._running: List[str] = []

    @property
    def current(self) -> str:
        """The name of what is running; empty outside of a model's methods."""
        if self._running:
            return self._running[-1]
        return ""

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watch the models of every Keras that is imported."""
        undo: List[Tuple[type, str, object]] = []
        for keras in find_kerases():
            for name, phase in PHASES.items():
                for owner in keras.Model.__mro__:
                    # `Model` may inherit it.
                    if name in vars(owner):
                        original = vars(owner)[name]
                        undo.append((owner, name, original))
                        setattr(owner, name, self._wrap(original, name, phase, keras))
                        break
        try:
            yield
        finally:
            for owner, name, original in reversed(undo):
                setattr(owner, name, original)

    def _wrap(
        self, original: Callable[..., object], name: str, phase: str, keras: ModuleType
    ) -> Callable[..., object]:
        @wraps(original)
        def call(model: object, *args: object, **kwargs: object) -> object:
            if name == "fit":
                callbacks = kwargs.get("callbacks") or []
                # The sixth argument: if it is given by position, or is not a list, nothing is added.
                if len(args) < 6 and isinstance(callbacks, (list, tuple)):
                    kwargs["callbacks"] = [*callbacks, _make_stop(keras, self.steps)]
            self._running.append(phase)
            try:
                return original(model, *args, **kwargs)
            finally:
                self._running.pop()

        return call


def _make_stop(keras: ModuleType, steps: int) -> object:
    class Stops(keras.callbacks.Callback):  # type: ignore[misc,name-defined]
        seen = 0

        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            self.seen += 1
            if self.seen >= steps:
                self.model.stop_training = True

    return Stops()


def train_model(
    model: Model, data: object, fit_arguments: Optional[Mapping[str, object]] = None, *, steps: int
) -> None:
    """Train a model, evaluate it and predict with it, each for some batches.

    `data` is what `fit` takes first: a dataset or generator, or a tuple of `(x, y)` or
    `(x, y, sample_weight)`.

    Raises:
        BaseException: whatever the user's model or data raise.
    """
    arguments: Dict[str, object] = {"verbose": 0, **dict(fit_arguments or {})}
    if not isinstance(data, (tuple, list)):
        model.fit(data, **arguments)
        if hasattr(data, "take"):
            few = data.take(steps)
            model.evaluate(few, verbose=0)
            model.predict(few, verbose=0)
        return
    names = ("x", "y", "sample_weight")[: len(data)]
    model.fit(**dict(zip(names, data)), **arguments)
    size = 32  # Keras' own
    given = arguments.get("batch_size")
    if isinstance(given, int):
        size = given
    try:
        few = [part[: steps * size] for part in data]
    except (
        TypeError
    ):  # dicts of inputs, which have no slices: training is all that is known of them
        return
    model.evaluate(**dict(zip(names, few)), batch_size=size, verbose=0)
    model.predict(few[0], batch_size=size, verbose=0)
