"""The tables on determinism as typed rows: sources of noise, variables, recipes, operations.

A row's `affected`, `tensorflow` or `keras` are PEP 440 specifiers, which `matches_version`
evaluates.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

from pydantic import Field, model_validator

from envlock.data import Horizon, Row, Sentence, Text, Version, read
from envlock.data.runtime_tables import load_variables
from envlock.data.specifiers import Specifiers, matches_version

Name = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
Values = dict[Name, str]
Settings = dict[Name, Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]]
"""Values that need no quoting in a shell, in a Dockerfile, or in the list in ENVLOCK_ADDED."""

Call = Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)+\((\{seed\})?\)$")]
Range = Annotated[str, Field(pattern=r"^(>=\d+\.\d+)?,?(<\d+\.\d+)?$")]
Sources = Annotated[list[Text], Field(min_length=1)]
Severity = Literal["error", "warning", "info"]
Circumstance = Literal["gpu", "several-gpus", "nvlink-sharp", "horovod"]


class Solution(Row):
    """A remedy for some TensorFlow versions."""

    tensorflow: Text
    kind: Literal["env", "api", "patch", "workaround", "raises", "none", "default", "lock"]
    ngc: Annotated[str, Field(pattern=r"^\d\d\.\d\d$")] | None = None
    set: Values = Field(default={})
    unset: tuple[Name, ...] = ()
    api: Text | None = None
    package: Text | None = None
    note: Text | None = None


class Raises(Row):
    """The error that op determinism raises instead of computing with noise."""

    tensorflow: Text
    error: Text
    text: Text


class Measured(Row):
    """What `make testgpu` measured for a source; tools/gpu_rows.py writes it.

    Attributes:
        on: the GPUs with their driver and cuDNN.
        off, deterministic: the number of calls and different results, or the error, without op
            determinism and with it.
    """

    on: Text
    tensorflow: Version
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    off: Text
    deterministic: Text


class Source(Row):
    """A source of non-determinism (determinism_sources.toml explains the columns)."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    component: Text
    calls: list[Annotated[str, Field(pattern=r"^(tf|keras|numpy|horovod)(\.\w+)+$")]]
    platform: Literal["gpu", "cpu", "any"]
    path: Text
    why: Annotated[str, Field(pattern=r"^\S.*[.]$")]
    affected: Specifiers
    latest: Literal["fixed", "raises", "silent", "outside", "n/a"]
    solutions: list[Solution]
    raises: tuple[Raises, ...] = ()
    confidence: Literal["high", "medium", "low"]
    sources: Sources
    measured: tuple[Measured, ...] = ()

    def is_active(self, tensorflow: str) -> bool:
        """Return whether a TensorFlow version has this source of noise by default."""
        return matches_version(self.affected, tensorflow)

    def find_solutions(self, tensorflow: str) -> list[Solution]:
        """Return the remedies for a TensorFlow version, without those of NVIDIA's builds alone."""
        return [
            row
            for row in self.solutions
            if row.ngc is None and matches_version([row.tensorflow], tensorflow)
        ]


class Code(Row):
    """A code in NVIDIA's own table, expressed as solutions."""

    kind: Literal["env", "patch", "none"]
    set: Values = Field(default={})
    meaning: Sentence


class SourceTable(Row):
    """determinism_sources.toml."""

    horizon: Horizon
    codes: dict[Annotated[str, Field(pattern=r"^[A-Z]{2}[A-Z0-9]$")], Code]
    evidence: dict[str, Text]
    source: list[Source]


class Dangerous(Row):
    """Values of a variable that are wrong if determinism is wanted."""

    values: tuple[str, ...] = ()
    set: bool = False
    tensorflow: Specifiers = Field(default=["*"])
    keras: Text | None = None
    when: Circumstance | None = None
    severity: Severity
    why: Sentence

    @model_validator(mode="after")
    def _check_values(self) -> Dangerous:
        if bool(self.values) == self.set:
            raise ValueError("either `values` or `set`")
        return self


