"""conda's environment.yml, the table of `conda list`, and a list of which the head is cut off. Pure.

A package of conda's need not be a distribution of Python, and can have another name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from envlock.lock.pastes.pip_lists import read_pins
from envlock.lock.pastes.statement import (
    NAME,
    VERSION,
    Line,
    Statement,
    join_cells,
    match_lines,
    state_package,
)
from envlock.runtime.distributions import normalise

_BEGIN = re.compile(r"dependencies:\s*", re.ASCII)
_ITEM = re.compile(
    rf"- +[\"']?(?:[\w/-]+::)?({NAME})(={{1,2}})({VERSION}?)(\.\*)?(?:=(\S+?))?[\"']?(?: *#.*)?",
    re.ASCII,
)
_PIP = re.compile(r"- +pip: *", re.ASCII)
_ROW = re.compile(rf"({NAME}|_\w+) +({VERSION})(?: +(\S+)(?: +(?:\[\S+\] +)?(\S+))?)?", re.ASCII)
# Markdown takes the # for a heading.
_HEAD = re.compile(r"(?:# )?(?:Name +Version +Build\b.*|packages in environment at .*)", re.ASCII)
_LOOSE_ROW = re.compile(
    rf"({NAME}|_\w+) +({VERSION})(?: +(?:\S*_\S*|\d+|<pip>)(?: +\S+)?)?", re.ASCII
)
_FEWEST = 3
"""The fewest rows, sorted by name, that are a list without its head."""
_FROM_PIP = ("pypi_0", "<pip>")


def read_environments(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what `dependencies:` of an environment.yml states."""
    begun, of_pip = False, None
    for number, text in lines:
        indent = len(text) - len(text.lstrip())
        if _BEGIN.fullmatch(text.strip()):
            begun = True
        elif begun and _PIP.fullmatch(text.strip()):
            of_pip = indent
        elif begun and text.strip():
            if of_pip is not None and indent > of_pip:
                yield from read_pins([(number, text.strip().removeprefix("-").strip(" \"'"))])
                continue
            of_pip = None
            begun = text.lstrip().startswith(("-", "#"))
            for _, found in match_lines(_ITEM, [(number, text)]):
                name, equals, version, star, build = found.groups()
                is_loose = star is not None or (equals == "=" and build is None)
                yield from _state(name, version, build, number, is_loose=is_loose)


def read_tables(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what the table of `conda list` states."""
    is_table = False
    for number, line in lines:
        text = join_cells(line)
        if _HEAD.fullmatch(text):
            is_table = True
        elif is_table and not set(text) <= set("-# "):
            found = _ROW.fullmatch(text)
            is_table = found is not None
            if found is not None:
                yield from _state(found[1], found[2], found[3], number, is_loose=False)


def read_loose_rows(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what the rows of a list state whose head was not pasted along. Other words have numbers,
    too: the rows are sorted, and they count where the other side has the package.
    """
    run: list[tuple[int, re.Match[str]]] = []
    for number, line in (*lines, (0, "")):
        found = _LOOSE_ROW.fullmatch(join_cells(line))
        if found is None or (run and _sort_name(run[-1][1]) >= _sort_name(found)):
            if len(run) >= _FEWEST:
                for row, each in run:
                    yield from _state(each[1], each[2], None, row, is_loose=False)
            run = []
        if found is not None:
            run.append((number, found))


def _sort_name(row: re.Match[str]) -> str:
    return normalise(row[1])


def _state(
    name: str, version: str, build: str | None, line: int, *, is_loose: bool
) -> Iterator[Statement]:
    """Yield what a package of conda's states."""
    if name == "python":
        yield Statement("python.version", version, line, is_loose)
    elif not name.startswith("_"):
        is_guess = build not in _FROM_PIP
        yield from state_package(name, version, line, is_loose=is_loose, is_guess=is_guess)
