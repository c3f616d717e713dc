"""The remedies that envlock prints, what each is, and the test that obeys it (remedies.toml explains the columns)."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from envlock.data.runtime_tables import load_policy_table, load_variables
from envlock.diagnosis.doctor_table import load_titles
from envlock.runtime.facts import matches
from envlock.runtime.tables import table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("remedies.toml")
NOTHING = "Nothing to do"
UNSAID = "remedies.toml does not say it"


class Remedy(BaseModel):
    """What is printed for one rule, fact, file or cause."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    of: Literal["doctor", "fact", "file", "diverge", "repeat"]
    name: str
    kind: Literal["command", "variable", "sentence", "person"]
    obeyed: str = ""
    outcome: Literal["green", "another", ""] = ""
    reason: str = ""

    @model_validator(mode="after")
    def _check(self) -> Remedy:
        is_obeyed = self.kind != "person"
        assert bool(self.obeyed) == bool(self.outcome) == is_obeyed, (
            f"{self.name}: what is obeyed has a test and an end"
        )
        assert bool(self.reason) != is_obeyed, f"{self.name}: what is not obeyed has a reason"
        return self


class Hints(BaseModel):
    """Hints of errors, by the file of the package that raises them; `person` has reasons and patterns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    obeyed: list[str]
    person: dict[str, list[str]]

    def group(self, files: Iterable[str]) -> dict[str, list[str]]:
        """Return the files that no test obeys, by their reasons; a file has the first reason of which a pattern fits."""
        patterns = {**self.person, UNSAID: ["*"]}
        found: dict[str, list[str]] = {reason: [] for reason in patterns}
        for file in files:
            if file not in self.obeyed:
                fits = (reason for reason in patterns if any(fnmatch(file, each) for each in patterns[reason]))
                found[next(fits)].append(file)
        return found


@cache
def load_hints() -> Hints:
    """Return what is said of the hints of errors."""
    return Hints.model_validate(_read()["hints"])


@cache
def load_remedies() -> list[Remedy]:
    """Return every row."""
    return [Remedy.model_validate(row) for row in _read()["remedy"]]


@cache
def load_elsewhere() -> Mapping[str, str]:
    """Return the facts that cannot be changed on a machine without a GPU, by pattern, each with the reason."""
    found: dict[str, str] = _read()["elsewhere"]
    return found


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def list_facts() -> list[str]:
    """Return the path of each row of the policies that can refuse and can be changed here."""
    # Data may differ, until a rule of the project lets it decide.
    rows = [row for row in load_policy_table().fact if row.strict != "ignore" or row.path == "data.**"]
    paths = [row.path for row in rows if not row.fix.startswith(NOTHING)]
    paths += [f"environ.{variable.name}" for variable in load_variables()]
    named = {pattern for row in load_remedies() if row.of == "fact" for pattern in row.name.split()}
    return [path for path in paths if path in named or not any(matches(each, path) for each in load_elsewhere())]


def list_files() -> list[str]:
    """Return the rules on files."""
    return [row["name"] for row in table("files")["kind"]]


def list_rules() -> list[str]:
    """Return the rules of the doctor."""
    return list(load_titles())


def list_hints() -> dict[str, list[str]]:
    """Return the hints that errors are raised with, by file of the package."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "envlock").rglob("*.py")):
        texts = sorted(_list_hints(ast.parse(file.read_text(encoding="utf-8"))))
        if texts:
            found[file.relative_to(ROOT / "envlock").as_posix()] = texts
    return found


def _list_hints(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from (ast.unparse(word.value) for word in node.keywords if word.arg == "hint")
