"""Seeds are set in what is there, and in what a script imports later."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from envlock.guest.training.seed_setting import set_all_seeds

MODULE = "seen = []\nclass random:\n    set_seed = staticmethod(seen.append)\n"
KERAS = "seen = []\nclass utils:\n    set_random_seed = staticmethod(seen.append)\n"


NAMES = ("tensorflow", "keras", "tf_keras")


@pytest.fixture(autouse=True)
def _fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a TensorFlow and a Keras on the path that write down their seeds; nobody else sees them."""
    (tmp_path / "tensorflow.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "keras.py").write_text(KERAS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    kept = {name: sys.modules.pop(name) for name in NAMES if name in sys.modules}
    yield
    for name in NAMES:
        sys.modules.pop(name, None)
    sys.modules.update(kept)


def test_python_and_numpy() -> None:
    set_all_seeds(3)
    first = (random.random(), np.random.random())
    set_all_seeds(3)
    assert first == (random.random(), np.random.random())
    set_all_seeds(4)
    assert first != (random.random(), np.random.random())


def test_nothing_is_imported_for_it_and_what_comes_later_is_seeded_then() -> None:
    set_all_seeds(5)
    assert "tensorflow" not in sys.modules
    import tensorflow

    assert tensorflow.seen == [5]
    set_all_seeds(6)
    assert tensorflow.seen == [5, 6]
    import keras

    assert keras.seen == [6]
    set_all_seeds(7)
    assert (tensorflow.seen, keras.seen) == ([5, 6, 7], [6, 7])
    assert len([finder for finder in sys.meta_path if type(finder).__name__ == "_AfterImport"]) == 1


def test_a_module_that_is_not_there_stays_missing() -> None:
    set_all_seeds(5)
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'tf_keras'$"):
        import tf_keras  # noqa: F401
