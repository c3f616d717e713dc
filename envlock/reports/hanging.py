"""Long lines of a report in a terminal, each part below the first word of its sentence. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

NARROW = 40
"""Columns below which wrapped text is harder to read than what the terminal makes of long lines."""
_START = re.compile(r" *(?:[x?!i] |why: |fix: )?")
"""The indent of a line and what its sentence stands after: a mark, or the word for what follows."""


def hang_lines(lines: Iterable[tuple[str, str]], width: int) -> Iterator[tuple[str, str]]:
    """Yield (style, line) pairs in which no line is longer than a width, as far as words allow.

    Tables, which have columns, stay as they are; so does everything where the terminal is narrow.
    """
    for style, line in lines:
        if len(line) <= width or width < NARROW or _is_table(line):
            yield style, line
            continue
        start = _START.match(line)
        indent = " " * start.end() if start is not None else ""
        # A path or a value is copied whole, so no word is broken.
        parts = textwrap.wrap(
            line,
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
            drop_whitespace=True,
        )
        for part in parts:
            yield style, part


def _is_table(line: str) -> bool:
    """Return whether blanks within a line put it into columns."""
    return "  " in line.strip()
