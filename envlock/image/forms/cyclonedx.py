"""A software bill of materials: CycloneDX 1.6, https://cyclonedx.org/docs/1.6/json/. Pure: values
in, text out.

The same lockfile gives the same bytes: it has no time, and its serial number is computed from its
content.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from envlock.data.image_tables import load_image_tables
from envlock.image.bases.reference import parse
from envlock.image.forms import purl
from envlock.image.plan import dump_shipped_lock
from envlock.lock.models import BaseImage, Lockfile, PackageIdentity, PinnedImage, WheelFile
from envlock.packages.identity import find_checkout
from envlock.packages.public_index import PUBLIC_INDEX
from envlock.runtime.version import __version__

SUBJECT = "environment"
BASE = "base-image"
PYTHON_IMAGE = "python-image"
LOCK = "envlock:lock:sha256"
UNPROVEN = "envlock:unproven"
_HOST = ("cuda_driver",)
"""Libraries of the machine, which are in no image."""


@dataclass(frozen=True)
class Component:
    """A part of the environment; a field that is None is left out of the document.

    Attributes:
        kind: `container`, `library`, `platform` or `file`.
        ref: the name by which other parts of the document refer to it.
        sha256: that of its file, or of the manifest of an image.
        purl: its package URL.
        url: where its file is fetched from.
        unproven: why it has no `sha256`.
    """

    kind: str
    ref: str
    name: str
    purl: str
    version: str | None = None
    sha256: str | None = None
    supplier: str | None = None
    url: str | None = None
    unproven: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return the component in the format, always in the same order."""
        found: dict[str, object] = {"type": self.kind, "bom-ref": self.ref}
        if self.supplier is not None:
            found["supplier"] = {"name": self.supplier}
        found["name"] = self.name
        if self.version is not None:
            found["version"] = self.version
        if self.sha256 is not None:
            found["hashes"] = [{"alg": "SHA-256", "content": self.sha256}]
        found["purl"] = self.purl
        if self.url is not None:
            found["externalReferences"] = [{"type": "distribution", "url": self.url}]
        if self.unproven is not None:
            found["properties"] = [{"name": UNPROVEN, "value": self.unproven}]
        return found


def render(lock: Lockfile) -> str:
    """Return the bill of materials of a lockfile.

    It has every package: with its hash if its wheel is proven, else with the reason why not. It
    does not have the packages of the base image's operating system, which `compositions` says.
    """
    components = list(_list_components(lock))
    tool = {"type": "application", "name": "tf-envlock", "version": __version__}
    references = sorted(component.ref for component in components)
    document: dict[str, object] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"tools": {"components": [tool]}, "component": _describe_subject(lock)},
        "components": [component.to_json() for component in components],
        "dependencies": [{"ref": SUBJECT, "dependsOn": references}],
        "compositions": _describe_completeness(components),
    }
    # A random serial number would differ each time.
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'sha256:{digest}')}"
    return json.dumps(document, indent=2) + "\n"


def _describe_subject(lock: Lockfile) -> dict[str, object]:
    """Return the subject of the bill: the image in its registry, if there is one, else the
    environment.
    """
    name = lock.own_name or SUBJECT
    digest = lock.image.lock if lock.image is not None else None
    if not digest:
        digest = hashlib.sha256(dump_shipped_lock(lock, {})).hexdigest()
    subject: dict[str, object] = {
        "type": "application",
        "bom-ref": SUBJECT,
        "name": name,
        "properties": [{"name": LOCK, "value": digest}],
    }
    if lock.image is None or lock.image.reference is None:
        return subject
    reference = parse(lock.image.reference)
    manifest = str(reference.digest)
    subject["type"] = "container"
    subject["name"] = reference.name
    subject["version"] = reference.tag or manifest
    subject["hashes"] = [{"alg": "SHA-256", "content": manifest.removeprefix("sha256:")}]
    subject["purl"] = purl.build_oci(reference, manifest)
    return subject


def _list_components(lock: Lockfile) -> Iterator[Component]:
    """Yield the parts of the environment in the order of the document."""
    base = lock.base_image
    if base is not None:
        yield _describe_image(base, BASE, base.platform)
        if base.python is not None:
            yield _describe_image(base.python, PYTHON_IMAGE, base.platform)
    yield from _list_pythons(lock)
    if base is not None:
        yield from _list_debian_packages(lock, base)
    yield from _list_cuda_libraries(lock)
    for name, package in sorted((lock.facts.packages or {}).items()):
        identity = lock.identities.get(name)
        yield _describe_package(lock, name, package.version, identity)


