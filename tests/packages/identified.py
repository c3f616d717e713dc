"""Locks that say which file each package came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from envlock.lock.document import validate
from envlock.lock.models import Lockfile
from tests.locks import document

INDEX = "https://index.example.org/simple/"


def wheel(name: str, content: bytes = b"", **changes: Any) -> dict[str, Any]:
    """Return a wheel of an index, as a lock holds it, with fields changed."""
    fields = {
        "name": name,
        "sha256": hashlib.sha256(content or name.encode()).hexdigest(),
        "size": len(content) or 1000,
        "url": f"https://files.example.org/{name}".replace("+", "%2B"),
        "index": INDEX,
    }
    return {**fields, **changes}


def proof(version: str | None, file: Mapping[str, Any], origin: str = "index") -> dict[str, Any]:
    """Return what `identity` holds of a package whose wheel is known."""
    return {"version": version, "content": "c" * 64, "origin": origin, "proof": "record", "wheel": file, "reason": None}


def doubt(version: str | None, reason: str, origin: str = "vcs") -> dict[str, Any]:
    """Return what `identity` holds of a package whose wheel is not known."""
    return {"version": version, "content": None, "origin": origin, "proof": None, "wheel": None, "reason": reason}


def lock_of(identities: Mapping[str, Any], **facts: Any) -> Lockfile:
    """Return a lock with these identities, and packages of just these versions; `facts` are sections of facts."""
    return validate(lock_document(identities, **facts), "of a test")


def lock_document(identities: Mapping[str, Any], **facts: Any) -> dict[str, Any]:
    """Return the JSON values of `lock_of`."""
    packages = {name: {"version": each["version"]} for name, each in identities.items()}
    sections = {
        "python": {"implementation": "cpython", "version": "3.11.7"},
        "system": {"kernel": "Linux", "machine": "x86_64"},
        "packages": packages,
    }
    return document(facts={**sections, **facts}, unavailable={}, identity={"packages": dict(identities)})
