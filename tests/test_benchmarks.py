"""The measurements: what they use of envlock is there, also in the programs that they send to other interpreters as text."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "benchmarks/labels/programs"
"""What `diverge` is tried on: they need TensorFlow, and nothing of envlock."""
FILES = sorted(file for file in (ROOT / "benchmarks").rglob("*.py") if file.parent != PROGRAMS)
OURS = ("benchmarks", "envlock", "tests", "tools")
OF_OTHERS = ("_exit", "_jit_compile")
"""Names that look private: of `os`, and of Keras in versions that have no public one."""


@pytest.fixture(autouse=True)
def _imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a measurement import its neighbours, and leave no trace of it."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    before = set(sys.modules)
    yield
    # Not what else was imported: a module that is imported twice is two modules.
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(ROOT / "benchmarks")):
            del sys.modules[name]


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmark_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def programs(tree: ast.Module) -> Iterator[ast.Module]:
    """Yield a file, and the programs that stand in it as text; what is filled in later counts as a name."""
    yield tree
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "_" for part in node.values)
        if re.search(r"\b(from|import) (envlock|tests)\b", text) is None:
            continue
        try:
            yield ast.parse(text)
        except SyntaxError:
            # A sentence, or half of a line that is put together.
            if "\n" in text:
                raise


def missing(program: ast.Module) -> Iterator[str]:
    """Yield what a program uses of this repository that is not there, and private names of other objects."""
    imported = dict(imports(program))
    modules = {}
    for (name, statement), found in imported.items():
        if found is None:
            yield statement
        elif isinstance(found, ModuleType):
            modules[name] = found
    for node in ast.walk(program):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if owner in modules and not hasattr(modules[owner], node.attr):
            yield f"{modules[owner].__name__}.{node.attr}"
        if re.match("_[^_]", node.attr) and owner not in ("self", "cls") and node.attr not in OF_OTHERS:
            yield f"{ast.unparse(node)} is private"


def imports(program: ast.Module) -> Iterator[tuple[tuple[str, str], object]]:
    """Yield what a program imports of this repository: its name there, the statement, and what is found."""
    for node in ast.walk(program):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if is_ours(alias.name):
                    found = import_module(alias.name)
                    yield (alias.asname or alias.name, f"import {alias.name}"), found
        elif isinstance(node, ast.ImportFrom) and is_ours(str(node.module)):
            for alias in node.names:
                statement = f"from {node.module} import {alias.name}"
                yield (alias.asname or alias.name, statement), named(str(node.module), alias.name)


def is_ours(module: str) -> bool:
    return module.partition(".")[0] in OURS


def named(module: str, name: str) -> object:
    """Return what a module has under a name, or the module below it; None where there is neither."""
    parent = import_module(module)
    if not hasattr(parent, name) and hasattr(parent, "__path__"):
        with suppress(ModuleNotFoundError):
            return import_module(f"{module}.{name}")
    return getattr(parent, name, None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_a_measurement_uses_is_there(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [name for program in programs(tree) for name in missing(program)] == []
    load(path)


def test_a_name_that_is_gone_is_found_in_a_program_that_stands_as_text() -> None:
    text = "PROGRAM = '''\nfrom envlock.runtime import host, hostess\nhost.Host()._where\nhost.Hostess\n'''"
    found = [name for program in programs(ast.parse(text)) for name in missing(program)]
    assert found == [
        "from envlock.runtime import hostess",
        "host.Host()._where is private",
        "envlock.runtime.host.Hostess",
    ]


def test_a_measurement_sends_programs_that_can_be_read() -> None:
    """Where a text is put together from parts of envlock's own, the parts are found."""
    program = load(ROOT / "benchmarks" / "canary.py").stand_in()
    names = [node.name for node in ast.parse(program).body if isinstance(node, ast.FunctionDef)]
    assert {"make_onednn_operations", "_rounding", "main"} <= set(names)


def test_a_run_adds_its_figures_to_those_of_earlier_releases(tmp_path: Path) -> None:
    run = load(ROOT / "benchmarks" / "run.py")
    kept = (ROOT / "benchmarks" / "history.csv").read_text(encoding="utf-8")
    file = tmp_path / "history.csv"
    file.write_text(kept, encoding="utf-8")
    versions = {"envlock": "9.9", "python": "3.11.7", "tensorflow-cpu": "2.21.0"}
    about = {"date": "2027-01-02", "versions": versions, "distributions": 140, "cpu": "an, odd one"}
    run.add_to_history(file, list(run.list_history(about, {"import envlock": [3.0, 1.0, 2.0]})))
    text = file.read_text(encoding="utf-8")
    assert text == f'{kept}9.9,2027-01-02,"an, odd one",3.11.7,2.21.0,140,import envlock,2.000,3\n'
    fresh = tmp_path / "fresh.csv"
    run.add_to_history(fresh, list(run.list_history(about, {"a": [1.0]})))
    assert fresh.read_text(encoding="utf-8").splitlines()[0] == kept.splitlines()[0]
