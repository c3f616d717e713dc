"""What an upgrade of TensorFlow changes in determinism switches and seeds, by the tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from envlock.data.determinism import load_source_table
from envlock.data.runtime_tables import load_variables
from envlock.data.specifiers import matches_version
from envlock.runtime.recipe import Recipe, find_recipe


def list_switch_changes(before: str, after: str) -> tuple[str, ...]:
    """Return what differs between two versions of TensorFlow, a sentence each without a full stop."""
    found = []
    old, new = find_recipe(before), find_recipe(after)
    if old is not None and new is not None:
        found += _compare_recipes(old, new)
    for row in load_variables():
        is_old, is_new = (matches_version(row.tensorflow, each) for each in (before, after))
        if is_old and not is_new:
            found.append(f"{row.name} is read by TensorFlow {before} only: {row.why}".rstrip("."))
        if is_new and not is_old:
            found.append(f"{row.name} is read by TensorFlow {after} only: {row.why}".rstrip("."))
    for source in load_source_table().source:
        is_old, is_new = source.is_active(before), source.is_active(after)
        if is_old and not is_new:
            found.append(f"noise ends: {source.component}: {source.why}".rstrip("."))
        if is_new and not is_old:
            found.append(f"noise begins: {source.component}: {source.why}".rstrip("."))
    return tuple(found)


def _compare_recipes(old: Recipe, new: Recipe) -> list[str]:
    found = []
    for what, left, right in (
        ("variables of the recipe", _show(old.set), _show(new.set)),
        ("variables that defeat it", _join(old.unset), _join(new.unset)),
        ("calls that seed", _join(old.seeds), _join(new.seeds)),
        ("calls that switch determinism on", _join(old.calls), _join(new.calls)),
    ):
        if left != right:
            found.append(f"{what}: {left} -> {right}")
    return found


def _show(settings: dict[str, str]) -> str:
    return _join(f"{name}={value}" for name, value in settings.items())


def _join(texts: Iterable[str]) -> str:
    return " ".join(texts) or "none"
