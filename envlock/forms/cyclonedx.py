"""A software bill of materials: CycloneDX 1.6, https://cyclonedx.org/docs/1.6/json/. Pure: values in, text out.

The same lock gives the same bytes: there is no time in it, and its serial number is made of its content.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from envlock.containers.plan import shipped
from envlock.data.images import image_tables
from envlock.forms import purl
from envlock.images.reference import Reference, parse
from envlock.lock.models import BaseImage, Lockfile, PackageIdentity, PinnedImage
from envlock.packages.licenses import License
from envlock.packages.proven import checkout
from envlock.runtime.version import __version__

SUBJECT = "environment"
BASE = "base-image"
PYTHON_IMAGE = "python-image"
LOCK = "envlock:lock:sha256"
UNPROVEN = "envlock:unproven"
_HOST = ("cuda_driver",)
"""Libraries of the machine, which no image brings."""


def render(lock: Lockfile, licenses: Mapping[str, License]) -> str:
    """Return the bill of materials of a lock.

    Every package is in it: one whose wheel is proven with its hash, another with the reason why it has none. The
    packages of the base image's operating system are not, which `compositions` says.

    Args:
        lock: what it is of.
        licenses: what the wheels declare, by the names of the packages.
    """
    base = lock.base_image
    components = [*_images(base), *_python(lock), *_archive(base), *_debian(lock), *_cuda(lock)]
    components += _packages(lock, licenses)
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {
                "components": [
                    {"type": "application", "name": "tf-envlock", "version": __version__}
                ]
            },
            "component": _subject(lock),
        },
        "components": components,
        "dependencies": [
            {"ref": SUBJECT, "dependsOn": sorted(each["bom-ref"] for each in components)}
        ],
        "compositions": _compositions(components),
    }
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'sha256:{digest}')}"
    return json.dumps(document, indent=2) + "\n"


def _subject(lock: Lockfile) -> dict[str, Any]:
    """Return what the bill is of: the image in its registry, where there is one, else the environment."""
    name = (lock.project.name if lock.project is not None else None) or SUBJECT
    digest = lock.image.lock if lock.image is not None else None
    properties = [{"name": LOCK, "value": digest or hashlib.sha256(shipped(lock, {})).hexdigest()}]
    own = {"type": "application", "bom-ref": SUBJECT, "name": name, "properties": properties}
    if lock.image is None or lock.image.reference is None:
        return own
    pushed = parse(lock.image.reference)
    return {
        **own,
        "type": "container",
        **_image(pushed, str(pushed.digest), None),
        "bom-ref": SUBJECT,
    }


def _images(base: BaseImage | None) -> list[dict[str, Any]]:
    if base is None:
        return []
    found = [_pinned(base, BASE, base.platform)]
    return (
        found
        if base.python is None
        else [*found, _pinned(base.python, PYTHON_IMAGE, base.platform)]
    )


def _pinned(image: PinnedImage, ref: str, platform: str) -> dict[str, Any]:
    reference = replace(parse(image.name), tag=image.tag)
    return {"type": "container", "bom-ref": ref, **_image(reference, image.digest, platform)}


def _image(reference: Reference, digest: str, platform: str | None) -> dict[str, Any]:
    return {
        "name": reference.name,
        "version": reference.tag or digest,
        "hashes": [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}],
        "purl": purl.oci(reference, digest, platform),
    }


def _python(lock: Lockfile) -> list[dict[str, Any]]:
    python = lock.facts.python
    if python is None or python.version is None:
        return []
    name = python.implementation or "python"
    return [
        {
            "type": "platform",
            "bom-ref": "python",
            "name": name,
            "version": python.version,
            "purl": purl.generic(name, python.version),
        }
    ]


def _archive(base: BaseImage | None) -> list[dict[str, Any]]:
    """Return the build of python-build-standalone that is installed in the base."""
    if base is None or base.python_archive is None:
        return []
    name, version, *_ = base.python_archive.file.split("-")
    url = image_tables().standalone.url(base.python_archive.file)
    return [
        {
            "type": "file",
            "bom-ref": "python-archive",
            "name": base.python_archive.file,
            "version": version,
            "hashes": [{"alg": "SHA-256", "content": base.python_archive.sha256}],
            "purl": purl.generic(name, version, {"download_url": url}),
            "externalReferences": [{"type": "distribution", "url": url}],
        }
    ]


def _debian(lock: Lockfile) -> list[dict[str, Any]]:
    """Return the packages that are installed in the base by apt."""
    apt = lock.base_image.apt if lock.base_image is not None else None
    system = lock.facts.system.os if lock.facts.system is not None else None
    return [
        {
            "type": "library",
            "bom-ref": f"debian:{each.name}",
            "name": each.name,
            "version": each.version,
            "hashes": [{"alg": "SHA-256", "content": each.sha256}],
            "purl": purl.deb(system, each.name, each.version, each.architecture),
            "externalReferences": [{"type": "distribution", "url": each.url}],
        }
        for each in (apt.packages if apt is not None else ())
    ]


def _cuda(lock: Lockfile) -> list[dict[str, Any]]:
    """Return the libraries of NVIDIA's that no wheel brings."""
    facts = lock.facts.cuda
    found = []
    for name in sorted(facts.model_fields_set) if facts is not None else ():
        library = getattr(facts, name)
        version = getattr(library, "version", None)
        if version is None or library.wheel_version is not None or name in _HOST:
            continue
        found.append(
            {
                "type": "library",
                "bom-ref": f"cuda:{name}",
                "supplier": {"name": "NVIDIA"},
                "name": name,
                "version": version,
                "purl": purl.generic(name, version),
            }
        )
    return found


