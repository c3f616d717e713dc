"""Which name means what where: the scopes of a module and what is bound in them, from one walk of its tree.

Nothing here recurses, so that no nesting of the code that is looked at can exhaust the stack.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Kind = Literal["import", "value", "element", "def", "class", "parameter", "other"]


@dataclass(frozen=True)
class Binding:
    """One way a name gets its meaning.

    Attributes:
        kind: `import` (`dotted` says of what), `value` (`node` is the expression assigned), `element` (`node` is what
            is iterated over or unpacked), `def` and `class` (`node` is the definition), `parameter`, or `other`.
    """

    kind: Kind
    node: ast.AST
    dotted: str = ""


@dataclass(eq=False)
class Scope:
    """A module, class, function, lambda or comprehension: the names bound in it, and the scope around it."""

    owner: ast.AST
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    outer: dict[str, Scope] = field(default_factory=dict)  # names declared `global` or `nonlocal`
    stars: list[str] = field(default_factory=list)  # modules of `from x import *`

    def bind(self, name: str, binding: Binding) -> None:
        """Add one more meaning to a name."""
        scope = self.outer.get(name, self)
        scope.bindings.setdefault(name, []).append(binding)

    def find(self, name: str) -> list[Binding] | None:
        """Return what the name may mean to code in this scope, by Python's rules; None: nothing binds it here."""
        scope: Scope | None = self.outer.get(name, self)
        first = True
        while scope is not None:
            if name in scope.bindings and (first or not isinstance(scope.owner, ast.ClassDef)):
                return scope.bindings[name]
            first = first and isinstance(scope.owner, _COMPREHENSIONS)
            scope = scope.parent
        return None

    @property
    def function(self) -> Function | None:
        """The innermost function that this scope is, or lies in."""
        scope: Scope | None = self
        while scope is not None and not isinstance(scope.owner, Function):
            scope = scope.parent
        return None if scope is None else scope.owner  # type: ignore[return-value]

    @property
    def top(self) -> Scope:
        """The module's scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = frozenset(
    {*_COMPREHENSIONS, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda}
)
_WORDS = frozenset(
    {
        *(
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
        ),
        *("asname", "module", "rest", "type_ignores"),
    }
)
"""Fields with operators, words and numbers, never with a node that matters."""


class Index:
    """The nodes of a tree by their type, the scope of every name in it, and the node around each."""

    def __init__(self, tree: ast.Module) -> None:
        self.top = Scope(tree, None)
        self.scopes: dict[ast.AST, Scope] = {tree: self.top}
        self.by_type: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        self._tree = tree
        self._parents: dict[ast.AST, ast.AST] = {}
        self._noted: dict[
            ast.AST, tuple[list[ast.AST], list[ast.AST]]
        ] = {}  # children: others, statements
        self._walk()

    def _walk(self) -> None:
        """Go through the tree in the order of the text; a scope on the stack says where what follows lies."""
        by_type, scopes, scope = self.by_type, self.scopes, self.top
        names, attributes = by_type[ast.Name], by_type[ast.Attribute]
        stack: list[Any] = [self._tree]
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is ast.Name:
                scopes[node] = scope
                names.append(node)
            elif kind is ast.Attribute:
                attributes.append(node)
                stack.append(node.value)
            elif kind in _FIELDS:
                by_type[kind].append(node)
                if kind in _BINDERS:
                    _BINDERS[kind](node, scope)
                if kind in _SCOPES:
                    scope = self._entered(node, scope, stack)
                    continue
                for value in map(node.__dict__.get, _FIELDS[kind]):
                    if type(value) is list:
                        stack += value[::-1]
                    else:
                        stack.append(value)
            elif kind is Scope:
                scope = node

    def _entered(self, node: Any, scope: Scope, stack: list[Any]) -> Scope:
        """Put the children of what makes a scope on the stack; return the scope of the first of them."""
        inner = self.scopes[node] = Scope(node, scope)
        stack.append(scope)
        if isinstance(node, _COMPREHENSIONS):
            stack.extend(_children(node)[::-1])
            return inner
        if isinstance(node, Function):
            _parameters(node.args, inner)
        body = node.body if isinstance(node.body, list) else [node.body]
        inside = {id(statement) for statement in body}
        stack.extend(body[::-1])
        stack.append(inner)
        stack.extend(child for child in _children(node)[::-1] if id(child) not in inside)
        return scope

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node around this one, which is looked up when it is asked for: few are."""
        found = self._parents.get(node)
        if found is None and node is not self._tree:
            self._look_for(node)
            found = self._parents.get(node)
        return found

    def _look_for(self, node: ast.AST) -> None:
        """Note the parents on the way to a node: by the places in the text, or all where these do not say."""
        for by_place in (True, False):
            stack: list[ast.AST] = [self._tree]
            while stack and node not in self._parents:
                around = stack.pop()
                if around not in self._noted:
                    children = _children(around)
                    self._parents.update(dict.fromkeys(children, around))
                    parts: tuple[list[ast.AST], list[ast.AST]] = ([], [])
                    for child in children:
                        parts[isinstance(child, ast.stmt)].append(child)
                    self._noted[around] = parts
                others, statements = self._noted[around]
                stack += (
                    _that_can_hold(others, statements, node) if by_place else others + statements
                )


