"""The tables of the canary as typed rows: its operations, and the causes of other bits."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field, model_validator

from envlock.data import Row, Sentence, Text, read

Precision = Literal["float32", "float64", "bfloat16"]
EPSILON: dict[Precision, float] = {"float32": 2.0**-23, "float64": 2.0**-52, "bfloat16": 2.0**-7}

Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(_[a-z0-9]+)*$")]
Sign = Annotated[
    str, Field(pattern=r"^([a-z0-9]+(_[a-z0-9]+)*|(ended|version|coarse):[a-z0-9-]+)$")
]


class OperationRow(Row):
    """An operation of the battery (canary.toml explains the columns)."""

    name: Name
    what: Text
    precision: Precision = "float32"
    since: Annotated[int, Field(ge=1)] = 1


class Cause(Row):
    """A reason why a machine computes different bits, and its signs (canary.toml explains the
    columns).
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    title: Text
    always: list[Sign]
    often: list[Sign] = Field(default=[])
    why: Sentence
    fix: Sentence
    sources: Annotated[list[Text], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_signs(self) -> Cause:
        signs = self.always + self.often
        if len(set(signs)) != len(signs) or not signs:
            raise ValueError(f"{self.id}: it needs signs, and each of them once")
        return self


class CanaryTable(Row):
    """canary.toml."""

    evidence: dict[str, Text]
    operation: list[OperationRow]
    cause: list[Cause]


@cache
def load_canary_table() -> CanaryTable:
    """Return the operations of the battery and the causes of different bits."""
    return CanaryTable.model_validate(read("canary"))
