"""The versions that a row is about, as PEP 440 specifiers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

from packaging.specifiers import SpecifierSet
from packaging.version import Version
from pydantic import Field

Specifiers = list[Annotated[str, Field(pattern=r"^(\*|[<>=!~][^*]*)$")]]


def matches_version(specifiers: Sequence[str], version: str) -> bool:
    """Return whether any of the specifiers includes a version; `*` includes every version."""
    return any(
        specifier == "*" or _matches_specifier(specifier, version) for specifier in specifiers
    )


@lru_cache(maxsize=1024)
def _matches_specifier(specifier: str, version: str) -> bool:
    # A release candidate, or NVIDIA's build, counts as its release.
    return SpecifierSet(specifier).contains(Version(version).base_version)
