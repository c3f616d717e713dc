"""Count how Python trees are written and print a table: python tools/census.py [NAME=]TREE...

What each row counts, and why, is in docs/contributing/census.md. Files that do not parse are an error.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import tomllib

LONG_LINE = 100
"""Characters; a line with more is hard to read beside another file."""

MANY_PARAMETERS = 7
LONG_FUNCTION = 50

_WORDS = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    ).items()
}
VERBS = _WORDS["verbs"]
"""The first words of function names that are counted as verbs."""

NOUN_DECORATORS = ("property", "cached_property")
"""A property is read like a value, so that its name is a noun."""


@dataclass
class Census:
    """What is counted in one tree."""

    lines: int = 0
    long_lines: int = 0
    comment_lines: int = 0
    code_lines: int = 0
    """All lines that are neither empty, nor a comment alone, nor inside a string of several lines."""
    file_lengths: list[int] = field(default_factory=list)
    function_lengths: list[int] = field(default_factory=list)
    many_parameters: int = 0
    named_functions: int = 0
    """All but those of Python's own protocols (`__len__`) and properties."""
    verbs: int = 0
    participles: int = 0
    conditionals: int = 0
    comprehensions: int = 0
    any_types: int = 0
    inner_imports: int = 0
    stems: Counter[str] = field(default_factory=Counter)

    @property
    def shared_names(self) -> list[str]:
        """The names that two modules of the tree or more have."""
        return sorted(name for name, count in self.stems.items() if count > 1)

    def per_thousand(self, count: int) -> float:
        """Return how many there are in 1,000 lines of any kind."""
        return 1000 * count / self.lines

    def figures(self) -> dict[str, float]:
        """Return every figure by its name; a share is in percent."""
        functions = len(self.function_lengths)
        return {
            "files": len(self.file_lengths),
            "lines": self.lines,
            "lines of the median file": statistics.median(self.file_lengths),
            "lines of the longest file": max(self.file_lengths),
            "functions": functions,
            "lines of the median function": statistics.median(self.function_lengths),
            "lines of the longest function": max(self.function_lengths),
            "functions of more than 50 lines": sum(
                length > LONG_FUNCTION for length in self.function_lengths
            ),
            "functions with more than 7 parameters": self.many_parameters,
            "functions that begin with a verb, %": 100 * self.verbs / self.named_functions,
            "functions named with one participle or adverb": self.participles,
            "modules of one name": len(self.shared_names),
            "conditional expressions per 1,000 lines": self.per_thousand(self.conditionals),
            "comprehensions per 1,000 lines": self.per_thousand(self.comprehensions),
            "`Any` per 1,000 lines": self.per_thousand(self.any_types),
            "imports inside functions per 1,000 lines": self.per_thousand(self.inner_imports),
            "lines over 100 characters, %": 100 * self.long_lines / self.lines,
            "comment lines for 100 lines of code": 100 * self.comment_lines / self.code_lines,
        }


def count_tree(tree: Path) -> Census:
    """Return the counts of all Python files below a folder; raise ValueError if it has no such
    files.
    """
    census = Census()
    for file in sorted(tree.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        module = ast.parse(text, file)
        count_lines(census, text, module)
        count_nodes(census, module, inside_function=False)
        census.any_types += len(re.findall(r"\bAny\b", text))
        if not file.stem.startswith("__"):
            census.stems[file.stem] += 1
    if not census.file_lengths:
        raise ValueError(f"no Python file below {tree}")
    return census


def count_lines(census: Census, text: str, module: ast.Module) -> None:
    """Count the lines of one file."""
    lines = text.splitlines()
    in_string: set[int] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno is not None:
            in_string.update(range(node.lineno + 1, node.end_lineno + 1))
    census.file_lengths.append(len(lines))
    census.lines += len(lines)
    for number, line in enumerate(lines, start=1):
        if len(line) > LONG_LINE:
            census.long_lines += 1
        # A `#` that begins a line inside a string, such as a template of a shell script, is not a
        # comment.
        if number in in_string:
            continue
        if line.lstrip().startswith("#"):
            census.comment_lines += 1
        elif line.strip():
            census.code_lines += 1


def count_nodes(census: Census, node: ast.AST, *, inside_function: bool) -> None:
    """Count what is below a node; `inside_function` says whether the node is in a function's body."""
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            count_function(census, child)
        elif isinstance(child, ast.IfExp):
            census.conditionals += 1
        elif isinstance(child, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            census.comprehensions += 1
        elif inside_function and isinstance(child, ast.Import | ast.ImportFrom):
            census.inner_imports += 1
        count_nodes(census, child, inside_function=inside_function or is_function)


def count_function(census: Census, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Count one function's size and name."""
    assert function.end_lineno is not None
    census.function_lengths.append(function.end_lineno - function.lineno + 1)
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    if len(names) > MANY_PARAMETERS:
        census.many_parameters += 1
    is_protocol = function.name.startswith("__") and function.name.endswith("__")
    if is_protocol or is_noun(function):
        return
    census.named_functions += 1
    words = function.name.strip("_").lower().split("_")
    if words[0] in VERBS:
        census.verbs += 1
    if len(words) == 1 and is_participle_or_adverb(words[0]):
        census.participles += 1


def is_noun(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is a property."""
    names = [ast.unparse(decorator).rpartition(".")[2] for decorator in function.decorator_list]
    return any(name in NOUN_DECORATORS for name in names)


def is_participle_or_adverb(word: str) -> bool:
    """Return whether a word is a past participle or an adverb; a form in -ing is most often a noun (`padding`)."""
    if word in _WORDS["irregular_participles"] or word in _WORDS["adverbs"]:
        return True
    return word.endswith("ed") and word not in _WORDS["not_participles"]


def render_figure(figure: float) -> str:
    """Return a figure for the table: whole numbers whole, others with one decimal."""
    if figure == int(figure):
        return f"{int(figure):,}"
    return f"{figure:.1f}"


def render_table(censuses: dict[str, Census]) -> str:
    """Return a table of Markdown with a column for each tree."""
    figures = {name: census.figures() for name, census in censuses.items()}
    rows = [f"| | {' | '.join(figures)} |", f"|---|{'--:|' * len(figures)}"]
    for row in next(iter(figures.values())):
        cells = [render_figure(each[row]) for each in figures.values()]
        rows.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main(arguments: list[str]) -> int:
    """Print the table of the trees that are named; return 2 without one."""
    if not arguments:
        print("usage: census.py [NAME=]TREE...", file=sys.stderr)
        return 2
    censuses = {}
    for argument in arguments:
        name, separator, tree = argument.partition("=")
        if not separator:
            name, tree = Path(argument).name, argument
        censuses[name] = count_tree(Path(tree))
    print(render_table(censuses))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
