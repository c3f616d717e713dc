"""`envlock.record` and `@envlock.recorded`: nothing, unless somebody listens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import envlock
from envlock.runtime import recording


@pytest.fixture
def heard() -> Iterator[list[tuple[int | None, Any]]]:
    found: list[tuple[int | None, Any]] = []
    recording.listen(lambda step, values: found.append((step, values)))
    yield found
    recording.listen(None)


@envlock.recorded
def loss(x: float) -> float:
    """Return the square."""
    return x * x


@envlock.recorded
def step(x: float) -> dict[str, float]:
    return {"loss": x, "weights": 2 * x}


def test_outside_of_repeat_nothing_happens() -> None:
    envlock.record(loss=object())
    envlock.record(3, loss=object())
    assert (loss(3), step(1)) == (9, {"loss": 1, "weights": 2})


def test_what_is_recorded_is_handed_on(heard: list[Any]) -> None:
    envlock.record(loss=1.0, weights=[2.0])
    envlock.record(step=7, loss=3.0)
    assert heard == [(None, {"loss": 1.0, "weights": [2.0]}), (7, {"loss": 3.0})]


def test_the_result_of_a_recorded_function(heard: list[Any]) -> None:
    assert loss(3) == 9
    assert step(1) == {"loss": 1, "weights": 2}
    assert heard == [(None, {"loss": 9}), (None, {"loss": 1, "weights": 2})]
    assert (loss.__name__, loss.__doc__) == ("loss", "Return the square.")
