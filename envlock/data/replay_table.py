"""The operations of programs that are computed again from a lockfile, as typed rows."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field, model_validator

from envlock.data import Row, Sentence, Text, read

Type = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]{1,63}$")]
InputName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class Index(Row):
    """An integer input with a limit (replay.toml explains the columns)."""

    operations: Annotated[list[Type], Field(min_length=1)]
    input: InputName
    of: InputName
    below: Literal["value", "axis", "least"] | Annotated[int, Field(ge=0, le=7)]
    sorted: bool = False


class Undefined(Row):
    """Results that have no meaning (replay.toml explains the columns)."""

    operation: Type
    outputs: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    where: InputName | None = None
    source: Text


class ReplayTable(Row):
    """replay.toml."""

    source: Sentence | Text
    operations: Annotated[list[Type], Field(min_length=1)]
    parameters: list[InputName]
    positive: list[Type | InputName]
    index: list[Index]
    undefined: list[Undefined]

    @model_validator(mode="after")
    def _check_operations(self) -> ReplayTable:
        # `positive` has operations and names of inputs; only operations begin with a capital.
        named = {name for name in self.positive if name[0].isupper()}
        for row in self.index:
            named.update(row.operations)
        known = set(self.operations)
        unknown = sorted(named - known)
        if unknown or len(known) != len(self.operations):
            raise ValueError(f"operations that are not in the list, or twice: {unknown}")
        return self


@cache
def load_replay_table() -> ReplayTable:
    """Return the operations of programs that are computed again, and the limits of their inputs."""
    return ReplayTable.model_validate(read("replay"))
