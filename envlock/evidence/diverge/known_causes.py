"""What the tables know of an operation: why it differs, and what helps in a TensorFlow version."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from envlock.data.determinism import (
    Solution,
    Source,
    explain_operation,
    get_source,
    load_source_table,
    resolve_citation,
)

HELPS = ("api", "env", "workaround", "patch", "lock", "default", "raises")
"""Kinds of solutions, the best one first; `none` does not help."""


@dataclass(frozen=True)
class Known:
    """A row of the table.

    Attributes:
        row: its id.
        what, why: which operation, and what happens.
        platform: where it was seen: gpu, cpu or any.
        fixes: what helps in the installed version, a sentence each, the best first.
        source: where it is known from.
    """

    row: str
    what: str
    why: str
    platform: str
    fixes: tuple[str, ...]
    source: str

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {**asdict(self), "fixes": list(self.fixes)}


def look_up(
    kind: str, holds: frozenset[str], tensorflow: str, *, determinism: bool | None = None
) -> Known | None:
    """Return what is known of an operation of type `kind`; None where the tables have nothing.

    Args:
        kind: the type, such as `ResourceScatterAdd`.
        holds: the circumstances, such as `xla`, `loop` or `unseeded`.
        tensorflow: the installed version.
        determinism: whether op determinism is on; None where that is unknown.
    """
    row = explain_operation(kind, holds)
    if row is None:
        return None
    return _describe_row(row, tensorflow, is_switched_on=bool(determinism))


def read_row(name: str, tensorflow: str) -> Known:
    """Return a row of the table by its id."""
    return _describe_row(get_source(name), tensorflow, is_switched_on=False)


def _describe_row(row: Source, tensorflow: str, *, is_switched_on: bool) -> Known:
    solutions = [each for each in row.find_solutions(tensorflow) if each.kind in HELPS]
    # A dictionary for a set: two solutions can be one sentence.
    fixes: dict[str, None] = {}
    for solution in sorted(solutions, key=lambda each: HELPS.index(each.kind)):
        # It is on, and did not help.
        if is_switched_on and "enable_op_determinism" in (solution.api or ""):
            continue
        text = _describe_solution(solution)
        if text:
            fixes[text] = None
    origin = resolve_citation(row.sources[0], load_source_table().evidence)
    return Known(row.id, row.component, row.why, row.platform, tuple(fixes), origin)


def _describe_solution(solution: Solution) -> str:
    parts = []
    if solution.api:
        parts.append(f"call {solution.api} at the start")
    if solution.set:
        values = " ".join(map("=".join, solution.set.items()))
        parts.append(f"set {values}")
    if solution.unset:
        parts.append(f"unset {' '.join(solution.unset)}")
    if solution.package:
        parts.append(f"use {solution.package}")
    text = ", ".join(parts)
    if not solution.note:
        return text
    if not text:
        return solution.note
    return f"{text} ({solution.note.rstrip('.')})"
