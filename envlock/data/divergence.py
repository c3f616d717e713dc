"""What is known about operations that give another result from equal inputs, as typed rows."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from envlock.data import Row, Sentence, Text, read
from envlock.data.determinism import Source, sources_table

When = Literal["any", "unseeded", "loop", "xla"]


class Operations(Row):
    """Operations that one row of the determinism table explains (divergence.toml explains the columns)."""

    types: Annotated[list[Annotated[str, Field(pattern=r"^_?[A-Z]\w*$")]], Field(min_length=1)]
    source: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    when: When


@cache
def operations() -> tuple[Operations, ...]:
    """Return the rows, in the order in which they are asked."""
    return tuple(Operations.model_validate(row) for row in read("divergence")["operation"])


def source(name: str) -> Source:
    """Return the row of determinism_sources.toml with an id."""
    return next(each for each in sources_table().source if each.id == name)


def source_of(kind: str, holds: frozenset[str]) -> Source | None:
    """Return what explains an operation of type `kind`, of which the conditions in `holds` are known; None: nothing."""
    fitting = (each for each in operations() if kind in each.types and (each.when == "any" or each.when in holds))
    row = next(fitting, None)
    return None if row is None else source(row.source)


class Group(Row):
    """Operations that have something in common (operations.toml explains the columns)."""

    name: Annotated[str, Field(pattern=r"^[a-z_]+$")]
    what: Sentence
    source: Text
    operations: Annotated[list[Text], Field(min_length=1)]


@cache
def operation_groups() -> dict[str, frozenset[str]]:
    """Return the names of operations by that of their group."""
    groups = [Group.model_validate(row) for row in read("operations")["group"]]
    return {group.name: frozenset(group.operations) for group in groups}