def _that_can_hold(
    others: list[ast.AST], statements: list[ast.AST], node: ast.AST
) -> list[ast.AST]:
    """Return the children in which a node can lie by their places; statements lie one after the other."""
    line = getattr(node, "lineno", None)
    if line is None:
        return others + statements
    at = bisect_left(statements, line, key=_end)
    near = statements[at : bisect_right(statements, line, lo=at, key=_start)]
    return [child for child in others if _start(child) <= line <= _end(child)] + near


def _start(node: ast.AST) -> int:
    """Return the first line of a node, decorators included; 0 for what has no place and can hold everything."""
    decorators = getattr(node, "decorator_list", None)
    first: int = getattr(decorators[0] if decorators else node, "lineno", 0)
    return first


def _end(node: ast.AST) -> float:
    last: float = getattr(node, "end_lineno", None) or inf
    return last


def _children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes below one, without constants, operators and the like."""
    found: list[ast.AST] = []
    for name in _FIELDS.get(type(node), ())[::-1]:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found.extend([item for item in value if isinstance(item, ast.AST)])
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def _fields_with_nodes() -> dict[type[ast.AST], tuple[str, ...]]:
    """Return for each type of node the fields that can hold nodes, the last first; a constant has none that matter."""
    kinds: list[type[ast.AST]] = [ast.AST]
    for kind in kinds:
        kinds += kind.__subclasses__()
    found = {
        kind: tuple(name for name in kind._fields[::-1] if name not in _WORDS) for kind in kinds
    }
    del found[ast.Constant]
    return found


_FIELDS = _fields_with_nodes()


def _parameters(arguments: ast.arguments, scope: Scope) -> None:
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    for argument in every:
        if argument is not None:
            scope.bind(argument.arg, Binding("parameter", argument))


def _import(node: ast.Import, scope: Scope) -> None:
    for alias in node.names:
        if alias.asname is not None:
            scope.bind(alias.asname, Binding("import", node, alias.name))
        else:
            top = alias.name.partition(".")[0]
            scope.bind(top, Binding("import", node, top))


def _import_from(node: ast.ImportFrom, scope: Scope) -> None:
    module = "." * node.level + (node.module or "")
    for alias in node.names:
        if alias.name == "*":
            scope.stars.append(module)
        else:
            joint = "" if module.endswith(".") else "."
            scope.bind(
                alias.asname or alias.name, Binding("import", node, f"{module}{joint}{alias.name}")
            )


def _targets(target: ast.AST, value: ast.AST | None, scope: Scope, kind: Kind) -> None:
    """Bind every name of an assignment's left side; only a plain name gets the value itself."""
    stack = [(target, kind)]
    while stack:
        node, kind = stack.pop()
        if isinstance(node, ast.Name):
            scope.bind(node.id, Binding(kind if value is not None else "other", value or node))
        elif isinstance(node, ast.Tuple | ast.List):
            stack.extend((item, "other") for item in node.elts)
        elif isinstance(node, ast.Starred):
            stack.append((node.value, "other"))


def _assign(node: ast.Assign, scope: Scope) -> None:
    for target in node.targets:
        values = node.value.elts if isinstance(node.value, ast.Tuple) else []
        if isinstance(target, ast.Tuple) and len(target.elts) == len(values):  # a, b = x, y
            for item, value in zip(target.elts, values, strict=True):
                _targets(item, value, scope, "value")
        else:
            _targets(target, node.value, scope, "value")


def _annotated(node: ast.AnnAssign, scope: Scope) -> None:
    if node.value is not None:
        _targets(node.target, node.value, scope, "value")


def _augmented(node: ast.AugAssign, scope: Scope) -> None:
    _targets(node.target, node.value, scope, "other")


def _walrus(node: ast.NamedExpr, scope: Scope) -> None:
    while isinstance(scope.owner, _COMPREHENSIONS) and scope.parent is not None:
        scope = scope.parent
    _targets(node.target, node.value, scope, "value")


def _loop(node: ast.For | ast.AsyncFor, scope: Scope) -> None:
    _targets(node.target, node.iter, scope, "element")


def _comprehension(node: ast.comprehension, scope: Scope) -> None:
    _targets(node.target, node.iter, scope, "element")


def _with(node: ast.withitem, scope: Scope) -> None:
    if node.optional_vars is not None:
        _targets(node.optional_vars, node.context_expr, scope, "other")


def _handler(node: ast.ExceptHandler, scope: Scope) -> None:
    if node.name is not None:
        scope.bind(node.name, Binding("other", node))


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
    scope.bind(node.name, Binding("def", node))


def _class(node: ast.ClassDef, scope: Scope) -> None:
    scope.bind(node.name, Binding("class", node))


def _global(node: ast.Global, scope: Scope) -> None:
    for name in node.names:
        if scope.parent is not None:
            scope.outer[name] = scope.top


def _nonlocal(node: ast.Nonlocal, scope: Scope) -> None:
    around = scope.parent
    for name in node.names:
        while around is not None and name not in around.bindings and around.parent is not None:
            around = around.parent
        if around is not None:
            scope.outer[name] = around


def _match(node: ast.AST, scope: Scope) -> None:
    name = getattr(node, "name", None) or getattr(node, "rest", None)
    if isinstance(name, str):
        scope.bind(name, Binding("other", node))


_BINDERS: dict[type[ast.AST], Callable[[Any, Scope], None]] = {
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.NamedExpr: _walrus,
    ast.For: _loop,
    ast.AsyncFor: _loop,
    ast.comprehension: _comprehension,
    ast.withitem: _with,
    ast.ExceptHandler: _handler,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.MatchAs: _match,
    ast.MatchStar: _match,
    ast.MatchMapping: _match,
}
