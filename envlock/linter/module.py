"""A module as the rules see it: its nodes by type, and the full dotted name of what it imports.

Names are written in one canonical way, so that a rule need not know how the code imports them:
`tf.` for tensorflow (also for `tf.compat.v1`), `keras.` for `tf.keras` and tf_keras, `numpy.`. A
name means what the whole file imports under it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple, TypeVar

from envlock.linter.names import LIBRARIES, canonical
from envlock.linter.notebooks import Cells
from envlock.runtime.report import Severity

Node = TypeVar("Node", bound=ast.AST)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Module:
    """One file.

    Attributes:
        path: as it is shown.
        cells: where the cells begin, of a notebook.
        python2: the first line that Python 3 cannot read, where the text was translated.
        starred: the project's own files of which it imports all names.
    """

    def __init__(
        self,
        path: str,
        text: str,
        tree: ast.Module,
        cells: Cells | None = None,
        python2: int | None = None,
    ) -> None:
        self.path = path
        self.python2 = python2
        self.cells = cells
        self.text = text
        self.tree = tree
        self.starred: list[Module] = []
        self._resolved: dict[str, str | None] = {}
        self._by_type = _sort_nodes(tree)

    @cached_property
    def lines(self) -> list[str]:
        """The text by lines, as the parser counts them."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def get_line(self, number: int) -> str:
        """Return a line of the text; the parser counts from 1."""
        if 0 < number <= len(self.lines):
            return self.lines[number - 1]
        return ""

    def list_nodes(self, kind: type[Node]) -> list[Node]:
        """Return every node of one type, in the order of the text."""
        return self._by_type.get(kind, [])  # type: ignore[return-value]

    def list_imports(self) -> list[ast.Import | ast.ImportFrom]:
        """Return what imports something, in the order of the text."""
        every: list[ast.Import | ast.ImportFrom] = [*self.list_nodes(ast.Import)]
        return sorted([*every, *self.list_nodes(ast.ImportFrom)], key=_get_line)

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        """The node around each; few files are asked for it."""
        found: dict[ast.AST, ast.AST] = {}
        for kind, nodes in self._by_type.items():
            for node in nodes:
                for name in _FIELDS[kind]:
                    value = getattr(node, name, None)
                    if type(value) is list:
                        for child in value:
                            found[child] = node
                    elif value is not None:
                        found[value] = node
        return found

    def get_parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node around this one."""
        return self._parents.get(node)

    def find_statement(self, node: ast.AST) -> ast.stmt | None:
        """Return the statement around an expression."""
        around = self.get_parent(node)
        while around is not None and not isinstance(around, ast.stmt):
            around = self.get_parent(around)
        return around

    def find_function_around(self, node: ast.AST) -> Function | None:
        """Return the innermost function or lambda that this code is in; None at module level."""
        around = self.get_parent(node)
        while around is not None and not isinstance(around, Function):
            around = self.get_parent(around)
        return around

    # ------------------------------------------------------------ names

    @cached_property
    def imports(self) -> frozenset[str]:
        """Every module that is imported anywhere in the file, as it is written; with a dot in
        front: relative.
        """
        found: set[str] = set()
        for statement in self.list_nodes(ast.Import):
            found.update(alias.name for alias in statement.names)
        for node in self.list_nodes(ast.ImportFrom):
            module = _get_origin(node)
            found.add(module)
            # Each may be a module, too: `from package import module`.
            found.update(_join(module, alias.name) for alias in node.names)
        return frozenset(found)

    @cached_property
    def _meanings(self) -> dict[str, set[str]]:
        """What is imported under each name, canonical."""
        found: dict[str, set[str]] = defaultdict(set)
        for node in self.list_nodes(ast.Import):
            for alias in node.names:
                if alias.asname:
                    found[alias.asname].add(canonical(alias.name))
                else:  # `import a.b` binds `a`
                    top = alias.name.partition(".")[0]
                    found[top].add(canonical(top))
        for each in self.list_nodes(ast.ImportFrom):
            for alias in each.names:
                full = _join(_get_origin(each), alias.name)
                found[alias.asname or alias.name].add(canonical(full))
        return found

    @cached_property
    def _bound(self) -> dict[str, list[ast.expr]]:
        """What is given to names by an assignment; a name that stands for anything else as well
        means nothing.
        """
        found: dict[str, list[ast.expr]] = defaultdict(list)
        plain: set[ast.AST] = set()
        for node in self.list_nodes(ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    plain.add(target)
                    found[target.id].append(node.value)
        others = [
            each.id
            for each in self.list_nodes(ast.Name)
            if type(each.ctx) is not ast.Load and each not in plain
        ]
        others += [each.arg for each in self.list_nodes(ast.arg)]
        others += [each.name for each in self.list_nodes(ast.FunctionDef)]
        others += [each.name for each in self.list_nodes(ast.ClassDef)]
        others += [each.name for each in self.list_nodes(ast.MatchAs) if each.name]
        # Parameters, targets of loops, functions: an expression without a name stands for them.
        nameless = ast.Tuple([], ast.Load())
        for name in others:
            found[name].append(nameless)
        return found

    def resolve_name(self, node: ast.AST) -> str | None:
        """Return the canonical dotted name of what an expression stands for: a module, a function,
        a class, or None.

        A name that could mean two things means none, unless one is imported in place of the other.
        """
        words: list[str] = []
        while isinstance(node, ast.Attribute):
            words.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        start = self._resolve(node.id)
        if start is None:
            return None
        return canonical(".".join([start, *reversed(words)]))

    def _resolve(self, name: str) -> str | None:
        """Return what a name stands for; it is found out once."""
        if name not in self._resolved:
            self._resolved[name] = None  # `a = b` and `b = a` lead nowhere
            self._resolved[name] = self._look_up(name)
        return self._resolved[name]

    def _look_up(self, name: str) -> str | None:
        meanings = set(self._meanings.get(name, ()))
        for each in self._bound.get(name, []):
            # `np = None` where the import of NumPy has failed: the code after it uses NumPy.
            if isinstance(each, ast.Constant) and each.value is None:
                continue
            meaning = self.resolve_name(each)
            if meaning is None:
                return None
            meanings.add(meaning)
        if not meanings:
            return None
        # `from keras.layers import Dense` in a `try`, `from tensorflow.keras.layers import Dense`
        # in its `except`: of one name at two places, either stands for both.
        if len({each.rpartition(".")[2] for each in meanings}) > 1:
            return None
        found = min(meanings)
        if found.startswith("."):  # a file of the project
            return None
        return found

    @cached_property
    def calls(self) -> list[tuple[ast.Call, str]]:
        """Every call of something that has a name, with it, in the order of the text."""
        named = [(call, self.resolve_name(call.func)) for call in self.list_nodes(ast.Call)]
        return [(call, name) for call, name in named if name is not None]

    @cached_property
    def call_names(self) -> frozenset[str]:
        """The names of all that is called."""
        return frozenset(name for _, name in self.calls)

    def find_calls(self, names: Collection[str]) -> list[tuple[ast.Call, str]]:
        """Return every call of something of these names, with its name, in the order of the text."""
        words = {name.rpartition(".")[2] for name in names}
        # Quicker than to look up every call. `from os import listdir as ls` has the word, too.
        if not any(word in self.text for word in words):
            return []
        return [(call, name) for call, name in self.calls if name in names]

    def find_methods(self, words: Collection[str]) -> Iterator[ast.Call]:
        """Yield every call of `x.word(...)`, in the order of the text."""
        if not any(word in self.text for word in words):
            return
        for call in self.list_nodes(ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr in words:
                yield call

    @cached_property
    def origins(self) -> dict[str, str]:
        """Where each name that is imported from a module comes from, as it is written."""
        found: dict[str, str] = {}
        for each in self.list_nodes(ast.ImportFrom):
            for alias in each.names:
                found[alias.asname or alias.name] = _join(_get_origin(each), alias.name)
        return found

    @cached_property
    def foreign_names(self) -> frozenset[str]:
        """The names under which the file has a library that the rules know."""
        found = set()
        for name, meanings in self._meanings.items():
            if all(each.partition(".")[0] in LIBRARIES for each in meanings):
                found.add(name)
        return frozenset(found)

    @property
    def imported_names(self) -> Collection[str]:
        """The names that imports give."""
        return self._meanings.keys()

    @cached_property
    def own_names(self) -> frozenset[str]:
        """The names that the file gives to something of its own, other than by imports."""
        return frozenset(self._bound)

    @cached_property
    def attributes(self) -> frozenset[str]:
        """The names of all attributes that stand in the text."""
        return frozenset([each.attr for each in self.list_nodes(ast.Attribute)])

    @cached_property
    def packages(self) -> frozenset[str]:
        """The top-level names of what is imported, canonical: `tf`, `keras`, `numpy`."""
        plain = (name for name in self.imports if not name.startswith("."))
        return frozenset(canonical(name).partition(".")[0] for name in plain)

    @cached_property
    def uses_keras(self) -> bool:
        """Whether anything of Keras is named."""
        return "keras" in self.packages or ("keras" in self.text and "keras" in self.attributes)


def _get_origin(node: ast.ImportFrom) -> str:
    return "." * node.level + (node.module or "")


def _join(module: str, name: str) -> str:
    if module.endswith("."):  # `from . import name`
        return f"{module}{name}"
    return f"{module}.{name}"


_WORDS = frozenset(
    {
        "ctx",
        "op",
        "ops",
        "id",
        "attr",
        "arg",
        "kind",
        "level",
        "type_comment",
        "conversion",
        "simple",
        "asname",
        "module",
        "rest",
        "type_ignores",
    }
)
"""Fields with operators, words and numbers, never with a node that matters."""


def _list_fields() -> dict[type[ast.AST], tuple[str, ...]]:
    """Return for each type of node the fields that can hold nodes, the last first; a constant has
    none that matter.
    """
    found: dict[type[ast.AST], tuple[str, ...]] = {}
    kinds: list[type[ast.AST]] = [ast.AST]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        found[kind] = tuple(name for name in kind._fields[::-1] if name not in _WORDS)
    # A seventh of the nodes of Keras 3.15.1, and no rule asks for all constants.
    del found[ast.Constant]
    return found


_FIELDS = _list_fields()
_get_line = attrgetter("lineno")


def _sort_nodes(tree: ast.Module) -> dict[type[ast.AST], list[ast.AST]]:
    """Return the nodes by their types, in the order of the text; nothing here recurses, however
    deep the code is.
    """
    found: dict[type[ast.AST], list[ast.AST]] = {kind: [] for kind in _FIELDS}
    rows = {kind: (found[kind].append, fields) for kind, fields in _FIELDS.items()}
    stack: list[ast.AST] = [tree]
    # All nodes of all files go through this loop, so that its methods are looked up once.
    take, put = stack.pop, stack.append
    while stack:
        node = take()
        row = rows.get(type(node))
        if row is None:  # a constant, or a word
            continue
        keep, fields = row
        keep(node)
        # What is put last is taken first: lists from their end, as the fields are.
        for name in fields:
            value = getattr(node, name, None)
            if type(value) is list:
                stack += value[::-1]
            elif value is not None:
                put(value)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it, in no order that counts, but no constants, operators and words.

    `ast.walk` asks for every field of every node, and takes four times as long.
    """
    stack = [node]
    while stack:
        each = stack.pop()
        fields = _FIELDS.get(type(each))
        if fields is None:  # a constant, or a word
            continue
        yield each
        for name in fields:
            value = getattr(each, name, None)
            if type(value) is list:
                stack += value
            elif value is not None:
                stack.append(value)


def get_last_word(node: ast.AST) -> str:
    """Return the last word of a name, or an empty text."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def list_words(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the last words of the names in some code."""
    return {get_last_word(each) for node in nodes for each in walk(node)} - {""}


def read_literal(node: ast.AST | None) -> object:
    """Return the value of a literal constant, a minus sign included; `...` for any other
    expression.
    """
    if isinstance(node, ast.Constant):
        return node.value
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        number = node.operand.value
        if isinstance(number, int | float):
            return -number
    return ...


UNSURE = "unsure"
"""The part of findings that depend on values that are not known."""


class Hit(NamedTuple):
    """What a rule finds in the text of one file; severity and fix are the rule's own where they are None.

    Attributes:
        unless_switched: whether it holds only where nothing turns op determinism on.
    """

    node: ast.AST
    message: str
    severity: Severity | None = None
    fix: str | None = None
    unless_switched: bool = False
