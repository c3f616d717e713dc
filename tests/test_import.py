"""What importing and asserting cost in modules: the facade imports nothing, the assertion almost nothing."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomllib

import envlock as facade
from tests.machines import distribution

pytestmark = pytest.mark.processes

FORBIDDEN = {
    *("pydantic", "pydantic_core", "typer", "click", "rich", "docker", "jinja2", "numpy", "tensorflow", "pynvml"),
    *("importlib.metadata", "json", "re", "dataclasses", "typing", "pathlib", "subprocess", "email", "zipfile"),
}
ISOLATED = [sys.executable, "-S", "-E", "-c"]
"""Without `site`, whose .pth files import what they like, and without anybody's PYTHONPATH."""


def python(code: str, *args: str) -> Any:
    """Run code that prints one JSON value in a fresh interpreter that has nothing but this envlock."""
    parent = str(Path(facade.__file__).parents[1])
    prelude = f"import sys; sys.path.append({parent!r}); before = set(sys.modules)\n"
    printing = "\nimport json; print(json.dumps(sorted(gained)))"
    argv = [*ISOLATED, prelude + code + printing, *args]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_import_adds_the_facade_and_nothing_else() -> None:
    assert python("import envlock\ngained = set(sys.modules) - before") == ["envlock"]


def test_the_program_imports_nothing_before_an_interrupt_is_taken_care_of() -> None:
    """Until then Ctrl-C shows a traceback of Python's. `os` is loaded by any start with `site`; `gc` is built in."""
    code = "import os; before = set(sys.modules)\nimport envlock.__main__\ngained = set(sys.modules) - before"
    assert python(code) == ["envlock", "envlock.__main__", "gc"]


def test_assert_locked_imports_nothing_dear(tmp_path: Path) -> None:
    lock = tmp_path / "envlock.lock"
    distribution(tmp_path, "numpy", "1.26.4")
    beside = f"sys.path.append({str(tmp_path)!r})\n"
    # The live facts, written by the same kind of process, as the authoring half is not importable here.
    take = """
from envlock.runtime.collectors import take_snapshot
found = take_snapshot()
import json
document = {"lock_version": 1, "created_by": "a test", "facts": found.facts, "unavailable": found.unavailable,
            "policy": {"name": "strict", "overrides": {}}}
open(sys.argv[1], "w").write(json.dumps(document))
gained = []
"""
    assert python(beside + take, str(lock)) == []
    check = """
import envlock
assert envlock.assert_locked(sys.argv[1]).match
gained = set(sys.modules) - before
"""
    gained = set(python(beside + check, str(lock)))
    assert "envlock.runtime.assertion" in gained  # or the next line could not fail
    assert gained & FORBIDDEN == set()
    assert "envlock.runtime.causes" not in gained  # only a refusal needs it


def test_every_public_name_is_there() -> None:
    places = {name: importlib.import_module(module) for name, module in facade._EXPORTS.items()}
    assert {name for name, module in places.items() if getattr(facade, name) is not getattr(module, name)} == set()


def test_type_checkers_see_the_same_names_from_the_same_places() -> None:
    tree = ast.parse(Path(facade.__file__).read_text(encoding="utf-8"))
    guard = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: node.module for node in guard.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == facade._EXPORTS


def test_all_is_what_can_be_asked_for() -> None:
    assert facade.__all__ == sorted(facade._EXPORTS)
    assert dir(facade) == sorted(facade.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'envlock' has no attribute 'assert_lock'$"):
        getattr(facade, "assert_lock")  # noqa: B009 (as an attribute, mypy refuses it)


def test_without_the_authoring_half_its_names_say_what_to_install() -> None:
    code = """
import envlock
gained = []
try:
    envlock.capture
except ImportError as error:
    gained = [str(error)]
"""
    assert python(code) == [
        'envlock.capture needs pydantic; install it here, in a checkout of envlock: pip install ".[notebook]"'
    ]


def test_an_editable_install_costs_no_import_of_urllib(tmp_path: Path) -> None:
    """And none of the thread pool that reads the files of other packages."""
    (tmp_path / "mine-1.0.dist-info").mkdir()
    (tmp_path / "mine-1.0.dist-info" / "METADATA").touch()
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "mine.py").write_text("x = 1\n", encoding="utf-8")
    origin = json.dumps({"url": f"file://{tmp_path}/source", "dir_info": {"editable": True}})
    (tmp_path / "mine-1.0.dist-info" / "direct_url.json").write_text(origin, encoding="utf-8")
    code = (
        f"import sys; sys.path.append({str(tmp_path)!r})\n"
        "from envlock.runtime.collectors import take_snapshot\n"
        "mine = take_snapshot().facts['packages']['mine']\n"
        "print(mine['origin']['editable'], 'source' in mine, {'re', 'concurrent.futures'} & set(sys.modules))"
    )
    root = Path(facade.__file__).parents[1]
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert ("True True set()\n", "") == (done.stdout, done.stderr)


IN_A_NOTEBOOK = {"diff", "diverge", "doctor", "lint", "lint_dataset", "record", "repeat", "save", "verify"}
"""What takes an object of a notebook, or looks at its environment."""


def test_the_extra_for_notebooks_is_enough_for_what_a_notebook_has() -> None:
    """It is installed beside TensorFlow, so it has to stay small."""
    project = tomllib.loads((Path(facade.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    allowed = {re.split("[^a-z]", requirement)[0] for requirement in extras["notebook"]}
    assert allowed == {"packaging", "pydantic", "tomli"}
    modules = {"docker", "jinja2", "requests", "rich", "tomlkit", "tomli_w", "typer", "yaml", "pynvml"}
    code = f"""
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refuse())
sys.path += {[path for path in sys.path if path.endswith("site-packages")]!r}
import envlock
gained = []
for name in envlock._EXPORTS:
    try:
        getattr(envlock, name)
    except ImportError:
        gained.append(name)
"""
    refused = set(python(code))
    assert refused & IN_A_NOTEBOOK == set()
    assert "build" in refused  # so the refusal works
