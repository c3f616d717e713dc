"""A module as the rules see it: its nodes by type, and the full dotted name of every expression.

Names are written in one canonical way, so that a rule need not know how the code imports them: `tf.` for tensorflow
(also for `tf.compat.v1`), `keras.` for `tf.keras` and tf_keras, `numpy.`.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

from envlock.linter.names import canonical
from envlock.linter.notebooks import Cells
from envlock.linter.scopes import Binding, Function, Index, Scope

Node = TypeVar("Node", bound=ast.AST)
Definition = ast.FunctionDef | ast.AsyncFunctionDef

DEPTH = 24
"""How many assignments and calls are followed before a name is given up: code that is longer is not readable either."""


class Elsewhere(Protocol):
    """What a module asks of the other files of its project."""

    def meaning(self, name: str, path: str) -> str | None:
        """Return what an imported name stands for to a file, or None for what no file of the project holds."""

    def defines(self, name: str) -> bool:
        """Return whether another file has a function or a class of this name."""


class Module:
    """One file.

    Attributes:
        path: as it is shown.
        project: what knows the other files, or None.
        cells: where the cells begin, of a notebook.
    """

    def __init__(
        self,
        path: str,
        text: str,
        tree: ast.Module,
        project: Elsewhere | None = None,
        cells: Cells | None = None,
    ) -> None:
        self.path = path
        self.project = project
        self.cells = cells
        self.text = text
        self.tree = tree
        self._index = Index(tree)
        self._names: dict[ast.AST, str | None] = {}
        self._meanings: dict[int, str | None] = {}
        self._starts: dict[
            tuple[Scope | None, str], str | None
        ] = {}  # what a name means in a scope

    @cached_property
    def lines(self) -> list[str]:
        """The text by lines, as the parser counts them."""
        return re.split("\r\n|\r|\n", self.text)

    def nodes(self, kind: type[Node]) -> list[Node]:
        """Return every node of one type, in the order of the text."""
        found: list[Node] = self._index.by_type.get(kind, [])  # type: ignore[assignment]
        return found

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node around this one."""
        return self._index.parent(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around this one, the innermost first."""
        around = self._index.parent(node)
        while around is not None:
            yield around
            around = self._index.parent(around)

    def function_around(self, node: ast.AST) -> Function | None:
        """Return the innermost function or lambda that this code is in; None at module level."""
        scope = self._index.scopes.get(node) if isinstance(node, ast.Name) else None
        if scope is not None:
            return scope.function
        return next(
            (around for around in self.ancestors(node) if isinstance(around, Function)), None
        )

    def class_around(self, node: ast.AST) -> ast.ClassDef | None:
        """Return the class whose method this code is in, or None."""
        return next(
            (around for around in self.ancestors(node) if isinstance(around, ast.ClassDef)), None
        )

    @cached_property
    def calls(self) -> list[tuple[ast.Call, str]]:
        """Every call of something that has a name, with it, in the order of the text."""
        named = [(call, self.name(call.func)) for call in self.nodes(ast.Call)]
        return [(call, name) for call, name in named if name is not None]

    @cached_property
    def named(self) -> dict[str, list[ast.Call]]:
        """The calls by the name of what is called, each list in the order of the text."""
        found: dict[str, list[ast.Call]] = {}
        for call, name in self.calls:
            found.setdefault(name, []).append(call)
        return found

    @cached_property
    def _worded(self) -> dict[str, list[ast.Call]]:
        """The calls by the last word of what is called, as it is written."""
        found: dict[str, list[ast.Call]] = {}
        for call in self.nodes(ast.Call):
            function = call.func
            word = (
                function.attr
                if isinstance(function, ast.Attribute)
                else getattr(function, "id", "")
            )
            found.setdefault(word, []).append(call)
        return found

    @cached_property
    def read(self) -> dict[str, list[ast.Name]]:
        """The names that are read, by their text."""
        found: dict[str, list[ast.Name]] = {}
        for use in self.nodes(ast.Name):
            if isinstance(use.ctx, ast.Load):
                found.setdefault(use.id, []).append(use)
        return found

    @property
    def words(self) -> Collection[str]:
        """The last words of all that is called."""
        return self._worded.keys()

    def called(self, names: Collection[str]) -> list[tuple[ast.Call, str]]:
        """Return every call of something of these names, with its name, in the order of the text."""
        found = [
            (call, name) for name, calls in self.named.items() if name in names for call in calls
        ]
        return sorted(found, key=lambda each: _place(each[0]))

    def worded(self, words: Collection[str]) -> list[ast.Call]:
        """Return every call of `word(...)` or `x.word(...)`, in the order of the text."""
        return in_order(call for word in words for call in self._worded.get(word, ()))

    def methods(self, words: Collection[str]) -> list[tuple[ast.Call, ast.Attribute]]:
        """Return every call of `x.word(...)`, with what is called, in the order of the text."""
        return [
            (call, call.func) for call in self.worded(words) if isinstance(call.func, ast.Attribute)
        ]

    @cached_property
    def imports(self) -> frozenset[str]:
        """Every module that is imported anywhere in the file, as it is written; with a dot in front: relative."""
        plain = {alias.name for node in self.nodes(ast.Import) for alias in node.names}
        for node in self.nodes(ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            joint = "" if module.endswith(".") else "."
            plain.update((module, *(f"{module}{joint}{alias.name}" for alias in node.names)))
        return frozenset(plain)

    @cached_property
    def packages(self) -> frozenset[str]:
        """The top-level names of what is imported or called, canonical: `tf`, `keras`, `numpy`."""
        found = {
            canonical(name).partition(".")[0] for name in self.imports if not name.startswith(".")
        }
        passed = {name.partition(".")[0] for name in self.named if not name.startswith(".")}
        return frozenset(found | passed)

    @cached_property
    def uses_keras(self) -> bool:
        """Whether anything of Keras is named."""
        if "keras" in self.packages or "keras" not in self.text:
            return "keras" in self.packages
        return any(
            (self.name(node) or "").startswith("keras") for node in self.nodes(ast.Attribute)
        )

    def name(self, node: ast.AST) -> str | None:
        """Return the canonical dotted name of what an expression stands for: a module, a function, a class, or None.

        A name that could mean two things means none, unless all of them are one.
        """
        if node not in self._names:
            self._names[node] = self._resolve(node, DEPTH)
        return self._names[node]

    def _resolve(self, node: ast.AST, depth: int) -> str | None:
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or depth == 0:
            return None
        start = self._name_of(node, depth)
        if start is None:
            return None
        full = canonical(".".join([start, *reversed(attributes)]))
        return (self._elsewhere(full) or full) if full.startswith("./") else full

    def _elsewhere(self, name: str) -> str | None:
        """Return what another file of the project makes of a name, canonical, or None."""
        found = self.project.meaning(name, self.path) if self.project is not None else None
        return found if found is None or found.startswith("./") else canonical(found)

    def passed_on(self) -> dict[str, str]:
        """Return the names that importers of this file get from elsewhere through it, with their meaning."""
        names = {
            name: self._meant(bindings, DEPTH)
            for name, bindings in self._index.top.bindings.items()
        }
        return {name: meaning for name, meaning in names.items() if meaning is not None}

    def stars(self) -> list[str]:
        """Return the modules of which every name is imported."""
        return self._index.top.stars

    def _name_of(self, node: ast.Name, depth: int) -> str | None:
        key = self._index.scopes.get(node), node.id
        if key not in self._starts:
            bindings = self.bindings(node)
            unbound = (
                None
                if bindings is not None or hasattr(builtins, node.id)
                else self._from_star(node.id)
            )
            self._starts[key] = unbound if bindings is None else self._meant(bindings, depth)
        return self._starts[key]

    def _from_star(self, name: str) -> str | None:
        """Return what `from x import *` may have given: from a file of the project, else from the last one."""
        for star in reversed(self._index.top.stars):
            found = self._elsewhere(f"{star}{'' if star.endswith('.') else '.'}{name}")
            if found is not None and (
                not found.startswith("./") or (self.project and self.project.defines(found))
            ):
                return found
        last = self._index.top.stars[-1:]
        return f"{last[0]}.{name}" if last and not last[0].startswith(".") else None

    def _meant(self, bindings: list[Binding], depth: int) -> str | None:
        """Return the one meaning of all bindings of a name."""
        key = id(bindings)  # the scope holds them as long as this module lives
        if key not in self._meanings:
            self._meanings[key] = (
                None  # while it is looked for: a name that is made of itself means nothing
            )
            found = {self._meaning(binding, depth) for binding in bindings if not _is_none(binding)}
            words = {name.rpartition(".")[2] if name else name for name in found}
            imported = all(
                binding.kind == "import" for binding in bindings
            )  # one of them stands in for the other
            self._meanings[key] = (
                min(found, key=str) if len(found) == 1 or (imported and len(words) == 1) else None
            )
        return self._meanings[key]

    def _meaning(self, binding: Binding, depth: int) -> str | None:
        if binding.kind == "import":
            passed = self._elsewhere(binding.dotted)
            return passed or (None if binding.dotted.startswith(".") else canonical(binding.dotted))
        if binding.kind == "value" and isinstance(binding.node, ast.Name | ast.Attribute):
            return self._resolve(binding.node, depth - 1)
        return None

    def bindings(self, node: ast.Name) -> list[Binding] | None:
        """Return what a name may stand for; None where nothing in this file binds it."""
        scope = self._index.scopes.get(node)
        return None if scope is None else scope.find(node.id)

    def values(self, node: ast.AST) -> list[ast.AST]:
        """Return the expressions that a name, or an attribute of `self`, was given anywhere; [] where unknown."""
        if isinstance(node, ast.Name):
            bindings = self.bindings(node) or []
            return [binding.node for binding in bindings if binding.kind in ("value", "class")]
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("self", "cls")
        ):
            around = self.class_around(node)
            return [] if around is None else self._attributes.get((around, node.attr), [])
        return []

    @cached_property
    def _attributes(self) -> dict[tuple[ast.ClassDef, str], list[ast.AST]]:
        """What is assigned to `self.x` in each class."""
        found: dict[tuple[ast.ClassDef, str], list[ast.AST]] = {}
        for assign in self.nodes(ast.Assign):
            for target in assign.targets:
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    around = (
                        self.class_around(target) if target.value.id in ("self", "cls") else None
                    )
                    if around is not None:
                        found.setdefault((around, target.attr), []).append(assign.value)
        return found

    def definition(self, node: ast.AST, depth: int = DEPTH) -> Function | None:
        """Return the function of this file that an expression stands for: a name, a lambda, `self.x`, a partial."""
        while depth:
            depth -= 1
            if isinstance(node, ast.Lambda):
                return node
            if isinstance(
                node, ast.Call
            ):  # an object, functools.partial(f, ...), or what decorates f
                called = self._method(node, "__call__") or self._method(node, "call")
                if called is not None or not node.args:
                    return called
                node = node.args[0]
                continue
            found = self._definition(node)
            if found is None or isinstance(found, Function):
                return found
            node = found
        return None

    def _definition(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Name):
            bindings = self.bindings(node) or []
            last = bindings[-1] if bindings else None
            return last.node if last is not None and last.kind in ("def", "value") else None
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("self", "cls")
        ):
            around = self.class_around(node)
            found = None if around is None else _member(around, node.attr)
            return found or next(
                (each for each in self.values(node) if isinstance(each, ast.Call)), None
            )
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Call):
            made = [node.value] if isinstance(node.value, ast.Call) else self.values(node.value)
            methods = (self._method(each, node.attr) for each in made if isinstance(each, ast.Call))
            return next((method for method in methods if method is not None), None)
        return None

    def _method(self, call: ast.Call, name: str) -> Definition | None:
        """Return the method of what a call makes, where that is an object of a class of this file."""
        bindings = (self.bindings(call.func) or []) if isinstance(call.func, ast.Name) else []
        last = bindings[-1].node if bindings else None
        return _member(last, name) if isinstance(last, ast.ClassDef) else None

    def line(self, number: int) -> str:
        """Return a line of the text, counted from 1; empty after the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""


def in_order(calls: Iterable[ast.Call]) -> list[ast.Call]:
    """Return calls in the order of the text, each once."""
    return sorted(dict.fromkeys(calls), key=_place)


def _place(node: ast.Call) -> tuple[int, int, int, int]:
    """Return a key that sorts calls in the order of the text, the outer one first."""
    return node.lineno, node.col_offset, -(node.end_lineno or 0), -(node.end_col_offset or 0)


def _member(owner: ast.ClassDef, name: str) -> Definition | None:
    """Return the method that a class defines under a name."""
    return next(
        (each for each in owner.body if isinstance(each, Definition) and each.name == name), None
    )


def _is_none(binding: Binding) -> bool:
    """Return whether this is `name = None`, as it stands beside an import that may fail."""
    return (
        binding.kind == "value"
        and isinstance(binding.node, ast.Constant)
        and binding.node.value is None
    )


def constant(node: ast.AST | None) -> object:
    """Return the value of a literal constant, a minus sign included; `...` for any other expression."""
    if isinstance(node, ast.Constant):
        return node.value
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        number = node.operand.value
        return -number if isinstance(number, int | float) else ...
    return ...


@dataclass(frozen=True)
class Hit:
    """What a rule found at a node; severity, fix and source are the rule's own where they are None.

    It counts where the programs that the file is part of do all of `needs` and nothing of `unless` (words of
    `program.py`, such as `switch`): only when every file was read is that known.
    """

    node: ast.AST
    message: str
    severity: str | None = None
    fix: str | None = None
    source: str | None = None
    needs: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()
