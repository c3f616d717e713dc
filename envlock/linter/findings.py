"""Findings: events with one remedy, joined by file, with all their lines."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from envlock.linter.events import Event, is_shown
from envlock.linter.module import UNSURE
from envlock.linter.notebooks import Cells
from envlock.linter.project import File, Project
from envlock.runtime.report import Severity

ORDERS = "ENV3"
"""How the rules begin that matter to programs with data only."""
MOST_LINES = 60  # that one message names: it stays readable


@dataclass(frozen=True)
class Found:
    """What a rule found: the file, the first place, the message, and how many other places it has."""

    rule: str
    file: File
    node: ast.AST
    line: int
    message: str
    fix: str | None = None
    part: str = ""
    severity: Severity | None = None
    others: int = 0


def join(
    project: Project,
    rule: str,
    events: Iterable[Event],
    message: str,
    fix: str | None = None,
    *,
    first: str = "",
    part: str = "",
) -> Iterator[Found]:
    """Yield one finding of a file and part: at its first event, with the lines of the others.

    The first one is of the kind `first`, if one is.

    `{name}` in the message is what the first one is called, `{more}` where the others stand.
    """
    groups: dict[tuple[File, str], list[Event]] = defaultdict(list)
    for event in events:
        where = project.find_part(event.scope) or part
        if not where and rule >= ORDERS:
            where = project.find_worth(event.file)
        if not where and event.kind == "draw" and is_shown(event):
            where = UNSURE
        groups[event.file, where].append(event)
    for (file, where), found in groups.items():
        found.sort(key=lambda each: (first != "" and each.kind != first, each.line))
        top = found[0]
        text = message.replace("{name}", top.name.removeprefix("."))
        others, more = describe_more(top, found)
        text = text.replace("{more}", more)
        yield Found(rule, file, top.node, top.line, text, fix, where, others=others)


def describe_more(first: Event, events: Iterable[Event]) -> tuple[int, str]:
    """Return how many other places one cause has, and where they stand: those of other files with their paths."""
    by_file: dict[File, set[int]] = defaultdict(set)
    for event in events:
        by_file[event.file] |= event.lines
    by_file[first.file] -= {first.line}
    number = sum(map(len, by_file.values()))
    told: list[str] = []
    for file in sorted(by_file, key=lambda each: (each is not first.file, each.path)):
        lines = sorted(by_file[file])
        if not 0 < len(lines) <= MOST_LINES:
            continue
        said = ", ".join(map(str, lines))
        if file.module.cells is not None:
            said = _list_by_cell(file.module.cells, lines)
        elif file is first.file:
            said = f"line{'s' if len(lines) > 1 else ''} {said}"
        told.append(said if file is first.file else f"{file.path}: {said}")
    places = f"({'; '.join(told)})" if told else "below"
    return number, f", and {number} more {places}" if number else ""


def _list_by_cell(cells: Cells, lines: Iterable[int]) -> str:
    """Return lines of a notebook's code as its reader counts them: `cell 4: 10, 11; cell 7: 3`."""
    by_cell: dict[int, list[str]] = {}
    for line in lines:
        cell, line_of_cell = cells.place(line)
        by_cell.setdefault(cell, []).append(str(line_of_cell))
    return "; ".join(f"cell {cell}: {', '.join(found)}" for cell, found in by_cell.items())
