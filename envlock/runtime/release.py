"""The release segment of a version: the numbers that it begins with. Not only versions of PEP 440 have one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Tuple

_KNOWN: Dict[str, Tuple[int, ...]] = {}
"""What was found: the choice of a base image asks for the same few hundred versions thousands of times."""


def numbers(version: str) -> Tuple[int, ...]:
    """Return the numbers that a version begins with: those of `2.16.0rc1` are (2, 16, 0); () where it has none."""
    known = _KNOWN.get(version)
    if known is None:
        known = _KNOWN[version] = _numbers(version)
    return known


def _numbers(version: str) -> Tuple[int, ...]:
    found = []
    for part in version.split("."):
        rest = part.lstrip("0123456789")
        if rest == part:
            break
        found.append(int(part[: len(part) - len(rest)]))
        if rest:
            break
    return tuple(found)


def minor(version: str) -> str:
    """Return major and minor number, such as `12.4`."""
    return ".".join(str(number) for number in numbers(version)[:2])
