"""Lines in the file that calls `activate()` which stay non-deterministic under op determinism.

The code of the file is read, not run. Only the file itself is read: on its first line, its imports
are not loaded yet. docs/reference/activation.md lists what was measured, and `envlock lint` finds
more.
"""

from __future__ import annotations

import ast
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterator, List, Optional, Tuple

    Problem = Tuple[int, str]
    """A line, and what is not deterministic there."""

MOST_BYTES = 1 << 20
"""Bytes of a file that is read; longer files are generated."""
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GENERATORS = ("numpy.random.default_rng", "numpy.random.RandomState", "random.Random")
DRAWS = ("categorical", "gamma", "normal", "poisson", "shuffle", "truncated_normal", "uniform")
LOOP = (
    "random operations in tf.map_fn draw in any order, with op determinism too: "
    "pass parallel_iterations=1, or use stateless operations"
)
XLA = (
    "no seed has an effect on tf.random under jit_compile=True: "
    "use tf.random.stateless_*, or a tf.random.Generator"
)
WORKERS = (
    "a Keras dataset with several workers draws in whatever order they come: "
    "draw from a generator that is made from the index, or pass workers=1"
)
THREADS = (
    "threads change a variable in any order, with op determinism too: "
    "change it from one thread, in a fixed order"
)
DATASETS = ("PyDataset", "Sequence")
"""Classes of Keras whose elements its workers make."""
POOLS = ("concurrent.futures.ThreadPoolExecutor", "multiprocessing.pool.ThreadPool")
TASKS = ("apply_async", "imap", "imap_unordered", "map", "map_async", "starmap", "submit")
"""Methods of a pool whose first argument its threads call."""
CHANGES = (
    "assign",
    "assign_add",
    "assign_sub",
    "apply_gradients",
    "scatter_add",
    "scatter_sub",
    "scatter_update",
)
GENERATOR = "{} has no seed, and seeds set elsewhere do not reach it: give it one"


def list_uncured_lines() -> List[str]:
    """Return a sentence for each line, of the file that called envlock, that op determinism does
    not make deterministic.
    """
    file = _find_caller()
    try:
        with open(file, "rb") as stream:
            code = stream.read(MOST_BYTES + 1)
        if len(code) > MOST_BYTES:
            return []
        tree = ast.parse(code)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    name = os.path.basename(file)
    problems = sorted(set(_Code(tree).iter_problems()))
    return [f"{name}:{line}: {problem}" for line, problem in problems]


def _find_caller() -> str:
    """Return the file of the nearest code outside envlock."""
    frame = sys._getframe(1)
    ours = PACKAGE + os.sep
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(ours):
        frame = frame.f_back
    return frame.f_code.co_filename


