"""What makes a TensorFlow deterministic, looked up by build and version. Pure: rows in, rows out."""

from __future__ import annotations

from envlock.data.containers import Recipe, RecipeTable
from envlock.runtime.rules import release


def recipe(table: RecipeTable, *, tensorflow: str | None, ngc: str | None) -> Recipe | None:
    """Return the row of a TensorFlow version, or of a release of NVIDIA's images; None where neither is known."""
    build, version = ("stock", tensorflow) if ngc is None else ("ngc", ngc)
    found = release(version)
    if found is None:
        return None
    rows = (row for row in table.recipe if row.build == build)
    return next(row for row in rows if _reached(found, row.since) and not (row.below and _reached(found, row.below)))


def program(table: RecipeTable, row: Recipe, tensorflow: str | None) -> list[str]:
    """Return the lines that the program itself must hold."""
    found = release(tensorflow)
    if row.code or found is None or not _reached(found, table.program.since):
        return list(row.code)
    return list(table.program.code)


def _reached(version: tuple[int, ...], since: str | None) -> bool:
    wanted = release(since)
    return wanted is None or version + (0,) * (len(wanted) - len(version)) >= wanted
