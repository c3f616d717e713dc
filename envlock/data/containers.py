"""The tables about containers, as typed rows; read when first asked for, since only `build` needs them."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import Field

from envlock.data import Row, Sentence, Text, read


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
def image_table() -> ImageTable:
    """Return which facts are the machine's, and what is taken for an image's own settings unseen."""
    return ImageTable.model_validate(read("image"))
