"""What an expression can stand for: constants, names of libraries, functions, objects, containers,
and their taints.

A taint says how chance has come into a value. After two branches, only what both of them say of a
value is known: `join` returns one that can be either.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Literal

from envlock.linter.interpreter.source_files import Source

Mode = Literal["order", "each", "place", "value", "pick"]
"""How chance is in a value.

- order: the order of its elements is by chance, as of `names = os.listdir(folder)`.
- each: it is one of them, as `name` in `for name in names`: harmless as long as each is treated alone.
- place: it counts them, as `at` in `for at, name in enumerate(names)`.
- value: it is another value in every run, as `random.random()`, `time.time()` or `names[0]`.
- pick: it is one of several known things, and chance says which, as `words[random.randrange(9)]`.
"""
Kind = Literal["order", "draw", "clock"]


@dataclass(frozen=True, eq=False)
class Chance:
    """A place where chance comes in.

    Attributes:
        rule: that it is reported by.
        kind: of chance.
        name: what is called there.
        node, source: the place.
        generator: that a draw is from, or an empty text.
    """

    rule: str
    kind: Kind
    name: str
    node: ast.AST
    source: Source
    generator: str = ""


Taints = frozenset[tuple[Chance, Mode]]
CLEAN: Taints = frozenset()
HASHES = "ENV305"
"""The rule for numbers of hash() and id()."""
LIMIT = 24
"""Taints of one value. In Keras 3.15.1 one union in fifty has more, 30 at most, and with twice the
limit its findings are the same.
"""


class Value:
    """A value about which nothing is known.

    Attributes:
        taints: how chance is in it.
        default: the constant that it is unless another value is given, or `...`.
        kind: `number`, `text`, or empty if unknown.
    """

    __slots__ = ("default", "kind", "taints")

    def __init__(self, taints: Taints = CLEAN, kind: str = "", default: object = ...) -> None:
        self.taints = taints
        self.kind = kind
        self.default = default

    def add_taints(self, taints: Taints) -> Value:
        """Return the value with more taints.

        Containers and objects of libraries are changed in place: all names of one see it. What has
        no content that chance could change, such as a function, stays without taints.
        """
        if not taints or taints <= self.taints:
            return self
        return Value(_limit_taints(self.taints | taints), self.kind, self.default)

    def truth(self) -> bool | None:
        """Return whether it is true, or None where that is not known."""
        return None


KINDS: dict[type, str] = {
    **dict.fromkeys((bool, int, float, complex), "number"),
    **dict.fromkeys((str, bytes), "text"),
}
"""What kind of value a constant of each type is."""
PLAIN = (str, int, float, bytes, type(None))  # to ask for a union takes four times as long


class Constant(Value):
    """A value that the text gives.

    Attributes:
        value: the constant.
        optional: whether a command line or a setting can give another one: then a branch that
            it decides is only the one that is taken by default.
        passed: whether it was given as an argument: then another caller may give another one.
    """

    __slots__ = ("optional", "passed", "value")

    def __init__(self, value: object, *, optional: bool = False, taints: Taints = CLEAN) -> None:
        self.taints = taints
        self.kind = KINDS.get(type(value), "")
        self.default = value
        self.value = value
        self.optional = optional
        # A command line gives its values as a caller does.
        self.passed = optional

    def add_taints(self, taints: Taints) -> Value:
        more = Constant(
            self.value, optional=self.optional, taints=_limit_taints(self.taints | taints)
        )
        more.passed = self.passed
        return more

    def make_argument(self) -> Constant:
        """Return the constant as a parameter has it."""
        given = Constant(self.value, optional=self.optional, taints=self.taints)
        given.passed = True
        return given

    def truth(self) -> bool | None:
        return bool(self.value)


class Library(Value):
    """A module, a class or a function that no file here defines, by its canonical name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def add_taints(self, taints: Taints) -> Value:
        return self


class Changeable(Value):
    """What is changed where it lies."""

    __slots__ = ()

    def add_taints(self, taints: Taints) -> Value:
        if taints:
            self.taints = _limit_taints(self.taints | taints)
        return self


