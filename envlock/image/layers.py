"""Divide wheels into layers: large ones that seldom change come first. Pure.

A layer is pushed and pulled as a whole when anything in it changes. CUDA's libraries are kept over
several versions of TensorFlow, TensorFlow over several versions of small packages, and these over
changes in the project's own code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS

BINDING = "nvidia-ml-py"
"""NVIDIA's binding to NVML, which queries GPUs; it is not part of CUDA."""

LARGE, MIDDLE = 50_000_000, 3_000_000
"""Sizes in bytes: wheels above one are not pushed again because of smaller ones. The values are a
choice.
"""

NAMES = ("nvidia", "tensorflow", "libraries", "packages", "own")
"""The names of layers of wheels, in their order in an image."""

OWN = ("editable", "vcs", "url", "local")
"""Origins of wheels that were built for one project."""


@dataclass(frozen=True)
class Wheel:
    """A wheel to install: the name of its package in the lockfile, and the proven file; its size in
    bytes.

    `overwritten` has the files that another package has replaced by its own, each with the name of
    that package.
    """

    name: str
    version: str
    file: str
    sha256: str
    size: int = 0
    is_own: bool = False
    overwritten: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Layer:
    """Wheels that are installed, pushed and pulled together."""

    name: str
    wheels: tuple[Wheel, ...]


def cut(wheels: Iterable[Wheel]) -> tuple[Layer, ...]:
    """Return the layers of wheels, in the order of `NAMES`, without empty ones."""
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
