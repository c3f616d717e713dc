"""Lines in the colours of a terminal, by rich: most output goes without, and does without loading it."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from rich.console import Console
from rich.text import Text


def color_lines(lines: Iterable[tuple[str, str]]) -> str:
    """Return (style, line) pairs as one text; the styles are rich's."""
    out = StringIO()
    console = Console(
        file=out, force_terminal=True, color_system="standard", highlight=False, soft_wrap=True
    )
    for style, line in lines:
        console.print(Text(line, style=style))
    return out.getvalue().rstrip("\n")
