"""What is said in two places and has to agree before anything else can be tested; each problem says what to do."""

from __future__ import annotations

import ast
import json
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from envlock.data import runtime_tables
from envlock.data.backends import load_backend_table
from envlock.data.canary_tables import load_canary_table
from envlock.data.lint_tables import load_lint_rules
from envlock.image.engines import ENGINES
from envlock.lock.fact_models import Facts
from envlock.reports import FORMATS
from envlock.runtime.collectors import COLLECTORS, take_snapshot
from envlock.runtime.lockfile import SECTIONS
from envlock.runtime.tables import FOLDER
from tests.machines import complete

ROOT = Path(__file__).resolve().parents[1]
PAGES = "docs/contributing"


@cache
def problems() -> list[str]:
    """Return what does not agree, one sentence each with the page that says what else the change needs."""
    sections = list(_sections())
    return [*sections, *(sections or _facts()), *_programs(), *_rules(), *_battery(), *_generated()][:10]


def _sections() -> Iterator[str]:
    places = {
        # What is loaded is seen in a process that imports, not collected.
        "COLLECTORS of envlock/runtime/collectors/__init__.py": [*COLLECTORS, "loaded"],
        "SECTIONS of envlock/runtime/lockfile.py": list(SECTIONS),
        "Facts of envlock/lock/fact_models.py": list(Facts.model_fields),
    }
    names = dict.fromkeys(name for found in places.values() for name in found)
    for name in names:
        for place in (place for place, found in places.items() if name not in found):
            yield f"the section `{name}` is missing in {place}: see {PAGES}/fact.md"
    if all(set(found) == set(names) for found in places.values()) and len(set(map(tuple, places.values()))) > 1:
        yield f"the sections stand in different orders in {', '.join(places)}"


def _facts() -> Iterator[str]:
    """Yield each fact that a collector finds on a machine of files, and that no model holds as it is."""
    with tempfile.TemporaryDirectory() as folder:
        found = take_snapshot(complete(Path(folder))).facts
    try:
        Facts.model_validate(found)
    except ValidationError as error:
        for each in error.errors():
            path = ".".join(str(part) for part in each["loc"])
            yield f"a collector returns `{path}`, envlock/lock/fact_models.py: {each['msg']}: see {PAGES}/fact.md"


def _programs() -> Iterator[str]:
    rooms = {
        "format": ({name: f"envlock.reports.{name}" for name in FORMATS}, "render"),
        "engine": (dict(ENGINES), "build"),
    }
    for kind, (modules, function) in rooms.items():
        for name, module in modules.items():
            if find_spec(module) is None:
                yield f"the {kind} `{name}` has no module {module}: see {PAGES}/{kind}.md"
            elif not callable(getattr(import_module(module), function, None)):
                yield f"{module} has no function `{function}`: see {PAGES}/{kind}.md"


def _rules() -> Iterator[str]:
    folder = ROOT / "envlock" / "linter" / "rules"
    named = {
        rule for file in folder.glob("*.py") for rule in re.findall('"(ENV[0-9]{3})"', file.read_text(encoding="utf-8"))
    }
    for rule in sorted({*load_lint_rules()} ^ named):
        place = "envlock/linter/rules/" if rule in load_lint_rules() else "envlock/data/lint.toml"
        yield f"the rule {rule} is missing in {place}: see {PAGES}/rule.md"


def _battery() -> Iterator[str]:
    known, computed = [row.name for row in load_canary_table().operation], battery()
    for name in sorted({*known} ^ {*computed}):
        place = "envlock/guest/battery.py" if name in known else "envlock/data/canary.toml"
        yield f"the operation `{name}` is missing in {place}: see {PAGES}/canary-operation.md"


def battery() -> list[str]:
    """Return the names of the battery's operations, read from its source: that needs no TensorFlow."""
    tree = ast.parse((ROOT / "envlock" / "guest" / "battery.py").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.endswith("_operations")]
    tables = [node.value for each in functions for node in each.body if isinstance(node, ast.Return)]
    keys = [ast.literal_eval(key) for table in tables if isinstance(table, ast.Dict) for key in table.keys if key]
    return [*keys, "train", "train_xla", "matmul_bf16"]


def _generated() -> Iterator[str]:
    """Yield the tables of the runtime half that are older than what they are made from."""
    rows: dict[str, list[Any]] = {
        "environ": [row.name for row in runtime_tables.load_variables()],
        "policy": [
            *(f"environ.{row.name}" for row in runtime_tables.load_variables()),
            *(row.path for row in load_backend_table().setting),
            *(row.path for row in runtime_tables.load_policy_table().fact),
        ],
    }
    for name, wanted in rows.items():
        found = json.loads((Path(FOLDER) / f"{name}.json").read_bytes())
        if [row.get("name") or row["path"] for row in found] != wanted:
            yield f"envlock/runtime/data/{name}.json is older than envlock/data/{name}.toml: run `make generate`"
