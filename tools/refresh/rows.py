"""What a module returns, and rows of a TOML table, a line each: what is new is added, and nothing that stands there is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import tomllib

from envlock.runtime.release import parse_release

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """What a source says about one list of a table.

    Attributes:
        name: that of the list.
        rows: in any order; the columns that the source does not know are left out.
        key: what no two rows share.
        order: by what rows are sorted.
        grows: columns that may be filled in, or become larger: a number, a version, or a list with more entries.
        own: how the `source` of a row from here begins, where the source lists all: a row that it no longer has is reported.
    """

    name: str
    rows: list[dict[str, Any]]
    key: Callable[[Row], tuple[str, ...]]
    order: Callable[[Row], Any]
    own: str = ""
    grows: tuple[str, ...] = ()


@dataclass
class Found:
    """What a source says about one table.

    Attributes:
        lists: the rows, by list.
        through: the newest version that the source has; None where it does not tell, or is not what the table is about.
        decide: what a person must decide, as sentences.
        wrong: what contradicts the table in another way than a row can.
        moves_horizon: whether the whole table was checked by this.
    """

    lists: list[Asked] = field(default_factory=list)
    through: str | None = None
    decide: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    moves_horizon: bool = True


@dataclass
class Merged:
    """A table with what a source says, as sentences: `wrong` is what a person must settle before anything is believed."""

    text: str
    added: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def merge(text: str, asked: Asked) -> Merged:
    """Return a table with the rows of a source: new ones in their place, known ones as they stand.

    A row that says something else than the source stays, and is reported; but one whose
    source is the wheel of a release candidate is replaced.
    """
    start, end, lines = find_list(text, asked.name)
    rows = [parse_row(line) for line in lines]
    places = {asked.key(row): number for number, row in enumerate(rows)}
    merged = Merged(text)
    for row in sorted(asked.rows, key=asked.order):
        number = places.get(asked.key(row))
        if number is None:
            continue
        old = rows[number]
        differing = [name for name in row if name != "source" and old.get(name) != row[name]]
        if not differing:
            continue
        label = f"{asked.name} {' '.join(asked.key(row))}"
        is_larger = all(
            name in asked.grows and _has_grown(old.get(name), row[name]) for name in differing
        )
        if is_larger or re.search(r"-[\d.]+rc\d+-cp", old["source"]):
            rows[number] = {**old, **row}
            lines[number] = format_row(rows[number])
            merged.added.append(f"{label}: {_show(old, differing)} -> {_show(row, differing)}")
        else:
            said = f"{_show(old, differing)} ({old['source']}), but {row['source']} says {_show(row, differing)}"
            merged.wrong.append(f"{label}: {said}")
    fresh = [row for row in asked.rows if asked.key(row) not in places]
    for row in sorted(fresh, key=asked.order):
        place = next(
            (n for n, each in enumerate(rows) if asked.order(each) > asked.order(row)), len(rows)
        )
        rows.insert(place, row)
        lines.insert(place, format_row(row))
        merged.added.append(f"{asked.name} {' '.join(asked.key(row))}: new, {_show(row, row)}")
    told = {asked.key(row) for row in asked.rows}
    gone = [
        row
        for row in rows
        if asked.own and row["source"].startswith(asked.own) and asked.key(row) not in told
    ]
    if gone:
        shown = ", ".join(" ".join(asked.key(row)) for row in gone[:5])
        merged.wrong.append(
            f"{asked.name}: {len(gone)} rows of this source are not in it any more: {shown}"
        )
    merged.text = text[:start] + "".join(f"{line}\n" for line in lines) + text[end:]
    return merged


def columns(*names: str) -> Callable[[Row], tuple[str, ...]]:
    """Return a key of those columns."""
    return lambda row: tuple(row[name] for name in names)


def find_list(text: str, name: str) -> tuple[int, int, list[str]]:
    """Return where the lines of a list begin and end in a table, and the lines.

    Raises:
        ValueError: the table has no such list with a row a line.
    """
    match = re.search(rf"^{name} = \[\n((?:  \{{ .* \}},\n)*)\]\n", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"no list `{name}` with a row a line")
    return match.start(1), match.end(1), match[1].splitlines()


def parse_row(line: str) -> dict[str, Any]:
    """Return the row of a line."""
    row: dict[str, Any] = tomllib.loads(f"row = {line.strip().removesuffix(',')}")["row"]
    return row


def format_row(row: Row) -> str:
    """Return the line of a row."""
    cells = ", ".join(
        f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in row.items()
    )
    return f"  {{ {cells} }},"


def set_horizon(text: str, day: str, through: str | None) -> str:
    """Return a table that was checked on a day, through a version; None leaves that as it is."""
    old = tomllib.loads(text)["horizon"]
    new = {**old, "day": day, "through": through or old["through"]}
    line = f"horizon = {format_row(new).strip().removesuffix(',')}\n"
    return re.sub(r"^horizon = .*\n", lambda _: line, text, count=1, flags=re.MULTILINE)


def _has_grown(old: Any, new: Any) -> bool:
    if old is None:
        return True
    if isinstance(old, list) and isinstance(new, list):
        return set(old) < set(new)
    if isinstance(old, str) and isinstance(new, str):
        return parse_release(new) > parse_release(old)
    return isinstance(old, int) and isinstance(new, int) and new > old


def _show(row: Row, names: Iterable[str]) -> str:
    return ", ".join(f"{name} {_shorten(row.get(name))}" for name in names)


def _shorten(value: Any) -> str:
    if isinstance(value, list) and len(value) > 8:
        return f"{len(value)} entries"
    return json.dumps(value, ensure_ascii=False)
