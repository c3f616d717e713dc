"""What a resumed run went on without; TensorFlow is a stand-in, `tests/real/test_resume.py` has the real one."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from envlock.guest.training.resumption import Resumption, find_kind


def make(name: str) -> Any:
    """Return an object of a class of TensorFlow's."""
    return type(name, (), {"__module__": "tensorflow.python.some"})()


@pytest.fixture
def checkpoint(monkeypatch: pytest.MonkeyPatch) -> type:
    class Checkpoint:
        def __init__(self, **held: Any) -> None:
            vars(self).update(held)

        def restore(self, save_path: str | None = None) -> str | None:
            return save_path

    tensorflow = ModuleType("tensorflow")
    vars(tensorflow)["train"] = type("train", (), {"Checkpoint": Checkpoint})
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    return Checkpoint


def test_what_is_alive_and_not_in_the_checkpoint_is_lost(checkpoint: Any) -> None:
    seen = Resumption()
    seen.watch()
    optimizer, generator = make("Optimizer"), make("Generator")
    assert (find_kind(optimizer), find_kind(generator), find_kind(1)) == ("optimizer", "generator", None)
    assert checkpoint(optimizer=optimizer).restore("a") == "a"
    assert seen.take() == ["generator"]
    assert seen.take() == []
    model = type("Model", (), {"optimizer": optimizer})()
    checkpoint(model=model, rng=generator).restore(save_path="a")
    assert seen.take() == []
    checkpoint().restore(None)
    checkpoint().restore(save_path=None)
    assert seen.take() == []
