"""How wheels are cut into layers: those that are large and seldom change come first. Pure.

A layer is pushed and pulled whole when anything in it changes. CUDA's libraries outlive
TensorFlow's versions, TensorFlow those of small packages, and these the project's own code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS

BINDING = "nvidia-ml-py"
"""NVIDIA's binding to NVML, by which GPUs are asked; it is no part of CUDA."""

LARGE, MIDDLE = 50_000_000, 3_000_000
"""Sizes in bytes from which a wheel is not pushed again because of a smaller one: a choice."""

NAMES = ("nvidia", "tensorflow", "libraries", "packages", "own")
"""Of layers of wheels, in the order in which an image has them."""

OWN = ("editable", "vcs", "url", "local")
"""Origins of wheels that were built for one project."""


@dataclass(frozen=True)
class Wheel:
    """A wheel to install: its package's name in the lock, and the proven file; its size in bytes."""

    name: str
    version: str
    file: str
    sha256: str
    size: int = 0
    is_own: bool = False


@dataclass(frozen=True)
class Layer:
    """Wheels that are installed, pushed and pulled together."""

    name: str
    wheels: tuple[Wheel, ...]


def cut(wheels: Iterable[Wheel]) -> tuple[Layer, ...]:
    """Return the layers of wheels, in the order of `NAMES`; none is empty."""
    layers: dict[str, list[Wheel]] = {name: [] for name in NAMES}
    for wheel in wheels:
        layers[_choose_layer(wheel)].append(wheel)
    return tuple(Layer(name, tuple(group)) for name, group in layers.items() if group)


def _choose_layer(wheel: Wheel) -> str:
    if wheel.is_own:
        return "own"
    if wheel.name.startswith(("nvidia-", "tensorrt")) and wheel.name != BINDING:
        return "nvidia"
    if wheel.name in DISTRIBUTIONS or wheel.size >= LARGE:
        return "tensorflow"
    return "libraries" if wheel.size >= MIDDLE else "packages"