class _Code:
    """The functions and imports of a file, by name."""

    def __init__(self, tree: ast.AST) -> None:
        self._nodes = list(ast.walk(tree))
        self._imported: Dict[str, str] = {}
        self._functions: Dict[str, ast.FunctionDef] = {}
        for node in self._nodes:
            if isinstance(node, ast.Import):
                self._add_import(node)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    self._imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif isinstance(node, ast.FunctionDef):
                self._functions[node.name] = node

    def _add_import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.asname:
                self._imported[alias.asname] = alias.name
            else:
                package = alias.name.split(".")[0]
                self._imported[package] = package

    def iter_problems(self) -> Iterator[Problem]:
        """Yield each line that stays non-deterministic, with the reason."""
        for node in self._nodes:
            if isinstance(node, ast.Call):
                yield from self._iter_problems_of_call(node)
            elif isinstance(node, ast.ClassDef):
                yield from self._iter_draws_of_workers(node)
            elif isinstance(node, ast.FunctionDef) and any(
                map(self._is_compiling, node.decorator_list)
            ):
                yield from self._iter_draws(node, XLA)

    def _iter_problems_of_call(self, node: ast.Call) -> Iterator[Problem]:
        name = self._get_name(node.func)
        if name in GENERATORS and not node.args and not node.keywords:
            yield node.lineno, GENERATOR.format(name)
        elif name == "tensorflow.map_fn" and node.args:
            if _has_keyword(node, "parallel_iterations", 1):
                return
            if any(True for _ in self._iter_draws(self._get_function(node.args[0]), LOOP)):
                yield node.lineno, LOOP
        elif name == "tensorflow.function" and node.args and self._is_compiling(node):
            yield from self._iter_draws(self._get_function(node.args[0]), XLA)
        elif name == "threading.Thread":
            for keyword in node.keywords:
                if keyword.arg == "target":
                    yield from self._iter_changes(self._get_function(keyword.value))
        elif self._is_task(node):
            yield from self._iter_changes(self._get_function(node.args[0]))

    def _is_task(self, node: ast.Call) -> bool:
        """Return whether a call gives a function to the threads of a pool."""
        method = node.func
        if not isinstance(method, ast.Attribute) or method.attr not in TASKS or not node.args:
            return False
        return isinstance(method.value, ast.Name) and method.value.id in self._list_pools()

    def _list_pools(self) -> List[str]:
        """Return the names of the pools of threads that the file makes."""
        found = []
        for node in self._nodes:
            value = target = None
            if isinstance(node, ast.withitem):
                value, target = node.context_expr, node.optional_vars
            elif isinstance(node, ast.Assign):
                value, target = node.value, node.targets[0]
            if not isinstance(value, ast.Call) or not isinstance(target, ast.Name):
                continue
            if self._get_name(value.func) in POOLS:
                found.append(target.id)
        return found

    def _iter_changes(self, function: Optional[ast.AST]) -> Iterator[Problem]:
        """Yield the lines in which a function changes a variable that is not its own."""
        if function is None:
            return
        own = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own.add(node.id)
        for node in ast.walk(function):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr not in CHANGES:
                continue
            first = self._get_name(node.func.value).partition(".")[0]
            if first and first not in own:
                yield node.lineno, THREADS

    def _iter_draws_of_workers(self, node: ast.ClassDef) -> Iterator[Problem]:
        """Yield the lines of a Keras dataset of several workers that draw from a shared generator."""
        bases = [self._get_name(base).rpartition(".")[2] for base in node.bases]
        if not set(DATASETS).intersection(bases) or not self._has_workers():
            return
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__getitem__":
                for each in ast.walk(method):
                    if isinstance(each, ast.Call) and _draws_shared(self._get_name(each.func)):
                        yield each.lineno, WORKERS

    def _has_workers(self) -> bool:
        """Return whether the file asks for more than one worker anywhere."""
        for node in self._nodes:
            if isinstance(node, ast.keyword) and node.arg == "workers":
                number = getattr(node.value, "value", None)
                if not isinstance(number, int) or number > 1:
                    return True
        return False

    def _is_compiling(self, node: ast.AST) -> bool:
        """Return whether an expression is a call `tf.function(jit_compile=True)`."""
        if not isinstance(node, ast.Call) or self._get_name(node.func) != "tensorflow.function":
            return False
        return _has_keyword(node, "jit_compile", True)

    def _get_function(self, node: ast.AST) -> Optional[ast.AST]:
        """Return a function that is passed as an argument: a lambda, or one of the file's own, by
        name.
        """
        if isinstance(node, ast.Name):
            return self._functions.get(node.id)
        return node

    def _iter_draws(self, function: Optional[ast.AST], problem: str) -> Iterator[Problem]:
        """Yield the lines of stateful random operations in a function, each with the problem."""
        if function is None:
            return
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and _is_draw(self._get_name(node.func)):
                yield node.lineno, problem

    def _get_name(self, node: ast.AST) -> str:
        """Return the dotted name of an expression; empty if it is not a name."""
        parts: List[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self._imported.get(node.id, node.id), *reversed(parts)])


def _has_keyword(node: ast.Call, keyword: str, value: object) -> bool:
    values = [getattr(each.value, "value", None) for each in node.keywords if each.arg == keyword]
    return value in values


def _draws_shared(name: str) -> bool:
    """Return whether a function draws from the one generator of Python or of NumPy."""
    package, _, last = name.rpartition(".")
    return package in ("random", "numpy.random") and last[:1].islower() and last != "default_rng"


def _is_draw(name: str) -> bool:
    """Return whether a function is a stateful random operation, whose results depend on the order
    of calls.
    """
    package, _, last = name.rpartition(".")
    if package == "tensorflow.random":
        return last in DRAWS
    return name == "tensorflow.nn.dropout" or name.startswith("tensorflow.image.random_")
