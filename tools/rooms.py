"""Draw which room imports which: docs/contributing/rooms.svg.

A room is a folder of envlock/. It stands above every room that it imports; an arrow that others imply is left out, so that
what is drawn is what a reader has to know. The facade and `__main__` are no rooms.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

WIDTH, HEIGHT = 128, 44  # of a room, in pixels
GAP, RISE = 26, 66  # between rooms of a floor, between floors
MARGIN = 20

STYLE = """
  text { font: 13px system-ui, sans-serif; text-anchor: middle; fill: #1f2328 }
  .lines { font-size: 11px; fill: #59636e }
  rect { fill: #f6f8fa; stroke: #59636e }
  path { fill: none; stroke: #59636e }
  marker path { fill: #59636e; stroke: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .lines { fill: #9198a1 }
    rect { fill: #151b23; stroke: #9198a1 } path { stroke: #9198a1 } marker path { fill: #9198a1 }
  }
"""


class Room(NamedTuple):
    """A folder: how many lines of Python it has, and the rooms that it imports."""

    lines: int
    uses: frozenset[str]


def read_rooms(package: Path) -> dict[str, Room]:
    """Return the rooms of a package by name."""
    names = {folder.name for folder in package.iterdir() if (folder / "__init__.py").exists()}
    rooms = {}
    for name in sorted(names):
        lines = 0
        uses: set[str] = set()
        for file in sorted((package / name).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            lines += len(text.splitlines())
            uses |= find_imports(text, package.name) & names - {name}
        rooms[name] = Room(lines, frozenset(uses))
    return rooms


def find_imports(text: str, package: str) -> set[str]:
    """Return the first name below the package of each of its modules that a file imports."""
    modules: set[str] = set()
    ahead: list[ast.AST] = [ast.parse(text)]
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            ahead += node.orelse  # an import that only a type checker reads does not count
            continue
        ahead += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == package:
            modules |= {f"{package}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            modules.add(node.module)
    return {module.split(".")[1] for module in modules if module.startswith(f"{package}.")}


def find_floors(rooms: Mapping[str, Room]) -> dict[str, int]:
    """Return the floor of each room: 0 for one that imports none, else one above the highest that it imports.

    Raises:
        ValueError: rooms import each other.
    """
    floors: dict[str, int] = {}
    while len(floors) < len(rooms):
        ready = [
            name
            for name, room in rooms.items()
            if name not in floors and room.uses <= floors.keys()
        ]
        if not ready:
            circle = sorted(rooms.keys() - floors.keys())
            raise ValueError(f"these rooms import each other: {', '.join(circle)}")
        found = {
            name: 1 + max((floors[used] for used in rooms[name].uses), default=-1) for name in ready
        }
        floors.update(found)
    return floors


def find_implied(rooms: Mapping[str, Room], name: str) -> set[str]:
    """Return what a room imports and what it uses imports too, directly or not."""
    implied: set[str] = set()
    ahead = [used for first in rooms[name].uses for used in rooms[first].uses]
    while ahead:
        used = ahead.pop()
        if used not in implied:
            implied.add(used)
            ahead += rooms[used].uses
    return implied


def draw_rooms(package: Path) -> str:
    """Return the drawing as SVG.

    Raises:
        ValueError: rooms import each other.
    """
    rooms = read_rooms(package)
    floors = find_floors(rooms)
    top = max(floors.values())
    rows = [[name for name in rooms if floors[name] == floor] for floor in range(top + 1)]
    widest = max(len(row) for row in rows)
    total = 2 * MARGIN + widest * WIDTH + (widest - 1) * GAP
    height = 2 * MARGIN + len(rows) * HEIGHT + top * RISE
    places = {}
    for floor, row in enumerate(rows):
        left = (total - len(row) * WIDTH - (len(row) - 1) * GAP) / 2
        y = height - MARGIN - HEIGHT - floor * (HEIGHT + RISE)
        for number, name in enumerate(row):
            places[name] = (left + number * (WIDTH + GAP), y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" role="img">',
        "<title>The rooms of envlock: an arrow leads from a room to one that it imports</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z"/></marker></defs>',
    ]
    for name, room in rooms.items():
        arrows = sorted(room.uses - find_implied(rooms, name))
        parts.extend(draw_arrow(places[name], places[used]) for used in arrows)
    for name, room in rooms.items():
        x, y = places[name]
        middle = x + WIDTH / 2
        parts.append(f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>')
        parts.append(f'<text x="{middle:g}" y="{y + 19:g}">{name}</text>')
        # Hundreds of lines, so that the drawing does not change with every commit.
        size = max(round(room.lines, -2), 100)
        parts.append(f'<text class="lines" x="{middle:g}" y="{y + 35:g}">{size:,} lines</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def draw_arrow(upper: tuple[float, float], lower: tuple[float, float]) -> str:
    """Return a curve from the bottom of one room to the top of another."""
    x1, y1 = upper[0] + WIDTH / 2, upper[1] + HEIGHT
    x2, y2 = lower[0] + WIDTH / 2, lower[1] - 2
    bend = RISE / 2
    return (
        f'<path marker-end="url(#head)" d="M{x1:g} {y1:g}'
        f'C{x1:g} {y1 + bend:g} {x2:g} {y2 - bend:g} {x2:g} {y2:g}"/>'
    )
