"""Package URLs: https://github.com/package-url/purl-spec. Pure.

Every part is percent-encoded, so that no value of a lockfile can end one part and begin another.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from envlock.image.bases.reference import Reference

_PLAIN = "/:"
"""Characters that are not encoded in the values of qualifiers, in the canonical form of
packageurl-python.
"""
_DEBIANS = ("debian", "ubuntu")
"""Vendors of Debian packages in package URLs."""


def build_pypi(name: str, version: str | None, qualifiers: Mapping[str, str] | None = None) -> str:
    """Return the URL of a Python package."""
    return _build("pypi", name, version, qualifiers or {})


def build_deb(system: str | None, name: str, version: str, architecture: str) -> str:
    """Return the URL of a Debian package; `system` is that of the base, such as ubuntu."""
    vendor = system if system in _DEBIANS else "debian"
    return _build(f"deb/{vendor}", name, version, {"arch": architecture})


def build_generic(name: str, version: str, qualifiers: Mapping[str, str] | None = None) -> str:
    """Return the URL of a component that is in no registry."""
    return _build("generic", name, version, qualifiers or {})


def build_oci(reference: Reference, digest: str, platform: str | None = None) -> str:
    """Return the URL of an image; `platform` is such as linux/amd64."""
    qualifiers = {"repository_url": reference.name}
    if reference.tag is not None:
        qualifiers["tag"] = reference.tag
    if platform is not None:
        qualifiers["arch"] = platform.rpartition("/")[2]
    return _build("oci", reference.repository.rpartition("/")[2], digest, qualifiers)


def _build(kind: str, name: str, version: str | None, qualifiers: Mapping[str, str]) -> str:
    url = f"pkg:{kind}/{quote(name, safe='')}"
    if version is not None:
        url += f"@{quote(version, safe=':')}"
    pairs = [f"{key}={quote(value, safe=_PLAIN)}" for key, value in sorted(qualifiers.items())]
    if pairs:
        url += f"?{'&'.join(pairs)}"
    return url
