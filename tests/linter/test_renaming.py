"""Names that a program defines never decide: renaming them changes no finding."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envlock.linter.files import parse
from envlock.linter.linter import Settings, check
from tests.exhaustive import exhaustive
from tests.linter.test_examples import EXAMPLES

WORDS = (
    "aside", "blue", "clean", "data", "debug", "demo", "dev", "display", "eval", "evaluate", "font", "infer", "log",
    "logger", "loss", "metric", "model", "monitor", "plot", "predict", "profile", "rating", "report", "score", "server",
    "show", "step", "summary", "tester", "train", "update", "val", "video", "visualize", "weights",
)  # fmt: skip
READ = frozenset(
    {
        "_apply_sparse",
        "_seed",
        "main",
        "call",
        "train_step",
        "build",
        "fit",
        "apply_gradients",
        "run",
        "seed",
        "self",
        "cls",
    }
)
"""Names that a library reads: methods that it calls, and the entry point of a program."""


class Names(ast.NodeVisitor):
    """The names that a file defines, and those that it gets from elsewhere."""

    def __init__(self) -> None:
        self.defined: set[str] = set()
        self.foreign: set[str] = set(dir(builtins)) | READ

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.defined.add(node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.defined.add(node.name)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.defined.add(node.name)
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        self.defined.add(node.arg)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.foreign.add(node.attr)
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        self.foreign.add(node.arg or "")
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self.foreign.update((node.name, node.asname or node.name.partition(".")[0]))

    def visit_Global(self, node: ast.Global) -> None:
        self.foreign.update(node.names)


class Renamer(ast.NodeTransformer):
    """Gives names other ones."""

    def __init__(self, table: dict[str, str]) -> None:
        self.table = table

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.table.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self.table.get(node.arg, node.arg)
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.name = self.table.get(node.name, node.name)
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.name = self.table.get(node.name, node.name)
        self.generic_visit(node)
        return node


def renamed(text: str, words: list[str]) -> str:
    """Return a program whose own names are made of some words."""
    tree = ast.parse(text)
    names = Names()
    names.visit(tree)
    own = sorted(name for name in names.defined - names.foreign if not name.startswith("__"))
    table = {name: f"{words[at % len(words)]}_{at}" for at, name in enumerate(own)}
    return ast.unparse(ast.fix_missing_locations(Renamer(table).visit(tree)))


def found(text: str, version: str) -> list[tuple[int | None, str]]:
    """Return what is found in a text."""
    findings = check([parse("x.py", text)], Settings(version))
    return sorted((finding.where.line, finding.rule) for finding in findings)


FILES = sorted(
    file
    for file in EXAMPLES.rglob("*.py")
    if file.parent.name not in ("ENV001", "ENV002", "ENV003") and "python2" not in file.stem
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(FILES), st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_renaming_what_a_program_defines_changes_no_finding(file: Path, words: list[str]) -> None:
    text = file.read_text(encoding="utf-8")
    version = text.splitlines()[0].removeprefix("# tf: ") if text.startswith("# tf: ") else "2.21.0"
    plain = ast.unparse(ast.parse(text))
    assert found(renamed(text, words), version) == found(plain, version)


@pytest.mark.slow
@exhaustive
def test_each_word_in_every_example_changes_no_finding() -> None:
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        expected = found(ast.unparse(ast.parse(text)), "2.21.0")
        for word in WORDS:
            assert found(renamed(text, [word]), "2.21.0") == expected, (file, word)
