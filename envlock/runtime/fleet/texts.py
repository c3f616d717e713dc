"""Paths that facts hold as a SHA-256, for the report on ranks: two that differ are shown as they are. Pure.

A lockfile is published, and so never holds them. The report of a job is its user's own, and shows a value only if it
has the form of absolute paths: what was put into a variable by mistake, such as a token, stays a SHA-256.
"""

from __future__ import annotations

from envlock.runtime.collectors.environ import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, Mapping

START = "sha256:"
LONGEST = 300  # characters
MOST = 20  # texts of one environment


def texts_of(recorded: Mapping[str, Any], environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the paths in variables by the SHA-256 that stands for each.

    Args:
        recorded: the section `environ` of facts.
        environ: the variables of the process.
    """
    found: Dict[str, str] = {}
    for name, value in recorded.items():
        if isinstance(value, str) and START in value:
            for text in _parts(environ.get(name, "")):
                key = digest(text)
                if key in value and is_text(key, text) and len(found) < MOST:
                    found[key] = text
    return found


def _parts(value: str) -> Iterator[str]:
    """Yield what of a value can have been recorded as one SHA-256: all, its start, and the values of flags."""
    entries = value.split(":")
    yield from (
        ":".join(entries[:number])
        for number in range(len(entries), max(0, len(entries) - MOST), -1)
    )
    yield from (flag.partition("=")[2] for flag in value.split())


def is_text(key: Any, text: Any) -> bool:
    """Return whether a text is one or several absolute paths, and that of its SHA-256."""
    if not isinstance(text, str) or not text.isprintable() or not 0 < len(text) <= LONGEST:
        return False
    return all(part.startswith("/") or not part for part in text.split(":")) and digest(text) == key


def readable(message: str, texts: Mapping[str, str]) -> str:
    """Return a message in which paths stand for their SHA-256."""
    for key, text in texts.items():
        message = message.replace(key, text)
    return message
