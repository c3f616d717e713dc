"""Where wheels that were read once are kept: by their sha256, so that a name never stands for other bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def folder(environ: Mapping[str, str], home: Path) -> Path:
    """Return the folder of envlock's cache.

    Source: https://specifications.freedesktop.org/basedir-spec/latest/ (a relative XDG_CACHE_HOME is to be ignored)
    """
    named = environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if named.startswith("/") else home / ".cache") / "envlock"


def wheel(cache: Path, sha256: str, name: str) -> Path:
    """Return where the wheel of this hash is, or would be."""
    return cache / "wheels" / sha256 / name
