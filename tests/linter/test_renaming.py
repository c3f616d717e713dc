"""Names that a program defines never decide: renaming them changes no finding."""

from __future__ import annotations

import ast
import builtins
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envlock.linter.files import parse
from envlock.linter.linter import Settings, check
from envlock.linter.names import (
    ARRIVAL_METHODS,
    FRAMEWORK_METHODS,
    LISTING_METHODS,
    NUMPY_DRAWS,
    SHOWING_METHODS,
    TRAINING_METHODS,
)
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


class Methods(Renamer):
    """Gives a method of the program's own another name, also where it is called."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        node.attr = self.table.get(node.attr, node.attr)
        self.generic_visit(node)
        return node


BARE = sorted(
    {"fit", "np", "tf", "random", "keras", "layers", "hash", "id", "set", "sorted", "main", "model", "data", "workers"}
    | {word for word in WORDS if word not in ("log", "plot")}
    | TRAINING_METHODS
    | ARRIVAL_METHODS
    | LISTING_METHODS
    | NUMPY_DRAWS
    | SHOWING_METHODS
)
"""Words that mean something where a library has them: methods of training, of listing and of drawing among them."""


HANDED_IN = {("bad_tape_of_library.py", "batch")}
"""Methods of an object that a caller hands in: that it is no optimizer, the text does not say."""


def list_own(tree: ast.Module) -> list[tuple[str, type[Renamer]]]:
    """Return the names that a program defines and no library reads, each with what renames it."""
    names = Names()
    names.visit(tree)
    classes = [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)]
    methods = {each.name for owner in classes for each in owner.body if isinstance(each, ast.FunctionDef)}
    inherited = {each.name for owner in classes if owner.bases for each in owner.body if hasattr(each, "name")}
    plain = names.defined - names.foreign - methods
    own = methods - inherited - READ - FRAMEWORK_METHODS
    found: list[tuple[str, type[Renamer]]] = [(each, Renamer) for each in sorted(plain)]
    found += [(each, Methods) for each in sorted(own)]
    return [pair for pair in found if not pair[0].startswith("__")]


def list_used(text: str) -> set[str]:
    """Return every word of a program: what is renamed becomes another one."""
    return set(re.findall(r"\w+", text))


@pytest.mark.slow
@exhaustive
def test_ten_thousand_renamings_to_bare_words_change_no_finding() -> None:
    chance = random.Random(46)
    programs = []
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        version = text.splitlines()[0].removeprefix("# tf: ") if text.startswith("# tf: ") else "2.21.0"
        plain = ast.unparse(ast.parse(text))
        own = list_own(ast.parse(plain))
        if own:
            programs.append((file, plain, version, own, found(plain, version)))
    changed, done = [], 0
    while done < 10_000:
        file, plain, version, own, expected = chance.choice(programs)
        (name, renamer), word = chance.choice(own), chance.choice(BARE)
        if word not in list_used(plain):
            done += 1
            tree = renamer({name: word}).visit(ast.parse(plain))
            if found(ast.unparse(tree), version) != expected:
                changed.append((file.name, name, word))
    assert [each for each in changed if each[:2] not in HANDED_IN] == []
    assert len(changed) < 10
