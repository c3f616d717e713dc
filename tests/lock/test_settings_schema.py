"""The schema of `[tool.envlock]` takes what the settings take, and refuses what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tomllib
from jsonschema import Draft7Validator

from envlock import data
from envlock.lock.settings import load
from envlock.runtime.errors import UsageError

SCHEMA = json.loads(Path(data.__file__).with_name("settings.schema.json").read_bytes())
GOOD = {
    "lock": 'lock = "gpu.lock"',
    "policy": 'policy = "same-arch"',
    "policy as a table": 'policy = { name = "bits", "cpu.flags" = "superset", "packages.*.version" = "ignore" }',
    "policy by dots": 'policy.cpu.flags = "ignore"',
    "entry": 'entry = ["train.py"]',
    "data": 'data = ["data"]',
    "lint": 'lint = { select = ["ENV2"], ignore = [], exclude = ["x"], per-file-ignores = { "tests/*" = ["ENV205"] } }',
    "container": """container = { copy = ["a.py"], exclude = [], workdir = "/app", user = "1000", command = ["python"],
 environ = { A = "b" }, apt = ["libgl1"], apt-sources = [] }""".replace("\n", ""),
}
BAD = [
    "other = 1",
    "lock = 3",
    'policy = "lax"',
    'policy."cpu.flags" = "perhaps"',
    'entry = "train.py"',
    'data = ["a b"]',
    "lint.pick = []",
    'lint.per-file-ignores = ["x"]',
    "container.image = []",
    'container.copy = "a.py"',
]


def read(folder: Path, text: str) -> list[str]:
    """Return what the schema says of a pyproject.toml, which is written."""
    document = f"[tool.envlock]\n{text}\n"
    (folder / "pyproject.toml").write_text(document)
    settings = tomllib.loads(document)["tool"]["envlock"]
    return [error.message for error in Draft7Validator(SCHEMA).iter_errors(settings)]


def test_it_is_a_schema_of_every_setting(tmp_path: Path) -> None:
    Draft7Validator.check_schema(SCHEMA)
    (tmp_path / "pyproject.toml").write_text("[tool.envlock]\nother = 1\n")
    with pytest.raises(UsageError) as raised:
        load(tmp_path)
    assert (
        raised.value.hint == f"use only {', '.join(f'`{name}`' for name in sorted(SCHEMA['properties'], key=_place))}"
    )


def _place(name: str) -> int:
    return ("lock", "policy", "entry", "lint", "container", "data").index(name)


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_what_is_a_setting_is_taken(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == []
    load(tmp_path)


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_setting_is_refused(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) != []
    with pytest.raises(UsageError):
        load(tmp_path)
