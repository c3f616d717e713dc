"""The rules of `envlock lint`, as typed rows."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from envlock.data import Row, Sentence, Text, read
from envlock.data.determinism import load_source_table
from envlock.data.specifiers import Specifiers


class LintRule(Row):
    """A rule (lint.toml explains the columns)."""

    id: Annotated[str, Field(pattern=r"^ENV\d{3}$")]
    name: Annotated[str, Field(pattern=r"^[a-z-]+$")]
    severity: Literal["error", "warning", "info"]
    title: Annotated[
        str, Field(pattern=r"^[^A-Z].*[^.]$|^(Python|NumPy|PYTHON).*[^.]$", max_length=90)
    ]
    why: Sentence
    fix: Sentence
    before: str = ""
    after: str = ""
    tensorflow: Specifiers = Field(default=["*"])
    source: Text


@cache
def load_lint_rules() -> dict[str, LintRule]:
    """Return the rules by their id, in order."""
    return _load_rules("lint")


@cache
def load_dataset_rules() -> dict[str, LintRule]:
    """Return the rules for the graphs of datasets by their id, in order."""
    return _load_rules("dataset_rules")


class Names(Row):
    """Names that a rule searches for (lint_names.toml explains the columns)."""

    name: Annotated[str, Field(pattern=r"^[a-z_]+$")]
    what: Sentence
    source: Text
    names: list[Text] = Field(default=[])
    values: dict[Text, str | int | list[str]] = Field(default={})
    by_value: dict[Text, list[Text]] = Field(default={})

    def get_values(self) -> dict[str, str | int | list[str]]:
        """Return what must be known of each name, also of those that share it; a number is a place."""
        found = dict(self.values)
        for value, names in self.by_value.items():
            is_number = value.lstrip("-").isdigit()
            found.update(dict.fromkeys(names, int(value) if is_number else value))
        return found

    def list_names(self) -> list[str]:
        """Return the names, also of those that have values."""
        return [*self.names, *self.get_values()]


@cache
def load_lint_names() -> dict[str, Names]:
    """Return the groups of names, by the name of the group."""
    return {row.name: row for row in map(Names.model_validate, read("lint_names")["group"])}


def _load_rules(table: str) -> dict[str, LintRule]:
    rules = map(LintRule.model_validate, read(table)["rule"])
    return {rule.id: rule for rule in sorted(rules, key=lambda rule: rule.id)}


@cache
def find_reference(source: str) -> str:
    """Return a source that a reader can follow: for `source:ID`, the first URL of that row."""
    if not source.startswith("source:"):
        return source
    name = source.partition(":")[2]
    row = next(row for row in load_source_table().source if row.id == name)
    for citation in row.sources:
        if citation.startswith("https://"):
            return citation
    return f"determinism_sources.toml, {name}"
