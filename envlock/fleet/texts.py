"""Paths that facts hold as a SHA-256, for the report on ranks: two that differ are shown as they are. Pure.

A lockfile is published, and so never holds them. The report of a job is its user's own, and shows a
value only if it has the form of absolute paths: what was put into a variable by mistake, such as a
token, stays a SHA-256.
"""

from __future__ import annotations

from envlock.runtime.collectors.environment_variables import hash_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, Mapping

START = "sha256:"
LONGEST = 300
"""Characters of a text."""
MOST = 20
"""Texts of one environment."""


def collect_texts(recorded: Mapping[str, object], environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the paths in variables by the SHA-256 that stands for each.

    Args:
        recorded: the section `environ` of facts.
        environ: the variables of the process.
    """
    texts: Dict[str, str] = {}
    for name, value in recorded.items():
        if not isinstance(value, str) or START not in value:
            continue
        for text in _iter_parts(environ.get(name, "")):
            key = hash_value(text)
            if key in value and is_text(key, text) and len(texts) < MOST:
                texts[key] = text
    return texts


def _iter_parts(value: str) -> Iterator[str]:
    """Yield what of a value can have been recorded as one SHA-256.

    That is all of it, its first entries, and the values of flags.
    """
    entries = value.split(":")
    for number in range(len(entries), max(0, len(entries) - MOST), -1):
        yield ":".join(entries[:number])
    for flag in value.split():
        yield flag.partition("=")[2]


def is_text(key: object, text: object) -> bool:
    """Return whether a text is one or several absolute paths, and that of its SHA-256."""
    if not isinstance(text, str) or not text.isprintable() or not 0 < len(text) <= LONGEST:
        return False
    if not all(part.startswith("/") for part in text.split(":") if part):
        return False
    return hash_value(text) == key


def restore_texts(message: str, texts: Mapping[str, str]) -> str:
    """Return a message in which paths stand for their SHA-256."""
    for key, text in texts.items():
        message = message.replace(key, text)
    return message
