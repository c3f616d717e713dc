"""Lockfiles for tests, as JSON values and as bytes."""

from __future__ import annotations

import json
from typing import Any

FACTS: dict[str, Any] = {
    "python": {"implementation": "cpython", "version": "3.11.7"},
    "packages": {"numpy": {"version": "1.26.4", "wheel_tags": ["cp311-cp311-linux_x86_64"], "origin": None}},
    "tensorflow": None,
    "cpu": {"flags": ["avx", "avx2"], "quota": 1.5},
}
UNAVAILABLE = {"keras": {"reason": "keras.json cannot be read", "code": "permission-denied"}}


def document(**changes: Any) -> dict[str, Any]:
    """Return a small valid lockfile with top-level fields changed; the value `...` removes a field."""
    fields = {
        "$schema": "https://example.org/schema.json",
        "lock_version": 1,
        "created_by": "envlock 0.1.0",
        "facts": json.loads(json.dumps(FACTS)),
        "unavailable": json.loads(json.dumps(UNAVAILABLE)),
        "policy": {"name": "strict", "overrides": {}},
    }
    return {key: value for key, value in {**fields, **changes}.items() if value is not ...}


def encode(value: Any) -> bytes:
    """Return canonical JSON bytes of any value, in the layout of a lockfile."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
