"""What a typed table is made of: each row is validated when its table is read, and names its source."""

from __future__ import annotations

import sys
from importlib.resources import files
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from envlock.runtime.release import describe_beyond

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Sentence = Annotated[str, Field(pattern=r"^\S.*[.]$", max_length=320)]
Text = Annotated[str, Field(min_length=1)]
VariableName = Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")]
Version = Annotated[str, Field(pattern=r"^\d+(\.\d+)*$")]
Minor = Annotated[str, Field(pattern=r"^\d+\.\d+$")]
Table: TypeAlias = "dict[str, object]"
"""A table of a TOML file."""


class Row(BaseModel):
    """A row of a table: unknown keys are errors."""

    # A validator costs a millisecond to build, and most commands read few tables.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Horizon(Row):
    """How far a table was checked against its sources.

    Attributes:
        day: when.
        of, through: whose newest version was in them, and which.
    """

    day: Annotated[str, Field(pattern=r"^20\d\d-\d\d-\d\d$")]
    of: Text
    through: Annotated[str, Field(pattern=r"^\d+(\.\d+)*(rc\d+)?$")]

    def describe_beyond(self, version: str | None) -> str | None:
        """Return the sentence on a version that is newer than the table; None if it is not."""
        return describe_beyond(self.of, version, self.through)


def read(name: str) -> dict[str, Any]:
    """Return a table exactly as in its TOML file."""
    file = files("envlock").joinpath("data", f"{name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
