"""How an image was built: an in-toto statement with SLSA provenance v1, https://slsa.dev/spec/v1.0/provenance. Pure.

It is not signed, and holds no time and nothing of the machine that built: the same lock gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from envlock.data.images import image_tables
from envlock.forms import purl
from envlock.images.reference import parse
from envlock.lock.models import BaseImage, Image, Lockfile, PinnedImage
from envlock.packages.licenses import License
from envlock.runtime.errors import UsageError

PREDICATE = "https://slsa.dev/provenance/v1"
BUILDER = "https://github.com/tf-envlock/envlock"
BUILD_TYPE = f"{BUILDER}/blob/main/docs/reference/forms.md#build-v1"


def render(lock: Lockfile, licenses: Mapping[str, License]) -> str:
    """Return the statement on the image that a lock has.

    Raises:
        UsageError: it has none, or one from before this was recorded.
    """
    image, base = lock.image, lock.base_image
    if image is None or base is None or image.lock is None or image.wheels is None:
        raise UsageError(
            "the lockfile does not say how its image was built",
            hint="run `envlock build` to build and record one",
        )
    document = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [_subject(image)],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "lock": {"sha256": image.lock},
                    "platform": base.platform,
                    "route": base.route,
                    "deterministic": image.deterministic,
                },
                "internalParameters": {"epoch": image.epoch, "layers": image.layers},
                "resolvedDependencies": list(_materials(lock, image, base)),
            },
            "runDetails": {
                "builder": {
                    "id": BUILDER,
                    "version": {
                        "envlock": image.envlock or "unknown",
                        image.engine: image.engine_version,
                    },
                }
            },
        },
    }
    return json.dumps(document, indent=2) + "\n"


def _subject(image: Image) -> dict[str, Any]:
    """Return the image in its registry, by its manifest; one that is in none, by its config."""
    if image.reference is None:
        return {"name": "image-config", "digest": {"sha256": image.id.removeprefix("sha256:")}}
    pushed = parse(image.reference)
    return {"name": pushed.name, "digest": {"sha256": str(pushed.digest).removeprefix("sha256:")}}


def _materials(lock: Lockfile, image: Image, base: BaseImage) -> Iterator[dict[str, Any]]:
    yield _pinned(base, base.platform)
    if base.python is not None:
        yield _pinned(base.python, base.platform)
    if base.python_archive is not None:
        url = image_tables().standalone.url(base.python_archive.file)
        yield {
            "name": base.python_archive.file,
            "uri": url,
            "digest": {"sha256": base.python_archive.sha256},
        }
    for each in base.apt.packages if base.apt is not None else ():
        yield {"name": each.file, "uri": each.url, "digest": {"sha256": each.sha256}}
    yield {"name": "envlock.lock", "digest": {"sha256": image.lock}}
    identities = lock.identity.packages if lock.identity is not None else {}
    for name in image.wheels or ():
        entry = identities.get(name)
        if entry is None or entry.wheel is None:
            raise UsageError(
                f"the lockfile does not have the wheel of {name}, which is in its image",
                hint="run `envlock build` again",
            )
        uri = entry.wheel.url or purl.pypi(name, entry.version)
        yield {"name": entry.wheel.name, "uri": uri, "digest": {"sha256": entry.wheel.sha256}}


def _pinned(image: PinnedImage, platform: str) -> dict[str, Any]:
    reference = replace(parse(image.name), tag=image.tag)
    uri = purl.oci(reference, image.digest, platform)
    return {
        "name": reference.name,
        "uri": uri,
        "digest": {"sha256": image.digest.removeprefix("sha256:")},
    }
