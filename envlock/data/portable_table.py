"""The caps under which different processors choose the same kernels, as typed rows."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import Field

from envlock.data import Row, Sentence, Text, VariableName, read


class Cap(Row):
    """A cap of instruction sets (portable.toml explains the columns)."""

    name: Annotated[str, Field(pattern=r"^[A-Z0-9_]+$")]
    needs: Annotated[list[Text], Field(min_length=1)]
    why: Sentence
    sources: Annotated[list[Text], Field(min_length=1)]
    variables: dict[VariableName, Text]


class PortableTable(Row):
    """portable.toml."""

    cap: list[Cap]


@cache
def load_portable_table() -> PortableTable:
    """Return the caps, the widest first."""
    return PortableTable.model_validate(read("portable"))
