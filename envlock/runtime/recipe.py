"""Which recipe makes a TensorFlow deterministic: that of its version, and of NVIDIA's build where it is one."""

from __future__ import annotations

from envlock.runtime.rules import release
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple


class Recipe:
    """What makes one TensorFlow deterministic.

    Attributes:
        set: variables that it needs before it is imported.
        by_variable: variables that do what `calls` do, for who starts a program and cannot call.
        unset: variables that defeat it.
        patches: packages that replace operations, with their calls: the first that is installed; none where not needed.
        calls: calls after its import.
        seeds: calls that seed what it draws from; `{seed}` stands for the number.
    """

    __slots__ = ("by_variable", "calls", "patches", "seeds", "set", "unset")

    def __init__(self, row: Dict[str, Any], patches: List[Dict[str, str]]) -> None:
        self.set: Dict[str, str] = row["set"]
        self.by_variable: Dict[str, str] = row["by_variable"]
        self.unset: List[str] = row["unset"]
        self.patches = patches if row["patched"] else []
        self.calls: List[str] = row["calls"]
        self.seeds: List[str] = row["seeds"]


def recipe_for(version: str) -> Optional[Recipe]:
    """Return the recipe of a version such as 2.21.0 or 2.17.0+nv25.2; None where it is no version."""
    numbers = release(version)
    if numbers is None:
        return None
    recipes = table("determinism_recipes")
    row = next(row for row in recipes["recipes"] if _holds(row, numbers[1:]))
    label = version.partition("+")[2]
    image = release(label[2:]) if label.startswith("nv") else None
    if image is not None:
        switch = next(each["set"] for each in recipes["nvidia"] if list(image[1:]) >= each["since"])
        called = {"by_variable": switch, "set": {}} if row["calls"] else {"by_variable": {}, "set": switch}
        row = {**row, **called, "patched": False}
    return Recipe(row, recipes["patches"])


def _holds(row: Dict[str, Any], version: Tuple[int, ...]) -> bool:
    padded = [*version, 0, 0]
    return (row["since"] is None or padded >= row["since"]) and (row["below"] is None or padded < row["below"])
