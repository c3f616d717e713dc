"""Compare a text with its golden file so that a failure names the rows that differ, not two whole files."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path

MOST = 12
"""Rows that a failure lists."""

BEFORE, WIDTH = 30, 110
"""Characters of a row that are shown: so many before the first one that differs, and so many in all."""


def assert_as_golden(found: str, file: Path) -> None:
    """Fail with the rows in which a text differs from its golden file."""
    differences = list_differences(found, file.read_text(encoding="utf-8"))
    more = len(differences) - MOST
    shown = differences[:MOST]
    if more > 0:
        shown.append(f"and {more} more")
    assert not shown, "\n".join([f"{file.name} differs:", *shown])


def list_differences(found: str, golden: str) -> list[str]:
    """Return each row that differs, with the rows that it belongs to and the place where it begins to differ."""
    if found == golden:
        return []
    old, new = golden.splitlines(), found.splitlines()
    lines = []
    for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for step in range(max(end - start, new_end - new_start)):
            before = after = None
            if start + step < end:
                before = old[start + step]
            if new_start + step < new_end:
                after = new[new_start + step]
            if before is not None:
                name = name_row(old, start + step)
            else:
                name = name_row(new, new_start + step)
            lines.append(f"{name}: {show_difference(before, after)}")
    return lines or ["the line ends differ"]


def name_row(rows: list[str], number: int) -> str:
    """Return the number of a row, counted from 1, and the start of each row that it is indented below."""
    depth = measure_indent(rows[number])
    above: list[str] = []
    for row in reversed(rows[:number]):
        if measure_indent(row) < depth and any(character.isalnum() for character in row):
            above.insert(0, row.strip()[:60])
            depth = measure_indent(row)
    return f"row {number + 1}" + "".join(f", {row}" for row in above)


def measure_indent(row: str) -> int:
    """Return the number of blanks at the start of a row."""
    return len(row) - len(row.lstrip(" "))


def show_difference(before: str | None, after: str | None) -> str:
    """Return two versions of a row from shortly before the first character that differs."""
    if before is None:
        return f"new: {(after or '').strip()[:WIDTH]!r}"
    if after is None:
        return f"gone: {before.strip()[:WIDTH]!r}"
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    start = max(0, same - BEFORE)
    return f"golden {before[start : start + WIDTH]!r}, found {after[start : start + WIDTH]!r}"
