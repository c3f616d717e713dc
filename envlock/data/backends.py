"""The settings that JAX and PyTorch take from their environment, as typed rows."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from envlock.data import Row, Sentence, Text, read
from envlock.data.runtime_tables import ABOUT_BITS


class Setting(Row):
    """A variable or a setting of a library (backends.toml explains the columns)."""

    backend: Literal["jax", "torch"]
    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    records: Literal["bool", "integer", "word"]
    words: list[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]] = Field(default=[])
    config: Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)*$")] | None = None
    default: Text | None = None
    bits: Literal["yes", "conditional", "hardware", "memory", "unknown"]
    why: Sentence
    source: Text
    measured: Literal["changed", "unchanged", "ended"] | None = None
    by: Text | None = None

    @property
    def path(self) -> str:
        """The path of its fact."""
        return f"{self.backend}.settings.{self.name}"

    @property
    def weight(self) -> int:
        """How likely a different value of this setting explains different bits (0 to 100)."""
        return ABOUT_BITS[self.bits]

    @property
    def fix(self) -> str:
        """A remedy for a difference, as a sentence."""
        if self.name.isupper():
            return (
                f"Set or unset {self.name} as locked, before the process starts; "
                "the program must not set it otherwise."
            )
        return f"Let the program set {self.name} as locked, or call envlock before it does."


class OtherVariables(Row):
    """How the names of a library's variables begin, and which of them change no bits."""

    backend: Literal["jax", "torch"]
    begins: list[Text]
    harmless_begins: list[Text]
    harmless: list[Text]


class BackendTable(Row):
    """backends.toml."""

    evidence: dict[str, Text]
    setting: list[Setting]
    others: list[OtherVariables]


@cache
def load_backend_table() -> BackendTable:
    """Return the settings that JAX and PyTorch take from their environment."""
    return BackendTable.model_validate(read("backends"))
