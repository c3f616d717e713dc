"""Ask the sources of tables again: `python -m refresh [TABLE ...]` or `python -m refresh --check`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import tomllib
from pydantic import BaseModel, ValidationError

from envlock.data import compatibility, image_tables, runtime_tables
from envlock.lock.writer import write_atomically
from envlock.runtime.errors import EnvlockError
from refresh import cards, nvidia, python_images, standalone, tensorflow, wheel
from refresh.rows import Found, merge, set_horizon
from refresh.web import MIRROR, Web

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "envlock" / "data"
Ask = Callable[[Web, dict[str, Any], str], Found]
MODULES: dict[str, tuple[str, Ask, type[BaseModel] | None]] = {
    "tensorflow": ("tensorflow_builds", tensorflow.ask_builds, image_tables.BuildsTable),
    "needs": ("compatibility", tensorflow.ask_needs, compatibility.CompatibilityTable),
    "code": ("tensorflow_builds", wheel.ask_code, image_tables.BuildsTable),
    "isa": ("cuda", wheel.ask_isa, runtime_tables.CudaTable),
    "ptx": ("compatibility", wheel.ask_ptx, compatibility.CompatibilityTable),
    "variables": ("environ", wheel.ask_names, None),
    "flags": ("determinism_variables", wheel.ask_names, None),
    "standalone": ("standalone_pythons", standalone.ask, image_tables.StandaloneTable),
    "slim": ("python_images", python_images.ask_slim, image_tables.PythonImagesTable),
    "systems": ("python_images", python_images.ask_systems, image_tables.PythonImagesTable),
    "images": ("cuda_images", nvidia.ask_images, image_tables.CudaImagesTable),
    "cards": ("cuda_images", cards.ask, image_tables.CudaImagesTable),
    "drivers": ("cuda_images", nvidia.ask_drivers, image_tables.CudaImagesTable),
    "digests": ("ngc_tensorflow", nvidia.ask_digests, image_tables.NgcTable),
}
"""What can be asked: its table, who asks, and what a row must be where rows are written."""
LIMIT = 60
"""Days after which a table is too old; NVIDIA and TensorFlow release something every month."""
SHOWN = 40
"""Rows of a table that are printed: a pull request has to be read in minutes."""


def main(arguments: list[str]) -> int:
    """Refresh tables, or say how old they are; return the exit code."""
    parser = argparse.ArgumentParser(prog="make refresh", description=__doc__)
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", help=f"of {', '.join(MODULES)}; all when not given"
    )
    parser.add_argument("--check", action="store_true", help="only say how old each table is")
    parser.add_argument(
        "--day",
        type=date.fromisoformat,
        default=datetime.now(tz=UTC).date(),
        help="on which the sources are as they are asked; today when not given",
    )
    parser.add_argument("--data", type=Path, default=DATA, help=argparse.SUPPRESS)
    parser.add_argument("--kept", type=Path, default=ROOT / ".refresh", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    unknown = [name for name in options.tables if name not in MODULES]
    if unknown:
        parser.error(f"no module asks for {', '.join(unknown)}; there are {', '.join(MODULES)}")
    if options.check:
        return check_ages(options.data, options.day)
    web = Web(options.kept, os.environ.get(MIRROR))
    wrong, decide = [], []
    for name in options.tables or MODULES:
        done = refresh(name, web, options.data, str(options.day))
        wrong += [f"{name}: {each}" for each in done[0]]
        decide += [f"{name}: {each}" for each in done[1]]
    for title, sentences in (
        ("Not as a source says, or not answered", wrong),
        ("For a person to decide", decide),
    ):
        if sentences:
            print(f"\n## {title}\n", *sentences, sep="\n- ")
    return 1 if wrong else 0


def refresh(name: str, web: Web, data: Path, day: str) -> tuple[list[str], list[str]]:
    """Write what a source says into its table; return what is wrong, and what is to be decided."""
    stem, ask, model = MODULES[name]
    file = data / f"{stem}.toml"
    before = file.read_text(encoding="utf-8")
    try:
        found = ask(web, tomllib.loads(before), day)
        text = before
        added: list[str] = []
        wrong = found.wrong
        for asked in found.lists:
            merged = merge(text, asked)
            text, added, wrong = merged.text, [*added, *merged.added], [*wrong, *merged.wrong]
        if found.moves_horizon and not wrong:
            text = set_horizon(text, day, found.through)
        if model is not None:
            model.model_validate(tomllib.loads(text))
    except EnvlockError as error:
        return [f"{error.message}; nothing was changed"], []
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        return [
            f"the source says what no row can be ({place}: {first['msg']}); nothing was changed"
        ], []
    if text != before:
        write_atomically(file, text.encode(), "table")
    horizon = tomllib.loads(text)["horizon"]
    print(
        f"- {name}: {len(added)} rows new or longer; {file.name} is checked to {horizon['through']} on {horizon['day']}"
    )
    for each in added[:SHOWN]:
        print(f"  - {each}")
    if added[SHOWN:]:
        print(f"  - and {len(added[SHOWN:])} more, which the difference shows")
    return wrong, found.decide


def check_ages(data: Path, today: date) -> int:
    """Print how old each table is, the oldest first; return 1 if one is too old."""
    ages = {}
    for file in data.glob("*.toml"):
        horizon = tomllib.loads(file.read_text(encoding="utf-8")).get("horizon")
        if horizon is not None:
            ages[file.stem] = ((today - date.fromisoformat(horizon["day"])).days, horizon)
    for name, (age, horizon) in sorted(ages.items(), key=lambda item: (-item[1][0], item[0])):
        late = f", more than {LIMIT}" if age > LIMIT else ""
        print(f"{age:4} days{late}: {name}, {horizon['of']} {horizon['through']}")
    return 1 if any(age > LIMIT for age, _ in ages.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