class Made(Changeable):
    """The result of calling a name of a library.

    Attributes:
        name: the name that was called.
        arguments, keywords: those of the call.
        attributes: those that the program set on it.
        born: when it was made; loops that began later go around its use, not around it.
        node, source: the call, and its file.
        marks: what else is known.
    """

    __slots__ = ("arguments", "attributes", "born", "keywords", "marks", "name", "node", "source")

    def __init__(self, name: str, node: ast.AST, source: Source, born: int) -> None:
        super().__init__()
        self.name = name
        self.node = node
        self.source = source
        self.born = born
        self.arguments: list[Value] = []
        self.keywords: dict[str, Value] = {}
        self.attributes: dict[str, Value] = {}
        self.marks: set[str] = set()


class FileValue(Value):
    """A file of the project as a module."""

    __slots__ = ("source",)

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    def add_taints(self, taints: Taints) -> Value:
        return self


Definition = ast.FunctionDef | ast.AsyncFunctionDef
Code = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


_NUMBERS = count()


class Scope:
    """The names of a function or a file while it runs, and the scope around it."""

    __slots__ = ("is_class", "names", "number", "outer", "parent", "read", "source", "times")

    def __init__(self, source: Source, parent: Scope | None = None) -> None:
        self.source = source
        self.parent = parent
        self.names: dict[str, Value] = {}
        self.outer: dict[str, Scope] = {}  # where names lie that are `global` or `nonlocal`
        self.times: dict[str, int] = {}  # when each name was bound
        self.number = next(_NUMBERS)
        # The names that were read since they were bound: what the others hold may be used by code
        # that is not seen.
        self.read: set[str] = set()
        self.is_class = False

    def find(self, name: str) -> Value | None:
        """Return what a name stands for, or None where nothing has bound it."""
        scope: Scope | None = self.outer.get(name, self)
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                scope.read.add(name)
                return found
            scope = scope.parent
        return None

    def bind(self, name: str, value: Value) -> None:
        """Let a name stand for a value from now on."""
        scope = self.outer.get(name, self)
        scope.names[name] = value
        # A `global` name was read by other functions, which read the new value in their next call.
        if scope is self:
            scope.read.discard(name)

    def get_top(self) -> Scope:
        """Return the scope of the file."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


class Function(Value):
    """A function of the project with what it closes over, and what is bound to it already."""

    __slots__ = ("arguments", "keywords", "node", "owner", "scope")

    def __init__(self, node: Code, scope: Scope, owner: Value | None = None) -> None:
        super().__init__()
        self.node = node
        self.scope = scope
        self.owner = owner
        self.arguments: list[Value] = []
        self.keywords: dict[str, Value] = {}

    def bind_to(self, owner: Value) -> Function:
        """Return the function as a method of an object."""
        method = Function(self.node, self.scope, owner)
        method.arguments, method.keywords = self.arguments, self.keywords
        return method

    def add_taints(self, taints: Taints) -> Value:
        return self

    def truth(self) -> bool | None:
        return True


class Partial(Value):
    """A callable with some of its arguments."""

    __slots__ = ("arguments", "called", "keywords")

    def __init__(self, called: Value, arguments: list[Value], keywords: dict[str, Value]) -> None:
        super().__init__()
        self.called = called
        self.arguments = arguments
        self.keywords = keywords

    def add_taints(self, taints: Taints) -> Value:
        return self


class Method(Value):
    """A method of something that no file here defines."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Value, name: str) -> None:
        super().__init__(owner.taints)
        self.owner = owner
        self.name = name


