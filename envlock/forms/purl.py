"""Package URLs: https://github.com/package-url/purl-spec. Pure.

Every part is percent-encoded, so that nothing of a lock can end one and begin another.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from envlock.images.reference import Reference

_PLAIN = "/:"
"""What stands unencoded in the values of qualifiers, in the canonical form of packageurl-python."""


def pypi(name: str, version: str | None, qualifiers: Mapping[str, str] | None = None) -> str:
    """Return the URL of a Python package."""
    return _purl("pypi", name, version, qualifiers or {})


def deb(system: str | None, name: str, version: str, architecture: str) -> str:
    """Return the URL of a Debian package; `system` is debian unless it is another that has such packages."""
    vendor = system if system in ("debian", "ubuntu") else "debian"
    return _purl(f"deb/{vendor}", name, version, {"arch": architecture})


def generic(name: str, version: str, qualifiers: Mapping[str, str] | None = None) -> str:
    """Return the URL of what no registry has."""
    return _purl("generic", name, version, qualifiers or {})


def oci(reference: Reference, digest: str, platform: str | None = None) -> str:
    """Return the URL of an image; `platform` is such as linux/amd64."""
    qualifiers = {"repository_url": reference.name}
    if reference.tag is not None:
        qualifiers["tag"] = reference.tag
    if platform is not None:
        qualifiers["arch"] = platform.rpartition("/")[2]
    return _purl("oci", reference.repository.rpartition("/")[2], digest, qualifiers)


def _purl(kind: str, name: str, version: str | None, qualifiers: Mapping[str, str]) -> str:
    head = f"pkg:{kind}/{quote(name, safe='')}"
    at = "" if version is None else f"@{quote(version, safe=':')}"
    pairs = "&".join(
        f"{key}={quote(value, safe=_PLAIN)}" for key, value in sorted(qualifiers.items())
    )
    return f"{head}{at}?{pairs}" if pairs else f"{head}{at}"
