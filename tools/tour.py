"""The line numbers in docs/contributing/tour.md: each link is to the line where what its sentence names begins."""

from __future__ import annotations

import ast
import re
from pathlib import Path

LINK = re.compile(
    r"`(?P<name>\w+)` \[(?P<text>\w+)\]\((?P<up>[./]+)(?P<path>envlock/[\w/]+\.py)#\w+\)"
)
"""A name in backquotes, and a word that links to its file: to the line, or to any word until the line is known."""


def number_links(page: str, root: Path) -> str:
    """Return a page whose links have the line of the name before them.

    Raises:
        ValueError: a name is not defined at the top of the file that is linked.
    """

    def replace(link: re.Match[str]) -> str:
        line = find_line(root / link["path"], link["name"])
        if line is None:
            raise ValueError(f"docs/contributing/tour.md: {link['path']} defines no {link['name']}")
        return f"`{link['name']}` [{link['text']}]({link['up']}{link['path']}#L{line})"

    return LINK.sub(replace, page)


def find_line(file: Path, name: str) -> int | None:
    """Return the line where a function, a class or a value of a module begins; None if the module
    does not have it.
    """
    if not file.exists():
        return None
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node.lineno
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node.lineno
    return None
