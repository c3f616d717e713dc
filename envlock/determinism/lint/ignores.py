"""`# envlock: ignore[ENV203] why`: on the line of the finding, or alone on the line above it."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

MARK = re.compile(r"#\s*envlock:\s*ignore\b\s*(?:\[([^\]]*)\])?\s*(.*)$")


@dataclass
class Ignore:
    """An ignore comment.

    Attributes:
        line, column: where it stands; `covers` are the lines it is for.
        rules: what it names.
        problem: why it ignores nothing, or None.
        used: the rules of it for which there was a finding.
    """

    line: int
    column: int
    covers: tuple[int, ...]
    rules: tuple[str, ...]
    problem: str | None
    used: set[str] = field(default_factory=set)


def ignores(text: str, known: Iterable[str]) -> list[Ignore]:
    """Return the ignore comments of a file; text in strings is none."""
    if "envlock:" not in text:
        return []
    rules = frozenset(known)
    marked = ((token, MARK.search(token.string)) for token in _comments(text))
    return [_ignore(token, found, rules) for token, found in marked if found is not None]


def _comments(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token
    except (tokenize.TokenError, SyntaxError):  # the parser took it, so that all comments before are right
        return


def _ignore(token: tokenize.TokenInfo, found: re.Match[str], known: frozenset[str]) -> Ignore:
    line, column = token.start
    names = tuple(name for name in re.split(r"[\s,]+", (found[1] or "").strip()) if name)
    alone = not token.line[:column].strip()
    covers = (line, line + 1) if alone else (line,)
    return Ignore(line, column + 1, covers, names, _problem(names, found[2], known))


def _problem(names: tuple[str, ...], reason: str, known: frozenset[str]) -> str | None:
    if not names:
        return "it names no rule"
    unknown = [name for name in names if name not in known]
    if unknown:
        return f"there is no rule {', '.join(unknown)}"
    return None if re.search(r"\w", reason) else "it gives no reason"
