"""The versions that a row is about, as PEP 440 specifiers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import Field

Specifiers = list[Annotated[str, Field(pattern=r"^(\*|[<>=!~][^*]*)$")]]


def matches_version(specifiers: Sequence[str], version: str) -> bool:
    """Return whether any of the specifiers includes a version; `*` includes every version."""
    return any(
        specifier == "*" or matches_specifier(version, specifier) for specifier in specifiers
    )


@lru_cache(maxsize=1024)
def matches_specifier(version: str, specifier: str) -> bool:
    """Return whether a specifier accepts a version; a release candidate, or NVIDIA's build, counts as its release."""
    return SpecifierSet(specifier).contains(Version(version).base_version)


def parse_version(text: object) -> Version | None:
    """Return a version as a value that can be compared; None if this is not one."""
    if not isinstance(text, str):
        return None
    try:
        return Version(text)
    except InvalidVersion:
        return None