class Needed(Row):
    """A value that a TensorFlow version needs."""

    value: Text
    accepts: tuple[str, ...] = ()
    tensorflow: Specifiers = Field(default=["*"])
    build: Literal["stock", "nvidia"] | None = None
    when: Circumstance | None = None
    severity: Severity
    why: Sentence


class Requires(Row):
    """A package without which what reads a variable fails with some of its values."""

    values: tuple[str, ...]
    package: Text
    tensorflow: Specifiers = Field(default=["*"])
    keras: Text | None = None
    why: Sentence


class VariableRules(Row):
    """The wrong values of a variable (determinism_variables.toml explains the columns)."""

    name: Name
    read_by: Text
    tensorflow: Specifiers
    meant: str | None = None
    syntax: Literal["bool", "integer", "word", "any"] = "any"
    accepts: tuple[Text, ...] = ()
    otherwise: Literal["abort", "raise", "ignored", "off", "unknown"] | None = None
    read: Literal["process-start", "import", "first-use", "each-use"] = "first-use"
    dangerous: tuple[Dangerous, ...] = ()
    needed: tuple[Needed, ...] = ()
    requires: tuple[Requires, ...] = ()
    sources: Sources

    @model_validator(mode="after")
    def _check_columns(self) -> VariableRules:
        if (self.syntax == "any") != (self.otherwise is None):
            raise ValueError(f"{self.name}: `otherwise` tells what a value outside the syntax does")
        if (self.syntax == "word") != bool(self.accepts):
            raise ValueError(f"{self.name}: `accepts` belongs to the syntax word")
        if (self.read_by == "nobody") != (self.meant is not None):
            raise ValueError(f"{self.name}: `meant` belongs to names that nothing reads")
        return self


