"""Which source a .pyc file is compiled from, by its name. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(
    r"(?P<stem>.+)\.(?P<tag>(?!opt-)[a-z]+-?\d+[a-z]*(?:-pytest-[\w.]+?)?)"
    r"(?:\.opt-(?P<optimization>\w+))?\.pyc",
    re.DOTALL,
)
"""As PEP 3147 and PEP 488 say, and as pytest names what it has rewritten."""


class CompiledFile(NamedTuple):
    """A .pyc file by its name.

    Attributes:
        path: the file.
        source: the source whose code it should hold.
        tag: the Python it is for; "" for an unknown level of optimization.
        optimization: 0, 1 or 2.
    """

    path: str
    source: str
    tag: str
    optimization: int


def parse_compiled_name(path: str) -> CompiledFile | None:
    """Return what the name of a file in a `__pycache__` says; None for a name without that form."""
    folder, _, name = path.rpartition("/")
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    source = f"{folder.rpartition('/')[0]}/{match['stem']}.py"
    level = match["optimization"] or "0"
    if level not in "012":
        return CompiledFile(path, source, "", 0)
    return CompiledFile(path, source, match["tag"], int(level))
