"""Base images that no registry has, but a container engine: built there, loaded, or imported."""

from __future__ import annotations

from dataclasses import replace

from envlock.image.bases.choose import Find, Trust
from envlock.image.bases.manifest import Found, ImageConfig, config
from envlock.image.bases.reference import Reference, is_local, name_local_image, parse
from envlock.image.engines.engine import Engine, Inspected
from envlock.image.engines.engine_errors import EngineError
from envlock.runtime.errors import OutsideError


def is_only_local(image: str, inspected: Inspected) -> bool:
    """Return whether no registry has given an image of an engine a digest under this name."""
    digests = inspected.get("RepoDigests") or []
    # Without a slash, a colon or a digest of a registry, the name may be the beginning of an ID.
    if "/" not in image and ":" not in image and not digests:
        return True
    name = parse(image).name
    return not any(parse(digest).name == name for digest in digests)


def find_local_base(engine: Engine, image: str) -> Reference | None:
    """Return the name for a builder of an image that only the engine has; None if it has no such
    image, or a registry has it, too.

    The name of a release whose digest is known means that release, whatever the engine has.

    Raises:
        UsageError: it is not the name of an image.
    """
    if Trust().find_digest(replace(parse(image), digest=None)) is not None:
        return None
    try:
        inspected = engine.inspect(image)
    except EngineError:
        return None
    if not is_only_local(image, inspected):
        return None
    return name_local_image(str(inspected["Id"]))


def make_finder(engine: Engine, find: Find) -> Find:
    """Return a function that asks the engine for its own images, and `find` for all others.

    The engine gives such an image the name that stands in the Dockerfile.
    """

    def find_image(reference: Reference, platform: str) -> Found:
        if not is_local(reference):
            return find(reference, platform)
        image_id = reference.tag or ""
        try:
            inspected = engine.inspect(image_id)
        except EngineError:
            raise OutsideError(
                f"{engine.name} does not have the base image sha256:{image_id[:12]}, and no registry has it",
                hint="load or build it there, and capture it again; or push it, and capture it under that name",
            ) from None
        engine.tag(image_id, f"{reference.name}:{reference.tag}")
        digest = f"sha256:{image_id}"
        return Found(digest, digest, _read_config(inspected))

    return find_image


def _read_config(inspected: Inspected) -> ImageConfig:
    return config(
        {
            "os": inspected.get("Os"),
            "architecture": inspected.get("Architecture"),
            "config": inspected.get("Config") or {},
            "rootfs": {"diff_ids": dict(inspected.get("RootFS") or {}).get("Layers")},
        }
    )