class Combination(Row):
    """Variables whose values are wrong in combination.

    A value may be `<unset>`, `<set>`, or `<differs>` from the others.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    tensorflow: Specifiers
    values: dict[Name, list[str]]
    severity: Severity
    set: Values
    unset: list[Name]
    why: Sentence
    sources: Sources


class Flag(Row):
    """A flag in XLA_FLAGS or TF_XLA_FLAGS.

    A TensorFlow outside `tensorflow` aborts when it reads the flag.
    """

    variable: Literal["XLA_FLAGS", "TF_XLA_FLAGS"]
    name: Annotated[str, Field(pattern=r"^--[a-z0-9_]+$")]
    tensorflow: Specifiers
    instead: Text | None = None
    dangerous: list[str]
    severity: Severity
    why: Sentence
    sources: Sources


class VariableTable(Row):
    """determinism_variables.toml, its rows completed from environ.toml."""

    horizon: Horizon
    real: list[Name]
    evidence: dict[str, Text]
    variable: list[VariableRules]
    combination: list[Combination]
    flag: list[Flag]


class Always(Row):
    """The variables that every version needs."""

    set: Settings
    pinned: list[Name]
    source: Text


class Recipe(Row):
    """A recipe that makes a run repeatable (determinism_recipes.toml explains the columns)."""

    tensorflow: list[Range]
    set: Settings
    by_variable: Settings = Field(default={})
    unset: list[Name]
    seeds: list[Call]
    calls: list[Call]
    patched: bool = False
    remarks: list[Sentence]
    sources: Sources


class Patch(Row):
    """A package that replaces operations."""

    package: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    call: Call
    source: Text


class NvidiaBuilds(Row):
    """The variables that switch determinism on in NVIDIA's own builds, from a release of its images
    on.
    """

    since: Version
    set: Settings
    why: Sentence
    source: Text


class RecipeTable(Row):
    """determinism_recipes.toml."""

    horizon: Horizon
    always: Always
    evidence: dict[str, Text]
    patch: list[Patch]
    nvidia: list[NvidiaBuilds]
    recipe: list[Recipe]


@cache
def load_source_table() -> SourceTable:
    """Return the sources of non-determinism."""
    return SourceTable.model_validate(read("determinism_sources"))


@cache
def load_variable_table() -> VariableTable:
    """Return the wrong values of variables.

    Raises:
        ValueError: a row has a column that environ.toml has for the same variable.
    """
    table = read("determinism_variables")
    known = {variable.name: variable for variable in load_variables()}
    for row in table["variable"]:
        variable = known.get(row["name"])
        if variable is None:
            continue
        columns = {"read_by": variable.read_by, "tensorflow": variable.tensorflow}
        repeated = sorted(columns.keys() & row.keys())
        if repeated:
            raise ValueError(f"{row['name']}: {', '.join(repeated)} stands in environ.toml")
        row.update(columns)
    return VariableTable.model_validate(table)


@cache
def load_recipe_table() -> RecipeTable:
    """Return the recipes."""
    return RecipeTable.model_validate(read("determinism_recipes"))


def resolve_citation(source: str, evidence: Mapping[str, str]) -> str:
    """Return a source with the key of [evidence] at its beginning replaced by the meaning of that
    key.
    """
    for key, meaning in evidence.items():
        if source == key:
            return meaning
        if source.startswith((f"{key} ", f"{key}:")):
            details = source.removeprefix(key).lstrip(": ").strip("()")
            if not details:
                return meaning
            return f"{meaning} ({details})"
    return source


When = Literal["any", "unseeded", "loop", "xla"]


class Operations(Row):
    """Operations that one row of the determinism table explains (divergence.toml explains the columns)."""

    types: Annotated[list[Annotated[str, Field(pattern=r"^_?[A-Z]\w*$")]], Field(min_length=1)]
    source: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    when: When


@cache
def load_operations() -> tuple[Operations, ...]:
    """Return the rows: the first one that matches an operation explains it."""
    return tuple(Operations.model_validate(row) for row in read("divergence")["operation"])


def get_source(name: str) -> Source:
    """Return the row of determinism_sources.toml with this id."""
    return next(row for row in load_source_table().source if row.id == name)


def explain_operation(kind: str, conditions: frozenset[str]) -> Source | None:
    """Return the source of noise that explains an operation; None if no source does.

    Args:
        kind: the type of the operation.
        conditions: those that hold for it, in the words of the column `when`.
    """
    for row in load_operations():
        if kind in row.types and (row.when == "any" or row.when in conditions):
            return get_source(row.source)
    return None


class MakerRow(Row):
    """Functions that can return a different value in each run (makers.toml explains the columns)."""

    functions: Annotated[
        list[Annotated[str, Field(pattern=r"^[a-z]+(\.\w+)+$")]], Field(min_length=1)
    ]
    name: Text | None = None
    hold: Literal[
        "random",
        "numpy",
        "clock",
        "bytes",
        "seed",
        "given",
        "constant",
        "submitted",
        "left",
        "nothing",
    ]
    row: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")] | None = None
    fix: Sentence | None = None
    source: Text

    @model_validator(mode="after")
    def _check_remedy(self) -> MakerRow:
        if (self.row is None) == (self.fix is None):
            raise ValueError(f"{self.functions[0]}: either a row or a fix")
        return self


@cache
def load_makers() -> tuple[MakerRow, ...]:
    """Return the functions of Python and NumPy that `envlock diverge` watches."""
    return tuple(MakerRow.model_validate(row) for row in read("makers")["maker"])


class OriginRow(Row):
    """Calls whose result can differ from run to run, and what helps (makers.toml explains the columns)."""

    calls: Annotated[list[Annotated[str, Field(pattern=r"^\w+$")]], Field(min_length=1)]
    fix: Sentence
    source: Text


@cache
def load_origins() -> tuple[OriginRow, ...]:
    """Return what helps against calls that cannot be watched, only seen by what they give."""
    return tuple(OriginRow.model_validate(row) for row in read("makers")["origin"])


class Group(Row):
    """Operations that have something in common (operations.toml explains the columns)."""

    name: Annotated[str, Field(pattern=r"^[a-z_]+$")]
    what: Sentence
    source: Text
    operations: Annotated[list[Text], Field(min_length=1)]


@cache
def load_operation_groups() -> dict[str, frozenset[str]]:
    """Return the names of operations by that of their group."""
    groups = map(Group.model_validate, read("operations")["group"])
    return {group.name: frozenset(group.operations) for group in groups}
