"""What a registry wants to be shown: the header WWW-Authenticate. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_NEXT = re.compile(
    rf"[\s,]*(?:(?P<name>{_WORD})\s*=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<plain>{_WORD}))|(?P<scheme>{_WORD}))"
)
LONGEST = 8192


@dataclass(frozen=True)
class Challenge:
    """One way in; `scheme` and the names of `values` are in lower case."""

    scheme: str
    values: dict[str, str]


def challenges(header: str) -> list[Challenge]:
    """Return the ways in that a header offers, up to where it cannot be read."""
    found: list[Challenge] = []
    place = 0
    while len(header) <= LONGEST and (match := _NEXT.match(header, place)) is not None:
        place = match.end()
        if match["scheme"] is not None:
            found.append(Challenge(match["scheme"].lower(), {}))
        elif not found:
            break
        else:
            quoted = match["quoted"]
            value = match["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            found[-1].values.setdefault(match["name"].lower(), value)
    return found
