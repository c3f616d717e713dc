"""The release segment of a version: the numbers at its start. Versions that do not follow PEP 440
have one, too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, Tuple

_KNOWN: Dict[str, Tuple[int, ...]] = {}
"""The choice of a base image parses the same few hundred versions thousands of times."""


def parse_release(version: str) -> Tuple[int, ...]:
    """Return the numbers at the start of a version: (2, 16, 0) for `2.16.0rc1`; () if it has none."""
    if version not in _KNOWN:
        _KNOWN[version] = _parse_numbers(version)
    return _KNOWN[version]


def _parse_numbers(version: str) -> Tuple[int, ...]:
    numbers = []
    for part in version.split("."):
        rest = part.lstrip("0123456789")
        if rest == part:
            break
        numbers.append(int(part[: len(part) - len(rest)]))
        if rest:
            break
    return tuple(numbers)


def minor(version: str) -> str:
    """Return the major and minor number, such as `12.4`."""
    return ".".join(map(str, parse_release(version)[:2]))


def describe_beyond(subject: str, version: Optional[str], through: str) -> Optional[str]:
    """Return the sentence on a version that is newer than what a table was checked for, without the
    full stop; None if it is not.

    A minor version stands for its patch releases, and a release candidate only for itself.
    """
    numbers, known = parse_release(version or ""), parse_release(through)
    is_final = through.replace(".", "").isdigit()
    is_same = (version or "").replace("-rc", "rc") == through
    if numbers[:2] < known[:2] or (numbers[:2] == known[:2] and (is_final or is_same)):
        return None
    return (
        f"{subject} {version} is newer than the sources checked here ({through}): "
        f"statements about it are those for {through}, and what is new in it is unknown"
    )
