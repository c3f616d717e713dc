"""What makes a TensorFlow deterministic, as an image can and cannot do it. Pure: rows in, rows out."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from envlock.data.determinism import Recipe, recipe_for, recipe_table, switch_of_nvidias
from envlock.runtime.rules import release

SEED = 42


def recipe(tensorflow: str | None) -> Recipe | None:
    """Return the recipe of a TensorFlow version; None where it is not known."""
    numbers = _numbers(tensorflow)
    return None if numbers is None else recipe_for(numbers)


def variables(tensorflow: str | None, ngc: str | None) -> Mapping[str, str]:
    """Return the variables for an image of a TensorFlow version, or of a release of NVIDIA's images."""
    if ngc is not None:
        numbers = _numbers(ngc)
        return {} if numbers is None else switch_of_nvidias(numbers)
    found = recipe(tensorflow)
    return found.from_outside if found else {}


def _numbers(version: str | None) -> str | None:
    """Return the numbers that a version begins with: a lock, or a tag, may hold what is none."""
    found = release(version)
    return None if found is None else ".".join(map(str, found[1:]))


def missing_patch(tensorflow: str | None, ngc: str | None, packages: Collection[str]) -> str | None:
    """Return the package that this TensorFlow needs and the image has not; None where nothing is missing."""
    found = recipe(tensorflow)
    patches = [patch.package for patch in recipe_table().patch]
    if found is None or ngc is not None or not found.patched or set(patches) & set(packages):
        return None
    return patches[0]


def program(tensorflow: str | None, ngc: str | None, packages: Collection[str]) -> list[str]:
    """Return the lines that the program itself must hold."""
    found = recipe(tensorflow)
    if found is None:
        return []
    patches = recipe_table().patch if found.patched and ngc is None else []
    calls = [patch.call for patch in patches if patch.package in packages] or [patch.call for patch in patches]
    return [*calls[:1], *found.program(SEED)]
