"""What op determinism will not cure in the file that calls `activate()`, by line. Reads the file's code; runs nothing.

Only the file itself is read: what it imports is not loaded on its first line. docs/reference/activation.md lists what
was measured, and `envlock lint` finds more.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from typing import Any, Dict, Iterator, List, Optional, Tuple

    Findings = Iterator[Tuple[int, str]]

MOST_BYTES = 1 << 20  # of a file; longer ones are generated
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GENERATORS = ("numpy.random.default_rng", "numpy.random.RandomState", "random.Random")
DRAWS = ("categorical", "gamma", "normal", "poisson", "shuffle", "truncated_normal", "uniform")
LOOP = (
    "random operations in tf.map_fn draw in any order, with op determinism too: "
    "pass parallel_iterations=1, or use stateless operations"
)
XLA = "no seed has an effect on tf.random under jit_compile=True: use tf.random.stateless_*, or a tf.random.Generator"
GENERATOR = "{} has no seed, and seeds set elsewhere do not reach it: give it one"


def here() -> List[str]:
    """Return a sentence for each line of the file that called envlock which op determinism does not cure."""
    import ast

    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(
        PACKAGE + os.sep
    ):
        frame = frame.f_back
    file = frame.f_code.co_filename
    try:
        with open(file, "rb") as stream:
            code = stream.read(MOST_BYTES + 1)
        tree = ast.parse(code if len(code) <= MOST_BYTES else b"")
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    name = os.path.basename(file)
    return [
        "{}:{}: {}".format(name, line, what) for line, what in sorted(set(_Code(tree).findings()))
    ]


class _Code:
    """The functions and imports of a file, by name."""

    def __init__(self, tree: ast.AST) -> None:
        import ast

        self._ast: Any = ast
        self._nodes = list(ast.walk(tree))
        self._imported: Dict[str, str] = {}
        self._functions: Dict[str, Any] = {}
        for node in self._nodes:
            if isinstance(node, ast.Import):
                for each in node.names:
                    self._imported[each.asname or each.name.split(".")[0]] = (
                        each.name if each.asname else each.name.split(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for each in node.names:
                    self._imported[each.asname or each.name] = node.module + "." + each.name
            elif isinstance(node, ast.FunctionDef):
                self._functions[node.name] = node

    def findings(self) -> Findings:
        for node in self._nodes:
            if isinstance(node, self._ast.Call):
                yield from self._of_call(node)
            elif isinstance(node, self._ast.FunctionDef) and any(
                map(self._compiles, node.decorator_list)
            ):
                yield from ((line, XLA) for line in self._draws(node))

    def _of_call(self, node: Any) -> Findings:
        name = self._name(node.func)
        if name in GENERATORS and not node.args and not node.keywords:
            yield node.lineno, GENERATOR.format(name)
        elif (
            name == "tensorflow.map_fn"
            and node.args
            and not self._says(node, "parallel_iterations", 1)
        ):
            if any(True for _ in self._draws(self._function(node.args[0]))):
                yield node.lineno, LOOP
        elif name == "tensorflow.function" and node.args and self._compiles(node):
            yield from ((line, XLA) for line in self._draws(self._function(node.args[0])))

    def _compiles(self, node: Any) -> bool:
        return (
            isinstance(node, self._ast.Call)
            and self._name(node.func) == "tensorflow.function"
            and self._says(node, "jit_compile", True)
        )

    def _says(self, node: Any, keyword: str, value: Any) -> bool:
        return any(
            each.arg == keyword and getattr(each.value, "value", None) == value
            for each in node.keywords
        )

    def _function(self, node: Any) -> Optional[Any]:
        """Return a function that is passed: a lambda, or one of the file's by its name."""
        return self._functions.get(node.id) if isinstance(node, self._ast.Name) else node

    def _draws(self, node: Optional[Any]) -> Iterator[int]:
        """Yield the lines of stateful random operations in a function."""
        for each in self._ast.walk(node) if node is not None else ():
            name = self._name(each.func) if isinstance(each, self._ast.Call) else ""
            package, _, last = name.rpartition(".")
            stateful = package == "tensorflow.random" and last in DRAWS
            if (
                stateful
                or name == "tensorflow.nn.dropout"
                or name.startswith("tensorflow.image.random_")
            ):
                yield each.lineno

    def _name(self, node: Any) -> str:
        """Return the dotted name that code refers to; empty for all else."""
        parts = []
        while isinstance(node, self._ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, self._ast.Name):
            return ""
        return ".".join([self._imported.get(node.id, node.id), *reversed(parts)])
