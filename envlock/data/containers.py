"""The tables about containers, as typed rows; read when first asked for, since only `build` needs them."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from envlock.data import Row, Sentence, Text, Version, read

VariableName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
Value = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]
Code = Annotated[str, Field(pattern=r"^[A-Za-z0-9_ .()]+$")]


class Recipe(Row):
    """What makes a TensorFlow deterministic (recipes.toml explains the columns)."""

    build: Literal["stock", "ngc"]
    since: Version | None = None
    below: Version | None = None
    environ: dict[VariableName, Value]
    patch: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")] | None = None
    code: tuple[Code, ...] = ()
    why: Sentence
    source: Text


class Program(Row):
    """What the program itself must do, from a version of TensorFlow on."""

    since: Version
    code: list[Code]
    why: Sentence
    source: Text


class Always(Row):
    """Variables for every image."""

    environ: dict[VariableName, Value]
    why: Sentence
    source: Text


class RecipeTable(Row):
    """recipes.toml."""

    evidence: dict[str, Text]
    program: Program
    always: Always
    recipe: list[Recipe]


class HostFact(Row):
    """Facts that belong to the machine a container runs on, not to its image."""

    path: Annotated[str, Field(pattern=r"^[A-Za-z0-9_*.]+$")]
    why: Sentence


class RouteDefaults(Row):
    """What is taken for an image's own settings where its config has not been read."""

    entrypoint: tuple[Text, ...] = ()
    command: tuple[Text, ...]
    source: Text


class ImageTable(Row):
    """image.toml."""

    evidence: dict[str, Text]
    host: list[HostFact]
    ngc: RouteDefaults
    cuda: RouteDefaults
    wheels: RouteDefaults


@cache
def recipe_table() -> RecipeTable:
    """Return what makes which TensorFlow deterministic."""
    return RecipeTable.model_validate(read("recipes"))


@cache
def image_table() -> ImageTable:
    """Return which facts are the machine's, and what is taken for an image's own settings unseen."""
    return ImageTable.model_validate(read("image"))
