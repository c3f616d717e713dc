"""How densely the package is written: `tools/census.py` counts; a reviewer, not a test, decides on its figures."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))
from census import VERBS, Census, count_tree, is_participle_or_adverb, main  # noqa: E402

PLANTED = '''\
"""A module."""

from typing import Any

# Why it is so.
x = 1 if Any else 2  # trailing

TEXT = """
# no comment
"""


def told(a, b, c, d, e, f, g, *, h):
    import os

    return [os for each in a]


class Store:
    def __len__(self):
        return 1

    @property
    def size(self):
        return 1

    async def _read_all(self, a, b, c, d, e, f, g):
        return {a for a in b if (c if d else e)}
'''


def plant(folder: Path, text: str = PLANTED) -> Census:
    """Return the census of a folder with two modules of one name."""
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("")
        (folder / name / "store.py").write_text(text if name == "one" else "")
    return count_tree(folder)


def test_everything_is_counted(tmp_path: Path) -> None:
    census = plant(tmp_path)
    assert census.lines == len(PLANTED.splitlines())
    assert (census.comment_lines, census.code_lines) == (1, 15)
    assert (census.conditionals, census.comprehensions, census.inner_imports, census.any_types) == (2, 2, 1, 2)
    assert (census.many_parameters, census.named_functions, census.verbs, census.participles) == (1, 2, 1, 1)
    assert census.shared_names == ["store"]
    assert census.function_lengths == [4, 2, 2, 2]


def test_a_long_line_is_counted(tmp_path: Path) -> None:
    census = plant(tmp_path, f"x = '{'a' * 94}'\ny = '{'a' * 95}'\n\n\ndef load():\n    pass\n")
    assert census.long_lines == 1


@pytest.mark.parametrize("word", ["told", "kept", "here", "untold", "sorted", "again"])
def test_a_participle_is_known(word: str) -> None:
    assert is_participle_or_adverb(word)


@pytest.mark.parametrize("word", ["seed", "read", "padding", "name", "set"])
def test_a_verb_or_a_noun_is_no_participle(word: str) -> None:
    assert not is_participle_or_adverb(word)


def test_no_verb_is_a_participle() -> None:
    assert [verb for verb in sorted(VERBS) if is_participle_or_adverb(verb)] == []


def test_the_table_has_a_column_for_each_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(tmp_path)
    assert main([f"ours={tmp_path}", str(tmp_path / "one")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["| | ours | one |", "|---|--:|--:|", "| files | 4 | 2 |"]
    assert "| modules of one name | 1 | 0 |" in lines


def test_a_folder_without_python_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"^no Python file below {tmp_path}$"):
        count_tree(tmp_path)


@pytest.mark.longer
def test_each_import_inside_a_function_has_its_reason() -> None:
    """A comment above it, or behind it on the line; those of a start-up time have measured it."""
    unexplained = []
    for file in sorted((ROOT / "envlock").rglob("*.py")):
        lines = file.read_text(encoding="utf-8").splitlines()
        for line in list_inner_imports(ast.parse("\n".join(lines))):
            above = line - 2
            while lines[above].lstrip().startswith(("from ", "import ", "try:", "async ", ")")):
                above -= 1
            if not lines[above].lstrip().startswith("#") and "  # " not in "".join(lines[line - 1 : line + 2]):
                unexplained.append(f"{file.relative_to(ROOT)}:{line}")
    assert unexplained == []


def list_inner_imports(module: ast.Module) -> list[int]:
    """Return the lines of the imports that stand inside functions."""
    lines: set[int] = set()
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            lines.update(node.lineno for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom))
    return sorted(lines)
