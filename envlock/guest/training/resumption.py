"""What a run went on without, after it was resumed from a checkpoint: its optimizer, a generator of
TensorFlow, or the place in its data.
"""

from __future__ import annotations

import gc
import importlib.abc
import sys

from envlock.guest.training import seed_setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Callable, List, Optional, Sequence, Set

KINDS = {
    "optimizer": ("Optimizer", "BaseOptimizer", "OptimizerV2"),
    "generator": ("Generator",),
    "iterator": ("OwnedIterator",),
}
"""What has a state beside weights, by the names of its classes."""
PACKAGES = ("tensorflow", "keras", "tf_keras")
RESTORING = ("restore", "read")
"""Methods of `tf.train.Checkpoint` that give objects their state back."""


class Resumption:
    """Notes what was alive and not in the checkpoint, whenever a program restores one."""

    def __init__(self) -> None:
        """Watch nothing until `watch` is called."""
        self.lost: Set[str] = set()

    def watch(self) -> None:
        """Watch from now on, or from the import of TensorFlow on."""
        if "tensorflow" in sys.modules:
            self._wrap(sys.modules["tensorflow"])
        else:
            sys.meta_path.insert(0, _AfterTensorFlow(self._wrap))

    def take(self) -> List[str]:
        """Return what was lost since the last call, in the order of the table."""
        lost = [kind for kind in KINDS if kind in self.lost]
        self.lost.clear()
        return lost

    def _wrap(self, tensorflow: ModuleType) -> None:
        checkpoint = getattr(getattr(tensorflow, "train", None), "Checkpoint", None)
        for name in RESTORING:
            original = getattr(checkpoint, name, None)
            if original is not None:
                setattr(checkpoint, name, self._make_watched(original))

    def _make_watched(self, original: Callable[..., object]) -> Callable[..., object]:
        def restore(checkpoint: object, *args: object, **kwargs: object) -> object:
            # None where there is no checkpoint yet: the training begins.
            if args[:1] != (None,) and kwargs.get("save_path", "") is not None:
                self.lost |= _list_alive() - _list_held(checkpoint)
            return original(checkpoint, *args, **kwargs)

        return restore


def find_kind(value: object) -> Optional[str]:
    """Return the kind of an object that has a state beside weights; None for any other."""
    # A class that defines `__module__` as a descriptor has no text there.
    names = {
        each.__name__
        for each in type(value).__mro__
        if str(each.__module__).partition(".")[0] in PACKAGES
    }
    for kind, classes in KINDS.items():
        if names.intersection(classes):
            return kind
    return None


def _list_alive() -> Set[str]:
    found = set()
    for value in gc.get_objects():
        kind = find_kind(value)
        if kind is not None:
            found.add(kind)
    return found


def _list_held(checkpoint: object) -> Set[str]:
    """Return the kinds that a checkpoint holds, by itself or as a model's optimizer."""
    found = set()
    for value in list(vars(checkpoint).values()):
        for each in (value, getattr(value, "optimizer", None)):
            kind = find_kind(each)
            if kind is not None:
                found.add(kind)
    return found


class _AfterTensorFlow(importlib.abc.MetaPathFinder):
    """Lets an action follow the import of TensorFlow."""

    def __init__(self, action: Callable[[ModuleType], None]) -> None:
        self._action: Optional[Callable[[ModuleType], None]] = action

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        """Return TensorFlow's own spec, with the action after its execution."""
        action = self._action
        if name != "tensorflow" or action is None:
            return None
        self._action = None
        return seed_setting.make_spec(name, action)
