"""The model of `image`: what `envlock build` made of the lock, so that a rebuild can be held against it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from envlock.lock.base_image import ImageDigest
from envlock.lock.texts import Count, Sha256, Strict, Text, VariableName, Version

Word = Annotated[str, Field(max_length=1000, pattern=r"^[A-Za-z0-9_.,:=+/@%-]+$")]


class BaseConfig(Strict):
    """What the base's config says that its image depends on; `environ` holds determinism variables only."""

    entrypoint: list[Word]
    command: list[Word]
    environ: dict[VariableName, Text]


class Image(Strict):
    """An image that was built, and found to be the locked environment.

    `id` is the digest of its config. A builder that stamps its own time into it gives another one each time; `layers`
    (unpacked, the base's first) and `config` (SHA-256 of variables, entrypoint, command, folder, user and labels) are
    the same whoever built it.
    """

    id: ImageDigest
    layers: list[ImageDigest]
    config: Sha256
    base: ImageDigest
    base_config: BaseConfig | None
    deterministic: bool
    epoch: Count
    engine: Literal["buildx", "docker"]
    engine_version: Version