class Class(Value):
    """A class of the project."""

    __slots__ = ("_lineage", "bases", "node", "scope")

    def __init__(self, node: ast.ClassDef, scope: Scope, bases: Iterable[Value]) -> None:
        super().__init__()
        self.node = node
        self.scope = scope
        self.bases = tuple(bases)
        self._lineage: tuple[Class, ...] | None = None

    def add_taints(self, taints: Taints) -> Value:
        return self

    def list_lineage(self) -> tuple[Class, ...]:
        """Return the class and the project's classes that it inherits from, in Python's own order:
        each before its parents, and what the first parent brings before the second parent.
        """
        if self._lineage is not None:  # every attribute of an object is looked up along it
            return self._lineage
        finished: list[Class] = []
        seen: set[Class] = {self}
        # Depth first, the last parent first: read backwards, this is the order that is wanted.
        entered = [(self, list(self.bases))]
        while entered:
            owner, waiting = entered[-1]
            if not waiting:
                finished.append(owner)
                entered.pop()
                continue
            base = waiting.pop()
            if isinstance(base, Class) and base not in seen:
                seen.add(base)
                entered.append((base, list(base.bases)))
        self._lineage = tuple(reversed(finished))
        return self._lineage

    def list_library_bases(self) -> list[str]:
        """Return the names of the foreign classes that it inherits from."""
        found: list[str] = []
        for owner in self.list_lineage():
            found.extend(base.name for base in owner.bases if isinstance(base, Library))
        return found

    def list_fields(self) -> list[str]:
        """Return the attributes that are annotated in its body, inherited ones first."""
        found: dict[str, None] = {}
        for each in reversed(self.list_lineage()):
            for statement in each.node.body:
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    found[statement.target.id] = None
        return list(found)

    def find_member(self, name: str) -> Value | None:
        """Return what the class or one that it inherits from has under a name."""
        for each in self.list_lineage():
            if name in each.scope.names:
                return each.scope.names[name]
        return None


class Instance(Value):
    """An object of a class of the project."""

    __slots__ = ("attributes", "born", "marks", "owner", "read")

    def __init__(self, owner: Class, born: int) -> None:
        super().__init__()
        self.owner = owner
        self.born = born
        self.attributes: dict[str, Value] = {}
        self.read: set[str] = set()
        self.marks: set[str] = set()

    def add_taints(self, taints: Taints) -> Value:
        return self


class Sequence(Changeable):
    """A list, a tuple, a set or what gives elements one after the other.

    Attributes:
        form: `list`, `tuple`, `set` or `iterator`.
        items: the elements, where all are known.
        element: what any of them can be.
        born: when it was made.
        most: how many there are at most, or None.
    """

    __slots__ = ("born", "element", "form", "items", "most")

    def __init__(
        self, form: str, items: list[Value] | None, element: Value | None, born: int
    ) -> None:
        super().__init__()
        self.form = form
        self.items = items
        self.born = born
        self.most: int | None = None if items is None else len(items)
        self.element: Value = element or join_all(items or [])

    def copy_as(self, form: str, born: int) -> Sequence:
        """Return another container of the same elements in the same order."""
        items = None if self.items is None else list(self.items)
        copy = Sequence(form, items, self.element, born)
        copy.taints, copy.most = self.taints, self.most
        return copy

    def add(self, value: Value) -> None:
        """Put one more element into it."""
        if self.items == []:
            # The element of an empty list is unknown; to join with that would hide what it is now.
            self.element = value
        else:
            self.element = join(self.element, value)
        self.items = None

    def truth(self) -> bool | None:
        return None if self.items is None or self.most is None else bool(self.items)


class Table(Changeable):
    """A dictionary: values by the keys that are known, what any key and value can be, and what
    makes a value for a key that is missing.
    """

    __slots__ = ("born", "element", "items", "key", "maker", "most")

    def __init__(self, born: int) -> None:
        super().__init__()
        self.items: dict[object, Value] = {}
        self.key: Value | None = None
        self.element: Value | None = None
        self.maker: Value | None = None
        self.born = born
        self.most: int | None = 0

    def store(self, key: Value, value: Value) -> None:
        """Put a value under a key."""
        if isinstance(key, Constant) and not key.optional and isinstance(key.value, PLAIN):
            self.items[key.value] = value
            if self.most is not None:
                self.most = len(self.items)
        else:
            self.most = None
        self.key = key if self.key is None else join(self.key, key)
        self.element = value if self.element is None else join(self.element, value)


class Either(Value):
    """One of several values."""

    __slots__ = ("options",)

    def __init__(self, options: tuple[Value, ...]) -> None:
        super().__init__(_unite_taints(options))
        self.options = options

    def add_taints(self, taints: Taints) -> Value:
        return Either(tuple(each.add_taints(taints) for each in self.options))

    def truth(self) -> bool | None:
        found = {each.truth() for each in self.options}
        return found.pop() if len(found) == 1 else None


