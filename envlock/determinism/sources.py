"""Where a row is known from, for a report. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def cited(source: str, evidence: Mapping[str, str]) -> str:
    """Return a source as it stands, or what its key of [evidence] stands for, with its details."""
    for key, meaning in evidence.items():
        if source == key or source.startswith((f"{key} ", f"{key}:")):
            details = source[len(key) :].lstrip(": ").strip("()")
            return f"{meaning} ({details})" if details else meaning
    return source
