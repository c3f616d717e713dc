"""The code of a notebook: its cells one after the other, without what only IPython understands.

A notebook is a JSON file: https://nbformat.readthedocs.io/en/latest/format_description.html
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

SUFFIX = ".ipynb"
PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")
"""Magics of a cell whose other lines are Python; https://ipython.readthedocs.io/en/stable/interactive/magics.html"""
# `%matplotlib inline`, `!pip install x` and `?help`; help that is asked for at the end (`Dense??`);
# and what IPython runs as a magic without its sign.
MAGIC = re.compile(r"^(\s*)(?:[%!?].*|[^#'\"]*\?\??|(?:pip|conda|cd|ls|mkdir|cp|mv|rm) .*)$")
# files = !ls
ASSIGNED = re.compile(r"^(\s*[\w, ]+=\s*)[!%].*$")


@dataclass(frozen=True)
class Cells:
    """Where the cells of a notebook begin in its code: `numbers` counts all cells from 1, `starts`
    lines from 1.
    """

    numbers: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()

    def place(self, line: int) -> tuple[int, int]:
        """Return the cell that a line of the code stands in, and the line there."""
        at = max(bisect_right(self.starts, line) - 1, 0)
        return self.numbers[at], line - self.starts[at] + 1


def code(text: str) -> tuple[str, Cells]:
    """Return the Python of a notebook and where its cells begin; none where it is in another
    language.

    Raises:
        ValueError: it is not a notebook.
    """
    try:
        notebook = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise ValueError("it has no cells")
    if _get_language(notebook) != "python":
        return "", Cells()
    lines: list[str] = []
    numbers: list[int] = []
    starts: list[int] = []
    for number, cell in enumerate(cells, 1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            numbers.append(number)
            starts.append(len(lines) + 1)
            lines += _translate_cell(_join_source(cell)).split("\n")
    return "\n".join(lines), Cells(tuple(numbers), tuple(starts))


def _get_language(notebook: dict[str, object]) -> str:
    """Return the language of a notebook: that of its kernel, or of the one that ran it last."""
    metadata = notebook.get("metadata")
    if not isinstance(metadata, dict):
        return "python"
    for key, word in (("kernelspec", "language"), ("language_info", "name")):
        about = metadata.get(key)
        language = about.get(word) if isinstance(about, dict) else None
        if language:
            return str(language).lower()
    return "python"


def _join_source(cell: dict[str, object]) -> str:
    source = cell.get("source")
    parts = source if isinstance(source, list) else [source]
    return re.sub("\r\n?", "\n", "".join(part for part in parts if isinstance(part, str)))


def _translate_cell(source: str) -> str:
    """Return a cell with as many lines, without magics; a cell of another language is empty.

    As IPython does, it takes the indentation of the first line off every line.
    """
    indent = re.match(r"[ \t]*", source.lstrip("\n"))
    if indent is not None and indent[0]:
        source = re.sub(rf"^{indent[0]}", "", source, flags=re.MULTILINE)
    # First as it stands: a line of Python, such as `a % b` after a line break, may look like a
    # magic.
    if _is_python(source):
        return source
    lines = source.split("\n")
    first = source.strip().partition("\n")[0]
    if first.startswith("%%") and first.split()[0] not in PYTHON_MAGICS:
        return "\n" * (len(lines) - 1)
    translated: list[str] = []
    for line in _join_commands(lines):
        # `pass`, as a magic may be all that a block holds.
        line = MAGIC.sub(r"\1pass", line)
        translated.append(ASSIGNED.sub(r"\1None", line))
    return "\n".join(translated)


def _join_commands(lines: list[str]) -> Iterator[str]:
    """Yield as many lines, those that a command of the shell goes on in after a backslash empty."""
    goes_on = False
    for line in lines:
        if goes_on:
            yield ""
        else:
            yield line
        goes_on = line.endswith("\\") and (goes_on or line.lstrip().startswith("!"))


def _is_python(source: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
