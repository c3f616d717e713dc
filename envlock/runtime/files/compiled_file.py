"""The source that a .pyc file is compiled from, according to its name. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(
    r"(?P<stem>.+)\.(?P<tag>(?!opt-)[a-z]+-?\d+[a-z]*(?:-pytest-[\w.]+?)?)"
    r"(?:\.opt-(?P<optimization>\w+))?\.pyc",
    re.DOTALL,
)
"""The forms of PEP 3147 and PEP 488, and that of the files that pytest has rewritten."""


class CompiledFile(NamedTuple):
    """A .pyc file by its name.

    Attributes:
        path: the file.
        source: the source that it should be compiled from.
        tag: the Python it is for; "" for an unknown level of optimization.
        optimization: 0, 1 or 2.
    """

    path: str
    source: str
    tag: str
    optimization: int


def parse_compiled_name(path: str) -> CompiledFile | None:
    """Return what the name of a file in a `__pycache__` says; None if the name has another form."""
    folder, _, name = path.rpartition("/")
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    source = f"{folder.rpartition('/')[0]}/{match['stem']}.py"
    level = match["optimization"] or "0"
    if level not in "012":
        return CompiledFile(path, source, "", 0)
    return CompiledFile(path, source, match["tag"], int(level))
