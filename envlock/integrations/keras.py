"""Keras: a callback that verifies before the first step, and compares the weights of every epoch with an earlier run.

from envlock.integrations.keras import LockCallback
model.fit(x, y, callbacks=[LockCallback(repeat="weights.json")])
"""

from __future__ import annotations

import os

import envlock
from envlock.integrations.arrays import digest_of, read_records, write_records

if os.environ.get("TF_USE_LEGACY_KERAS") in ("1", "true", "True"):  # as TensorFlow itself chooses
    from tf_keras.callbacks import Callback
else:
    from keras.callbacks import Callback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Union

    Path = Union[str, "os.PathLike[str]"]


class RepeatMismatch(RuntimeError):  # noqa: N818 (it is an answer, not a fault)
    """An epoch has ended with other weights than in the earlier run."""


class LockCallback(Callback):  # type: ignore[misc] # Keras has no types
    """Refuse to train in another environment than the locked one, and say in which one this model was trained.

    After `fit`, the line of `envlock show --line` is the value of `history.params["envlock"]` and `model.envlock`.
    Logs hold only numbers: their other readers average them.

    Args:
        path, policy: as in `envlock.assert_locked()`.
        repeat: a file of digests. Epochs that it has are compared, the others are added; so the first run writes it,
            and the second one is held to it.

    Raises:
        EnvironmentMismatch, LockfileError: at the start of `fit`, as `envlock.assert_locked()` does.
        RepeatMismatch: at the end of an epoch with other weights than that of the earlier run.
    """

    def __init__(
        self,
        path: Optional[Path] = None,
        policy: Optional[str] = None,
        *,
        repeat: Optional[Path] = None,
    ) -> None:
        super().__init__()
        self.path = path
        self.policy = policy
        self.repeat = repeat
        self.line: Optional[str] = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Verify, and write the line where the run and the model keep what they know of themselves."""
        if envlock.assert_locked(self.path, self.policy) is None:
            return  # ENVLOCK_MODE=off, which has been said
        self.line = envlock.cite(self.path)
        self.model.envlock = self.line
        if isinstance(self.params, dict):  # one object for all callbacks: the history's, too
            self.params["envlock"] = self.line

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Compare the weights with those of the earlier run, or record them."""
        if self.repeat is None:
            return
        records = read_records(self.repeat)
        epochs = records.setdefault("epochs", {})
        weights = self._weights()
        known = epochs.setdefault(str(epoch + 1), {"envlock": self.line, "weights": weights})
        # Names count up within a process (`dense_1`), so weights are compared by their places.
        differing = [new[0] for new, old in zip(weights, known["weights"]) if new[1] != old[1]]  # noqa: B905
        if len(weights) != len(known["weights"]):
            told = f"{len(weights)} weights, and {len(known['weights'])} in the earlier run"
        elif differing:
            told = f"{len(differing)} of {len(weights)} weights differ, first {differing[0]}"
        else:
            write_records(self.repeat, records)
            return
        place = (
            "the same environment"
            if known["envlock"] == self.line
            else f"another environment, {known['envlock']}"
        )
        raise RepeatMismatch(
            f"epoch {epoch + 1} is not as in the earlier run in {os.fspath(self.repeat)}: {told}; "
            f"the earlier run was in {place}"
        )

    def _weights(self) -> List[List[str]]:
        names = [
            str(getattr(weight, "path", weight.name)) for weight in self.model.weights
        ]  # Keras 2 has no path
        arrays = self.model.get_weights()
        return [[name, digest_of(array)] for name, array in zip(names, arrays)]  # noqa: B905 (Python 3.8)