def _packages(lock: Lockfile, licenses: Mapping[str, License]) -> list[dict[str, Any]]:
    identities = lock.identity.packages if lock.identity is not None else {}
    return [
        _package(lock, name, package.version, identities.get(name), licenses.get(name, License()))
        for name, package in sorted((lock.facts.packages or {}).items())
    ]


def _package(
    lock: Lockfile,
    name: str,
    version: str | None,
    identity: PackageIdentity | None,
    declared: License,
) -> dict[str, Any]:
    component: dict[str, Any] = {"type": "library", "bom-ref": f"package:{name}", "name": name}
    if version is not None:
        component["version"] = version
    wheel = identity.wheel if identity is not None and identity.version == version else None
    qualifiers: dict[str, str] = {}
    if wheel is not None:
        component["hashes"] = [{"alg": "SHA-256", "content": wheel.sha256}]
        if wheel.index is not None and wheel.index.rstrip("/") != _default_index():
            qualifiers["repository_url"] = wheel.index.rstrip("/")
    component |= _licenses(declared)
    source = checkout(lock, name) if wheel is None else None
    if source is not None:
        qualifiers["vcs_url"] = f"git+{source.url}@{source.commit}"
    component["purl"] = purl.pypi(name, version, qualifiers)
    if wheel is not None and wheel.url is not None:
        component["externalReferences"] = [{"type": "distribution", "url": wheel.url}]
    if wheel is None:
        reason = (identity.reason if identity is not None else None) or "its wheel is unknown"
        component["properties"] = [{"name": UNPROVEN, "value": reason}]
    return component


def _licenses(declared: License) -> dict[str, Any]:
    """Return what a package declares, as the format holds it: one expression, or names."""
    if declared.expression is not None:
        return {"licenses": [{"expression": declared.expression, "acknowledgement": "declared"}]}
    named = [{"license": {"name": name, "acknowledgement": "declared"}} for name in declared.names]
    return {"licenses": named} if named else {}


def _compositions(components: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is known to be whole: all Python packages, and of the images only that they are there."""
    images = [each["bom-ref"] for each in components if each["type"] == "container"]
    packages = [each["bom-ref"] for each in components if each["bom-ref"].startswith("package:")]
    whole = [{"aggregate": "complete", "assemblies": packages}] if packages else []
    return [*whole, {"aggregate": "incomplete", "assemblies": images}] if images else whole


def _default_index() -> str:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT  # here: it takes a quarter of a second

    return PYPI_SIMPLE_ENDPOINT.rstrip("/")
