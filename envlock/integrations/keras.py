"""Keras: a callback that verifies before the first step, and compares weights with another run.

from envlock.integrations.keras import LockCallback
model.fit(x, y, callbacks=[LockCallback(repeat="weights.json")])
"""

from __future__ import annotations

import os
import warnings

import envlock
from envlock.integrations.arrays import compute_digest, read_records, write_records

# The same choice as TensorFlow's own.
if os.environ.get("TF_USE_LEGACY_KERAS") in ("1", "true", "True"):
    from tf_keras.callbacks import Callback
else:
    from keras.callbacks import Callback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Union

    Path = Union[str, "os.PathLike[str]"]


class RepeatMismatch(RuntimeError):  # noqa: N818 (it is an answer, not a fault)
    """An epoch has ended with weights that differ from those of the earlier run."""


class LockCallback(Callback):  # type: ignore[misc] # Keras has no types
    """Refuse to train in an environment other than the locked one, and record in which one this
    model was trained.

    After `fit`, the line of `envlock show --line` is the value of `history.params["envlock"]` and
    `model.envlock`. It is not in the logs, which have only numbers: their other readers average
    them.

    Args:
        path, policy: as in `envlock.assert_locked()`.
        repeat: a file of digests. Epochs that it has are compared, the others are added; so the
            first run writes it, and the second one is compared with it.
        stamp: a saved model, which is stamped at the end of `fit`, as by `envlock.stamp()`. Another
            callback must have saved it by then, such as `ModelCheckpoint`. If it cannot be stamped,
            there is a warning.

    Raises:
        EnvironmentMismatch, LockfileError: at the start of `fit`, as `envlock.assert_locked()`
            does.
        RepeatMismatch: at the end of an epoch whose weights differ from those of the earlier run.
    """

    def __init__(
        self,
        path: Optional[Path] = None,
        policy: Optional[str] = None,
        *,
        repeat: Optional[Path] = None,
        stamp: Optional[Path] = None,
    ) -> None:
        super().__init__()
        self.path = path
        self.policy = policy
        self.repeat = repeat
        self.stamp = stamp
        self.line: Optional[str] = None

    def on_train_begin(self, logs: object = None) -> None:
        """Verify, and write the line into the history of the run and the model."""
        # None means ENVLOCK_MODE=off, which has printed that nothing is verified.
        if envlock.assert_locked(self.path, self.policy) is None:
            return
        self.line = envlock.cite(self.path)
        self.model.envlock = self.line
        # Keras passes the same object to all callbacks, so the history has the line, too.
        if isinstance(self.params, dict):
            self.params["envlock"] = self.line

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        """Compare the weights with those of the earlier run, or record them."""
        if self.repeat is None:
            return
        records = read_records(self.repeat)
        epochs = records.setdefault("epochs", {})
        weights = self._digest_weights()
        known = epochs.setdefault(str(epoch + 1), {"envlock": self.line, "weights": weights})
        difference = _compare_weights(weights, known["weights"])
        if difference is None:
            write_records(self.repeat, records)
            return
        if known["envlock"] != self.line:
            place = f"another environment, {known['envlock']}"
        else:
            place = "the same environment"
        raise RepeatMismatch(
            f"epoch {epoch + 1} is not as in the earlier run in {os.fspath(self.repeat)}: "
            f"{difference}; the earlier run was in {place}"
        )

    def on_train_end(self, logs: object = None) -> None:
        """Stamp the saved model, unless nothing was verified."""
        if self.stamp is None or self.line is None:
            return
        # No error may cost the user what hours of training have computed.
        try:
            self._stamp(self.stamp)
        except envlock.EnvlockError as error:
            warnings.warn(f"not stamped: {error.message}", stacklevel=2)

    def _stamp(self, model: Path) -> None:
        """Stamp a model with the lockfile that was verified at the start.

        Raises:
            UsageError: there is no such model.
            LockfileError: the lockfile has changed since then, or the model is damaged.
            WriteError: the model cannot be written; it is unchanged.
        """
        if envlock.cite(self.path) != self.line:
            raise envlock.LockfileError("the lockfile has changed since the training began")
        envlock.stamp(model, self.path)

    def _digest_weights(self) -> List[List[str]]:
        """Return the name and the digest of each weight of the model, in the model's order."""
        digests = []
        for weight, array in zip(self.model.weights, self.model.get_weights()):  # noqa: B905 (Python 3.8)
            # Weights of Keras 2 have no path.
            name = str(getattr(weight, "path", weight.name))
            digests.append([name, compute_digest(array)])
        return digests


def _compare_weights(weights: List[List[str]], known: List[List[str]]) -> Optional[str]:
    """Return how weights differ from those of an earlier run; None if all are equal."""
    if len(weights) != len(known):
        return f"{len(weights)} weights, and {len(known)} in the earlier run"
    # Names are numbered within a process (`dense_1`), so weights are compared by position.
    differing = [new[0] for new, old in zip(weights, known) if new[1] != old[1]]  # noqa: B905 (Python 3.8)
    if not differing:
        return None
    return f"{len(differing)} of {len(weights)} weights differ, first {differing[0]}"
