"""What an upgrade of TensorFlow changes in determinism switches and seeds, by the tables. Pure."""

from __future__ import annotations

from envlock.data.determinism import Recipe, load_recipe_table, load_source_table
from envlock.data.runtime_tables import load_variables
from envlock.data.specifiers import matches_version


def list_switch_changes(before: str, after: str) -> tuple[str, ...]:
    """Return what differs between two versions of TensorFlow, a sentence each without a full stop."""
    found = []
    old, new = _find_recipe(before), _find_recipe(after)
    if old is not None and new is not None:
        for what, sides in (
            ("variables of the recipe", (_show(old.set), _show(new.set))),
            ("variables that defeat it", (" ".join(old.unset), " ".join(new.unset))),
            ("calls that seed", (" ".join(old.seeds), " ".join(new.seeds))),
            ("calls that switch determinism on", (" ".join(old.calls), " ".join(new.calls))),
        ):
            if sides[0] != sides[1]:
                found.append(f"{what}: {sides[0] or 'none'} -> {sides[1] or 'none'}")
    for row in load_variables():
        is_old, is_new = (matches_version(row.tensorflow, each) for each in (before, after))
        if is_old != is_new:
            who = after if is_new else before
            found.append(f"{row.name} is read by TensorFlow {who} only: {row.why}".rstrip("."))
    for source in load_source_table().source:
        if source.is_active(before) != source.is_active(after):
            word = "begins" if source.is_active(after) else "ends"
            found.append(f"noise {word}: {source.component}: {source.why}".rstrip("."))
    return tuple(found)


def _find_recipe(version: str) -> Recipe | None:
    """Return the recipe of a version; None for one that no table knows."""
    for recipe in load_recipe_table().recipe:
        if matches_version(list(recipe.tensorflow), version):
            return recipe
    return None


def _show(settings: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())
