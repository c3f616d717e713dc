"""The least that a linter must beat: names through imports, seeds along imports, one pass, no values.

python benchmarks/labels/baseline.py FOLDER
"""

# ruff: noqa: SIM905 (a list of words is read as one)
from __future__ import annotations

import ast
import collections
import contextlib
import json
import pathlib
import sys
from collections.abc import Iterator

from envlock.linter.python2 import translate

PYTHON = set(("choice choices gauss randint random randrange sample shuffle uniform").split())
NUMPY = set(
    (
        "beta binomial choice exponential gamma multinomial multivariate_normal normal permutation poisson rand randint "
        "randn random random_integers random_sample sample shuffle standard_normal uniform"
    ).split()
)
TENSORFLOW = set(
    (
        "contrib.layers.xavier_initializer image.random_brightness image.random_crop image.random_flip_left_right "
        "layers.dropout multinomial nn.dropout random.categorical random.normal random.shuffle random.truncated_normal "
        "random.uniform random_crop random_normal random_normal_initializer random_shuffle random_uniform "
        "random_uniform_initializer truncated_normal truncated_normal_initializer"
    ).split()
)
SEEDS = {
    "random.seed": {"206"},
    "numpy.random.seed": {"205"},
    "tf.random.set_seed": {"204", "203"},
    "tf.set_random_seed": {"204", "203", "202"},
    "tf.compat.v1.set_random_seed": {"204", "203", "202"},
    "tf.keras.utils.set_random_seed": {"206", "205", "204", "203", "202"},
}
LISTINGS = {"os.listdir", "os.walk", "os.scandir", "glob.glob", "glob.iglob"}
ORDERLESS = {"sorted", "len", "set", "any", "all"}
TRAININGS = {"fit", "fit_generator", "train_on_batch"}
Finding = tuple[str, str, list[int]]


class File:
    """A file: its names, what it imports, seeds and does."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path, self.tree, self.names = path, tree, dict[str, str]()
        self.seeds: set[str] = set()
        self.found: dict[str, list[int]] = collections.defaultdict(list)
        self.modules: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    self.modules.add(each.name)
                    first = each.name.partition(".")[0]
                    self.names[each.asname or first] = each.name if each.asname else first
            elif isinstance(node, ast.ImportFrom):
                for each in node.names:
                    self.modules.update((node.module or "", f"{node.module}.{each.name}"))
                    self.names[each.asname or each.name] = f"{node.module}.{each.name}"
        self.has_keras = any("keras" in each for each in [*self.modules, *self.names.values()])

    def resolve(self, node: ast.expr) -> str:
        """Return the full name of what is called, "" where no import gives it."""
        words: list[str] = []
        while isinstance(node, ast.Attribute):
            words.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.names:
            return ""
        name = ".".join([self.names[node.id], *reversed(words)])
        for old, new in (
            ("tensorflow.compat.v1.", "tf."),
            ("tensorflow.", "tf."),
            ("keras.", "tf.keras."),
        ):
            if name.startswith(old):
                return new + name[len(old) :]
        return name

    def scan(self) -> None:
        """Note what is seeded and drawn."""
        settled = {
            id(each)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ORDERLESS
            for each in ast.walk(node)
        }
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                name = self.resolve(node.func)
                last = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                rule = self.judge(node, name, last)
                if name in SEEDS and (node.args or node.keywords):
                    self.seeds |= SEEDS[name]
                elif rule and not (rule == "303" and id(node) in settled):
                    self.found[rule].append(node.lineno)

    def judge(self, node: ast.Call, name: str, last: str) -> str:
        """Return the rule that a call falls under, or ""."""
        given = {each.arg for each in node.keywords}
        if {"seed", "random_state"} & given:
            return ""
        head, _, tail = name.rpartition(".")
        if head == "random" and tail in PYTHON:
            return "206"
        is_generator = tail in ("default_rng", "RandomState") and not node.args
        if (
            head == "numpy.random" and (tail in NUMPY or is_generator)
        ) or tail == "train_test_split":
            return "205"
        if name.startswith("tf.") and name[3:] in TENSORFLOW:
            return "204"
        if name in LISTINGS:
            return "303"
        if name in ("gym.make", "gymnasium.make"):
            return "209"
        if last in TRAININGS and self.has_keras:
            return "202"
        if (
            last == "shuffle"
            and not name
            and any(each.startswith("tensorflow") for each in self.modules)
        ):
            return "203" if len(node.args) == 1 and not isinstance(node.args[0], ast.Name) else ""
        return "108" if last in ("minimize", "apply_gradients") else ""


def read(folder: pathlib.Path) -> Iterator[File]:
    """Yield the files of a folder, those of Python 2 translated; a notebook's cells one after another."""
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.ipynb")]):
        text = path.read_text(encoding="utf-8", errors="replace")
        tree = parse(text) if path.suffix == ".py" else parse(lay_out(text))
        if tree is not None:
            yield File(str(path.relative_to(folder)), tree)


def parse(text: str) -> ast.Module | None:
    """Return the tree of a file, or None."""
    for code in (text, translate(text) or ""):
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            return ast.parse(code)
    return None


def lay_out(text: str) -> str:
    """Return a notebook's code, each line at the line of the file that holds it."""
    try:
        cells = json.loads(text).get("cells", [])
    except ValueError:
        return ""
    lines = [""] * (text.count("\n") + 2)
    numbered = enumerate(text.splitlines(), 1)
    starts = [number for number, line in numbered if line.strip().startswith('"source": [')]
    for row, cell in enumerate(cells):
        if cell.get("cell_type") == "code" and row < len(starts):
            for at, line in enumerate("".join(cell["source"]).splitlines()):
                if not line.lstrip().startswith(("%", "!")) and starts[row] + at < len(lines):
                    lines[starts[row] + at] = line
    return "\n".join(lines)


def link(files: list[File]) -> dict[str, set[str]]:
    """Return for each file those that it imports, directly or not, by the last word of a module."""
    by_word = collections.defaultdict(set)
    for file in files:
        place = pathlib.PurePath(file.path)
        by_word[place.parent.name if place.name == "__init__.py" else place.stem].add(file.path)
    direct = {
        file.path: {each for module in file.modules for each in by_word[module.rpartition(".")[2]]}
        for file in files
    }
    reach = {}
    for path in direct:
        seen, waiting = set[str](), [path]
        while waiting:
            for each in direct[waiting.pop()] - seen:
                seen.add(each)
                waiting.append(each)
        reach[path] = seen
    return reach


def find_reach(folder: pathlib.Path) -> dict[str, set[str]]:
    """Return which files of a folder each one imports."""
    return link(list(read(folder)))


def lint(folder: pathlib.Path) -> list[Finding]:
    """Return rule, file and lines of what nothing seeds: one finding a file and rule."""
    files = list(read(folder))
    for file in files:
        file.scan()
    reach = link(files)
    found = []
    for file in files:
        around = [each for each in files if each is file or file.path in reach[each.path]]
        around += [each for each in files if each.path in reach[file.path]]
        seeded = {rule for each in around for rule in each.seeds}
        found += [
            ("ENV" + rule, file.path, sorted(set(lines)))
            for rule, lines in sorted(file.found.items())
            if rule not in seeded
        ]
    return found


if __name__ == "__main__":
    for rule, file, lines in lint(pathlib.Path(sys.argv[1])):
        print(f"{file}:{lines[0]}: {rule}" + (f" and lines {lines[1:]}" if lines[1:] else ""))