OPTIONS = 6
"""Values that one value can be and that are kept apart, before it is unknown. In Keras 3.15.1 one
join in seventy has more; with twice as many, five findings of 226 come and three go.
"""


def options(value: Value) -> tuple[Value, ...]:
    """Return everything that a value can be."""
    return value.options if isinstance(value, Either) else (value,)


def join(one: Value, other: Value) -> Value:
    """Return a value that can be either."""
    if one is other or _is_same(one, other):
        return one
    if _is_merged(one) and _is_merged(other):
        return _merge_unknown([one, other])
    # A short cut, as the elements of long lists are joined one by one.
    if type(one) is Constant and type(other) is Constant:
        return Either((one, other))
    found: list[Value] = []
    for each in (*options(one), *options(other)):
        for known in found:
            if each is known or _is_same(each, known):
                break
        else:
            found.append(each)
    if all(_is_merged(each) for each in found):
        return _merge_unknown(found)
    if len(found) > OPTIONS:
        return Value(_unite_taints(found))
    return found[0] if len(found) == 1 else Either(tuple(found))


def join_all(values: Iterable[Value]) -> Value:
    """Return a value that can be any of some; unknown if there are no values."""
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return Value() if result is None else result


def _is_merged(value: Value) -> bool:
    """Return whether a value is nothing but its taints and kind, so that two become one.

    An array that nothing has filled is kept apart: `fill` changes it where it lies, and would not
    reach a copy.
    """
    return type(value) is Value and value.kind != "unfilled"


def _merge_unknown(found: list[Value]) -> Value:
    kind, default, taints = found[0].kind, found[0].default, found[0].taints
    for each in found[1:]:
        if each.kind != kind:
            kind = ""
        # A seed that is None on one path seeds nothing there.
        if each.default is None:
            default = None
        elif default is not None and each.default is not default:
            default = ...
        taints |= each.taints
    return Value(_limit_taints(taints), kind, default)


def _is_same(one: Value, other: Value) -> bool:
    if type(one) is not type(other) or one.taints != other.taints:
        return False
    if type(one) is Value:
        return one.kind == other.kind and one.default is other.default
    if isinstance(one, Constant) and isinstance(other, Constant):
        # `1 == True`, and a branch that asks for `is True` takes only one of them.
        same = type(one.value) is type(other.value) and one.value == other.value
        return same and one.optional == other.optional
    if isinstance(one, Library) and isinstance(other, Library):
        return one.name == other.name
    if isinstance(one, Function) and isinstance(other, Function):
        return one.node is other.node and one.owner is other.owner and one.scope is other.scope
    return False


def _unite_taints(values: Iterable[Value]) -> Taints:
    """Return the taints of several values."""
    found = CLEAN
    for value in values:
        if value.taints:
            found |= value.taints
    return found


def _limit_taints(taints: Taints) -> Taints:
    if len(taints) <= LIMIT:
        return taints
    # Sorted, as chances are hashed by their addresses: findings must not differ from run to run.
    return frozenset(sorted(taints, key=_get_place)[:LIMIT])


def _get_place(taint: tuple[Chance, Mode]) -> tuple[str, int, str]:
    return taint[0].source.path, getattr(taint[0].node, "lineno", 0), taint[1]


def in_mode(taints: Taints, *modes: Mode) -> Taints:
    """Return the taints that are of some modes."""
    if not taints:  # most values have none, and a new set costs more than this question
        return CLEAN
    return frozenset([each for each in taints if each[1] in modes])


def as_mode(taints: Taints, mode: Mode) -> Taints:
    """Return the same chances in another mode."""
    if not taints:
        return CLEAN
    return frozenset([(chance, mode) for chance, _ in taints])


def as_picks(taints: Taints) -> Taints:
    """Return the taints that an index gives to what is taken by it.

    A number that was drawn only picks. A list of indices, as of columns, hands on its own order.
    """
    if not taints:
        return CLEAN
    found: set[tuple[Chance, Mode]] = set()
    for chance, mode in taints:
        # A clock is reported where it seeds or sorts, not for what it picks. A hash picks a bucket.
        if mode == "place" or (chance.kind == "clock" and chance.rule != HASHES):
            continue
        if mode == "value" and chance.kind == "draw":
            mode = "pick"
        found.add((chance, mode))
    return frozenset(found)