def _describe_image(image: PinnedImage, ref: str, platform: str) -> Component:
    reference = replace(parse(image.name), tag=image.tag)
    return Component(
        "container",
        ref,
        reference.name,
        purl.build_oci(reference, image.digest, platform),
        version=reference.tag or image.digest,
        sha256=image.digest.removeprefix("sha256:"),
    )


def _list_pythons(lock: Lockfile) -> Iterator[Component]:
    """Yield the Python that runs, and the build of python-build-standalone that is installed in the
    base.
    """
    python = lock.facts.python
    if python is not None and python.version is not None:
        name = python.implementation or "python"
        url = purl.build_generic(name, python.version)
        yield Component("platform", "python", name, url, version=python.version)
    base = lock.base_image
    if base is not None and base.python_archive is not None:
        archive = base.python_archive
        # Such as cpython-3.11.13+20250612-x86_64-unknown-linux-gnu-install_only.tar.gz.
        name, version, *_ = archive.file.split("-")
        url = load_image_tables().standalone.make_url(archive.file)
        yield Component(
            "file",
            "python-archive",
            archive.file,
            purl.build_generic(name, version, {"download_url": url}),
            version=version,
            sha256=archive.sha256,
            url=url,
        )


def _list_debian_packages(lock: Lockfile, base: BaseImage) -> Iterator[Component]:
    """Yield the packages that apt installs in the base."""
    if base.apt is None:
        return
    system = lock.facts.system.os if lock.facts.system is not None else None
    for package in base.apt.packages:
        yield Component(
            "library",
            f"debian:{package.name}",
            package.name,
            purl.build_deb(system, package.name, package.version, package.architecture),
            version=package.version,
            sha256=package.sha256,
            url=package.url,
        )


def _list_cuda_libraries(lock: Lockfile) -> Iterator[Component]:
    """Yield the libraries of NVIDIA that are not from a wheel."""
    facts = lock.facts.cuda
    if facts is None:
        return
    for name in sorted(facts.model_fields_set):
        library = getattr(facts, name)
        version = getattr(library, "version", None)
        if version is None or library.wheel_version is not None or name in _HOST:
            continue
        url = purl.build_generic(name, version)
        yield Component("library", f"cuda:{name}", name, url, version=version, supplier="NVIDIA")


def _describe_package(
    lock: Lockfile,
    name: str,
    version: str | None,
    identity: PackageIdentity | None,
) -> Component:
    component = Component(
        "library",
        f"package:{name}",
        name,
        purl.build_pypi(name, version),
        version=version,
    )
    # An identity of another version does not describe this package.
    if identity is not None and identity.version == version and identity.wheel is not None:
        return _add_wheel(component, identity.wheel)
    reason = identity.reason if identity is not None and identity.reason else "its wheel is unknown"
    component = replace(component, unproven=reason)
    source = find_checkout(lock, name)
    if source is not None:
        qualifiers = {"vcs_url": f"git+{source.url}@{source.commit}"}
        component = replace(component, purl=purl.build_pypi(name, version, qualifiers))
    return component


def _add_wheel(component: Component, wheel: WheelFile) -> Component:
    """Return a package with the hash of its wheel, and the URL of that."""
    url = component.purl
    if wheel.index is not None:
        index = wheel.index.rstrip("/")
        # In the canonical form, PyPI is left out.
        if index != PUBLIC_INDEX.rstrip("/"):
            qualifiers = {"repository_url": index}
            url = purl.build_pypi(component.name, component.version, qualifiers)
    return replace(component, purl=url, sha256=wheel.sha256, url=wheel.url)


def _describe_completeness(components: Sequence[Component]) -> list[dict[str, object]]:
    """Return which lists are complete: that of all Python packages.

    The contents of the images are not listed.
    """
    images = []
    packages = []
    for component in components:
        if component.kind == "container":
            images.append(component.ref)
        elif component.ref.startswith("package:"):
            packages.append(component.ref)
    compositions: list[dict[str, object]] = []
    if packages:
        compositions.append({"aggregate": "complete", "assemblies": packages})
    if images:
        compositions.append({"aggregate": "incomplete", "assemblies": images})
    return compositions
