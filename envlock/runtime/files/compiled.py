"""Which source a .pyc file is compiled from, by its name. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(
    r"(?P<stem>.+)\.(?P<tag>(?!opt-)[a-z]+-?\d+[a-z]*(?:-pytest-[\w.]+?)?)(?:\.opt-(?P<optimization>\w+))?\.pyc",
    re.DOTALL,
)
"""As PEP 3147 and PEP 488 say, and as pytest names what it has rewritten."""


class Compiled(NamedTuple):
    """A .pyc file, the source it should hold the code of, for which Python it is, and how far that was optimized."""

    path: str
    source: str
    tag: str
    optimization: int


def compiled(path: str) -> Compiled | None:
    """Return what a file in a `__pycache__` is compiled from; None where its name says nothing of it."""
    folder, _, name = path.rpartition("/")
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    source = f"{folder.rpartition('/')[0]}/{match['stem']}.py"
    level = match["optimization"] or "0"
    return Compiled(
        path, source, match["tag"] if level in "012" else "", int(level) if level in "012" else 0
    )
