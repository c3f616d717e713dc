"""What the determinism tables know of an operation: the row, why it differs, and what helps in a TensorFlow version."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from envlock.data.determinism import Solution, Source, cited, source, source_of, sources_table

HELPS = ("api", "env", "workaround", "patch", "lock", "default", "raises")
"""Kinds of solutions, the best one first; `none` is no help."""


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


def about(
    kind: str, holds: frozenset[str], tensorflow: str, *, determinism: bool | None = None
) -> Known | None:
    """Return what is known of an operation of type `kind`; None where the tables have nothing."""
    source = source_of(kind, holds)
    return None if source is None else _known(source, tensorflow, determinism=determinism)


def known_row(name: str, tensorflow: str) -> Known:
    """Return a row of the table by its id."""
    return _known(source(name), tensorflow)


def _known(source: Source, tensorflow: str, *, determinism: bool | None = None) -> Known:
    solutions = sorted(
        (each for each in source.solutions_for(tensorflow) if each.kind in HELPS),
        key=lambda each: HELPS.index(each.kind),
    )
    if determinism:  # it is on, and did not help
        solutions = [each for each in solutions if "enable_op_determinism" not in (each.api or "")]
    evidence = sources_table().evidence
    fixes = tuple(dict.fromkeys(text for each in solutions if (text := _sentence(each))))
    return Known(
        source.id,
        source.component,
        source.why,
        source.platform,
        fixes,
        cited(source.sources[0], evidence),
    )


def _sentence(solution: Solution) -> str:
    parts = []
    if solution.api:
        parts.append(f"call {solution.api} at the start")
    if solution.set:
        parts.append("set " + " ".join(f"{name}={value}" for name, value in solution.set.items()))
    if solution.unset:
        parts.append("unset " + " ".join(solution.unset))
    if solution.package:
        parts.append(f"use {solution.package}")
    text = ", ".join(parts)
    if solution.note:
        return f"{text} ({solution.note.rstrip('.')})" if text else solution.note
    return text
