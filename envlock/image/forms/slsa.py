"""How an image was built: an in-toto statement with SLSA provenance v1,
https://slsa.dev/spec/v1.0/provenance. Pure.

It is not signed, and contains neither a time nor anything about the machine of the build: the same
lockfile gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from envlock.data.image_tables import load_image_tables
from envlock.image.bases.reference import parse
from envlock.image.forms import purl
from envlock.lock.models import BaseImage, Image, Lockfile, PinnedImage
from envlock.runtime.errors import UsageError

PREDICATE = "https://slsa.dev/provenance/v1"
BUILDER = "https://github.com/tf-envlock/envlock"
BUILD_TYPE = f"{BUILDER}/blob/main/docs/reference/forms.md#build-v1"


def render(lock: Lockfile) -> str:
    """Return the statement about the image of a lockfile.

    Raises:
        UsageError: the lockfile has no image, or one from before this was recorded.
    """
    image, base = lock.image, lock.base_image
    if image is None or base is None or image.lock is None or image.wheels is None:
        raise UsageError(
            "the lockfile does not say how its image was built",
            hint="run `envlock build` to build and record one",
        )
    definition = {
        "buildType": BUILD_TYPE,
        "externalParameters": {
            "lock": {"sha256": image.lock},
            "platform": base.platform,
            "route": base.route,
            "deterministic": image.deterministic,
        },
        "internalParameters": {"epoch": image.epoch, "layers": image.layers},
        "resolvedDependencies": list(_list_materials(lock, image, base)),
    }
    # The recorded version is that of the daemon, of which BuildKit is a part.
    engine = "docker" if image.engine == "buildx" else image.engine
    versions = {"envlock": image.envlock or "unknown", engine: image.engine_version}
    document = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [_describe_subject(image)],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": definition,
            "runDetails": {"builder": {"id": BUILDER, "version": versions}},
        },
    }
    return json.dumps(document, indent=2) + "\n"


def _describe_subject(image: Image) -> dict[str, object]:
    """Return the image in its registry, by its manifest; an image that is not in a registry, by its
    config.
    """
    if image.reference is None:
        return {"name": "image-config", "digest": _describe_digest(image.id)}
    reference = parse(image.reference)
    return {"name": reference.name, "digest": _describe_digest(str(reference.digest))}


def _list_materials(lock: Lockfile, image: Image, base: BaseImage) -> Iterator[dict[str, object]]:
    """Yield everything that the image was made from.

    Raises:
        UsageError: the lockfile does not have a wheel that is in the image.
    """
    yield _describe_image(base, base.platform)
    if base.python is not None:
        yield _describe_image(base.python, base.platform)
    if base.python_archive is not None:
        file = base.python_archive.file
        url = load_image_tables().standalone.make_url(file)
        yield {"name": file, "uri": url, "digest": {"sha256": base.python_archive.sha256}}
    if base.apt is not None:
        for package in base.apt.packages:
            digest = {"sha256": package.sha256}
            yield {"name": package.file, "uri": package.url, "digest": digest}
    yield {"name": "envlock.lock", "digest": {"sha256": image.lock}}
    for name in image.wheels or ():
        yield _describe_wheel(lock, name)


def _describe_wheel(lock: Lockfile, name: str) -> dict[str, object]:
    identity = lock.identities.get(name)
    if identity is None or identity.wheel is None:
        raise UsageError(
            f"the lockfile does not have the wheel of {name}, which is in its image",
            hint="run `envlock build` again",
        )
    wheel = identity.wheel
    uri = wheel.url or purl.build_pypi(name, identity.version)
    return {"name": wheel.name, "uri": uri, "digest": {"sha256": wheel.sha256}}


def _describe_image(image: PinnedImage, platform: str) -> dict[str, object]:
    reference = replace(parse(image.name), tag=image.tag)
    uri = purl.build_oci(reference, image.digest, platform)
    return {"name": reference.name, "uri": uri, "digest": _describe_digest(image.digest)}


def _describe_digest(digest: str) -> dict[str, str]:
    """Return a digest such as `sha256:...` by its algorithm, in the form of in-toto."""
    return {"sha256": digest.removeprefix("sha256:")}
