"""The paths whose SHA-256 is in the facts, for the report on ranks: two that differ are shown in
plain text. Pure.

A lockfile is published, so it never contains them. The report of a job belongs to its user, and
shows a value only if it has the form of absolute paths: a value that was put into a variable by
mistake, such as a token, is shown as a SHA-256.
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
    """Return the paths in variables, by the SHA-256 that stands for each.

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
    """Yield the parts of a value that can have been recorded as one SHA-256: the whole value, and
    the values of flags.
    """
    yield value
    for flag in value.split():
        yield flag.partition("=")[2]


def is_text(key: object, text: object) -> bool:
    """Return whether a text consists of absolute paths and has this SHA-256."""
    if not isinstance(text, str) or not text.isprintable() or not 0 < len(text) <= LONGEST:
        return False
    if not all(part.startswith("/") for part in text.split(":") if part):
        return False
    return hash_value(text) == key


def restore_texts(message: str, texts: Mapping[str, str]) -> str:
    """Return a message in which each SHA-256 is replaced by its path."""
    for key, text in texts.items():
        message = message.replace(key, text)
    return message
