"""The models of `base_image` and `image`: what an image is built on, pinned, and what was built."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from envlock.lock.fields import Count, Sha256, Strict, Text, VariableName, Version
from envlock.lock.route import Route

Word = Annotated[str, Field(max_length=1000, pattern=r"^[A-Za-z0-9_.,:=+/@%-]+$")]

ImageDigest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


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


ImageName = Annotated[
    str,
    Field(
        max_length=255,
        pattern=r"^([a-zA-Z0-9]+([.-]+[a-zA-Z0-9]+)*|\[[a-fA-F0-9:]+\])(:[0-9]{1,5})?"
        r"(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+$",
    ),
]
ImageTag = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")]
Reason = Annotated[str, Field(max_length=4000, pattern=r"^[^\x00-\x1f\x7f]+$")]


class PinnedImage(Strict):
    """An image of a registry, by its full name, as nvcr.io/nvidia/tensorflow.

    `digest` is what the tag pointed at: an index, where the image is there for several platforms. `manifest` is that
    of the one platform, null where it was not told. `tag` is for people, and null where a digest was named; tags move.
    """

    name: ImageName
    tag: ImageTag | None
    digest: ImageDigest
    manifest: ImageDigest | None


class BaseImage(PinnedImage):
    """What the image starts from, and why.

    `route` says where TensorFlow comes from. `python` is the image that Python is taken from, for a base that has
    none.
    """

    platform: Literal["linux/amd64", "linux/arm64"]
    route: Route
    reason: Reason
    python: PinnedImage | None = None

    @model_validator(mode="after")
    def _python_where_there_is_none(self) -> "BaseImage":
        if self.python is not None and self.route != "cuda":
            raise ValueError("only a base of the route cuda has its Python from another image")
        return self
