"""The rules of `envlock lint`, as typed rows."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from envlock.data import Row, Sentence, Text, read
from envlock.data.determinism import Specifiers


class LintRule(Row):
    """A rule (lint.toml explains the columns)."""

    id: Annotated[str, Field(pattern=r"^ENV\d{3}$")]
    name: Annotated[str, Field(pattern=r"^[a-z-]+$")]
    severity: Literal["error", "warning", "info"]
    title: Annotated[str, Field(pattern=r"^[^A-Z].*[^.]$|^(Python|NumPy|PYTHON).*[^.]$", max_length=90)]
    why: Sentence
    fix: Sentence
    tensorflow: Specifiers = Field(default=["*"])
    source: Text


@cache
def lint_rules() -> dict[str, LintRule]:
    """Return the rules by their id, in order."""
    rows = [LintRule.model_validate(row) for row in read("lint")["rule"]]
    return {row.id: row for row in sorted(rows, key=lambda row: row.id)}
