"""The recipe that makes a TensorFlow deterministic: that of its version, and of NVIDIA's build if
it is one.

This is the only reader of the recipes; activation, `envlock run`, the doctor, the linter and
containers use it. The table is envlock/data/determinism_recipes.toml, with a source in every row.
"""

from __future__ import annotations

from envlock.runtime.comparison_rules import parse_version
from envlock.runtime.release import describe_beyond
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple


class Recipe:
    """What makes one TensorFlow deterministic.

    Attributes:
        set: variables that it needs before it is imported.
        by_variable: variables with the effect of `calls`, for starting a program without changing
            its code.
        unset: variables that must not be set.
        patches: packages that replace operations, with their calls, of which the first installed
            one is used; empty if not needed.
        calls: calls to make after its import.
        seeds: calls that seed its random number generators; `{seed}` stands for the number.
        remarks: sentences on what the recipe does not make deterministic.
    """

    __slots__ = ("by_variable", "calls", "patches", "remarks", "seeds", "set", "unset")

    def __init__(self, row: Dict[str, Any], patches: List[Dict[str, str]]) -> None:
        self.set: Dict[str, str] = row["set"]
        self.by_variable: Dict[str, str] = row["by_variable"]
        self.unset: List[str] = row["unset"]
        self.patches: List[Dict[str, str]] = patches if row["patched"] else []
        self.calls: List[str] = row["calls"]
        self.seeds: List[str] = row["seeds"]
        self.remarks: List[str] = row["remarks"]

    @property
    def from_outside(self) -> Dict[str, str]:
        """The variables that make a program deterministic as far as possible without a change of
        its code.
        """
        return {**self.set, **self.by_variable}

    def format_program(self, seed: int) -> List[str]:
        """Return the lines that a program needs at its top; the call for its patch, if it needs
        one, goes before them.
        """
        return [call.replace("{seed}", str(seed)) for call in self.seeds + self.calls]


def find_recipe(version: str) -> Optional[Recipe]:
    """Return the recipe for a version such as 2.21.0 or 2.17.0+nv25.2; None if the text is not a
    version.
    """
    numbers = parse_version(version)
    if numbers is None:
        return None
    row = next(row for row in _recipes()["recipes"] if _covers(row, numbers[1:]))
    switch = find_nvidia_switch(version.partition("+nv")[2])
    # From the versions on that have calls for determinism, NVIDIA's builds are like all others.
    if switch is not None and not row["calls"]:
        row = {**row, "set": switch, "patched": False}
    return Recipe(row, _recipes()["patches"])


def warn_beyond_recipes(tensorflow: Optional[str]) -> List[str]:
    """Return the sentence on a TensorFlow that is newer than the recipes; empty if it is not."""
    sentence = describe_beyond("TensorFlow", tensorflow, _recipes()["through"])
    return [sentence] if sentence else []


def find_nvidia_switch(image: str) -> Optional[Dict[str, str]]:
    """Return the variables that switch determinism on in NVIDIA's images of a release, such as 25.02."""
    numbers = parse_version(image)
    if numbers is None:
        return None
    # The last row has no lower bound, so a row always matches.
    row = next(row for row in _recipes()["nvidia"] if list(numbers[1:]) >= row["since"])
    switch: Dict[str, str] = row["set"]
    return switch


def get_always_needed() -> Dict[str, str]:
    """Return the variables that every program needs, for any TensorFlow."""
    variables: Dict[str, str] = _recipes()["always"]
    return variables


def _recipes() -> Dict[str, Any]:
    recipes: Dict[str, Any] = table("determinism_recipes")
    return recipes


def _covers(row: Dict[str, Any], version: Tuple[int, ...]) -> bool:
    """Return whether a version is in the range of a row."""
    padded = [*version, 0]  # 2 is 2.0
    if row["since"] is not None and padded < row["since"]:
        return False
    return row["below"] is None or padded < row["below"]
