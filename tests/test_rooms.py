"""The drawing of the rooms: who stands on whom, and which arrows are drawn."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))
from rooms import draw_rooms, find_floors, find_implied, read_rooms  # noqa: E402


def plant(folder: Path, **rooms: str) -> Path:
    """Return a package with these rooms, each with one module."""
    package = folder / "house"
    for name, text in rooms.items():
        (package / name).mkdir(parents=True)
        (package / name / "__init__.py").write_text("")
        (package / name / "module.py").write_text(text)
    return package


def test_a_room_stands_on_what_it_imports(tmp_path: Path) -> None:
    cli = "import house.work.module\nfrom house import ground\n"
    work = "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    import house.cli\ndef f():\n    from house.ground import module\n"
    rooms = read_rooms(plant(tmp_path, cli=cli, work=work, ground="import os\n"))
    assert {name: sorted(room.uses) for name, room in rooms.items()} == {
        "cli": ["ground", "work"],
        "work": ["ground"],
        "ground": [],
    }
    assert find_floors(rooms) == {"ground": 0, "work": 1, "cli": 2}
    assert find_implied(rooms, "cli") == {"ground"}, "no arrow from the command line to the ground"
    drawn = draw_rooms(tmp_path / "house")
    assert (drawn.count("<rect"), drawn.count("marker-end")) == (3, 2)


def test_a_circle_cannot_be_drawn(tmp_path: Path) -> None:
    package = plant(tmp_path, one="import house.two\n", two="import house.one\n", ground="")
    with pytest.raises(ValueError, match=r"^these rooms import each other: one, two$"):
        draw_rooms(package)
