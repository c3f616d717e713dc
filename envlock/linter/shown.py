"""Where a value ends: whether all that is made of it is shown or printed, so that no training sees it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from envlock.linter.module import DEPTH, Definition, Module
from envlock.linter.names import (
    ASKING_METHODS,
    FILLING_METHODS,
    KEEPERS,
    ORDERLESS,
    PICKS,
    SHOWERS,
    SHOWING_METHODS,
    SHOWING_WORDS,
    STEP_WORDS,
    TEACHING_WORDS,
    TESTED_WORDS,
    TRAINING_METHODS,
    TRAINING_WORDS,
    VALUE_MAPS,
    WITHOUT_EFFECT,
)
from envlock.linter.positions import assigns, is_renewed
from envlock.linter.purposes import words
from envlock.linter.sorting import writes_to_file

MEASURES = frozenset({"shape", "size", "ndim", "dtype", "device"})
"""What an array is like, whatever its values are."""
_PASSES = (
    *(
        ast.keyword,
        ast.Starred,
        ast.List,
        ast.Tuple,
        ast.Set,
        ast.Dict,
        ast.BinOp,
        ast.UnaryOp,
        ast.Subscript,
    ),
    *(
        ast.Slice,
        ast.Attribute,
        ast.IfExp,
        ast.ListComp,
        ast.SetComp,
        ast.GeneratorExp,
        ast.DictComp,
        ast.JoinedStr,
    ),
    *(ast.FormattedValue, ast.Await, ast.BoolOp, ast.Compare),
)


def only_shows(module: Module, node: ast.AST) -> bool:
    """Return whether a draw is only shown: its function is called so, or it picks what is shown or tested."""
    function = module.function_around(node)
    if not SHOWING_WORDS.isdisjoint(words(getattr(function, "name", ""))):
        return True
    if not isinstance(node, ast.Call):
        return False
    picks = getattr(node.func, "attr", getattr(node.func, "id", "")) in PICKS
    ways = _Ways(module, picked=True, tests=picks)
    return ways.end_shown(node) and (picks or ways.pictured)


def only_shown(module: Module, start: ast.AST) -> bool:
    """Return whether every way that an order takes in a file ends where it is shown."""
    return _Ways(module).end_shown(start)


class _Ways:
    """The ways of one value; what was followed once is not followed again."""

    def __init__(self, module: Module, *, picked: bool = False, tests: bool = False) -> None:
        self.module = module
        self.picked = (
            picked  # a value that functions which are not known may learn from; else an order
        )
        self.tests = tests  # what a model is tested with is no training either
        self.shown = False
        self.pictured = True  # nothing was shown but pictures
        self.stack: list[ast.AST] = []
        self.seen: set[ast.AST] = set()
        self.entered: set[ast.AST | None] = (
            set()
        )  # functions whose results are followed where they are called

    def end_shown(self, start: ast.AST) -> bool:
        self.stack.append(start)
        while self.stack:
            node = self.stack.pop()
            if node in self.seen:
                continue
            self.seen.add(node)
            if len(self.seen) > DEPTH * 8 or not self._ends_shown(node):
                return False
        return self.shown

    def _ends_shown(self, node: ast.AST) -> bool:
        """Return whether this place of the value is fine; what it is handed to by name is put on the stack."""
        statement = next(
            (each for each in self.module.ancestors(node) if isinstance(each, ast.stmt)), None
        )
        if (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Call)
            and self._shows(statement.value)
        ):
            return self._show(pictured=self._draws(statement.value))
        for around in self.module.ancestors(node):
            if isinstance(around, ast.Call):
                verdict = self._call(around, node)
                if verdict is not None:
                    return verdict
            elif isinstance(around, ast.comprehension):
                if node is not around.iter:
                    return False
            elif isinstance(around, ast.stmt | ast.withitem | ast.NamedExpr):
                return self._statement(around, node)
            elif isinstance(around, ast.Attribute) and around.attr in MEASURES:
                return True
            elif not isinstance(around, _PASSES):
                return False
            node = around
        return False

    def _call(self, call: ast.Call, node: ast.AST) -> bool | None:
        """Return whether a call shows a value, or None where its result is made of it."""
        name, method = self.module.name(call.func) or "", getattr(call.func, "attr", "")
        if node is call.func:
            if method in (*TRAINING_METHODS, "run", "save"):
                return False
            return self._show() if method in SHOWING_METHODS else None
        word = method or getattr(call.func, "id", "")
        said = set(words(word))
        if self._shows(call):
            return self._show(pictured=self._draws(call))
        plain = isinstance(call.func, ast.Name) and self.module.bindings(call.func) is None
        if plain and word in ORDERLESS and not self.picked:
            return True
        if method in FILLING_METHODS and isinstance(call.func, ast.Attribute):
            return self._into(call.func.value)
        if word == "run" and self._fetches(call):
            return None
        if word in KEEPERS or word in TRAINING_METHODS or said & TEACHING_WORDS:
            return False
        known = (
            word != "range"
            if plain
            else name.startswith(WITHOUT_EFFECT) or method in ASKING_METHODS
        )
        known = known or not (
            self.picked or self.module.definition(call.func) or name.startswith("./")
        )
        known = known or self._is_object(call.func) or self._enters(call, node)
        if not isinstance(self.module.parent(call), ast.Expr):
            return None if known else False
        filled = (
            isinstance(call.func, ast.Attribute) and not name and not self.picked
        )  # example.ParseFromString(record)
        return filled and isinstance(call.func, ast.Attribute) and self._into(call.func.value)

    def _is_object(self, called: ast.expr) -> bool:
        """Return whether what is called is an object that a call made, as a model is: it computes what it returns."""
        made = self.module.values(called)
        return bool(made) and all(isinstance(each, ast.Call) for each in made)

    def _enters(self, call: ast.Call, node: ast.AST) -> bool:
        """Return whether a value is given to a function of this file, and follow it there to what that returns."""
        function = self.module.definition(call.func)
        places = (
            [each.arg for each in function.args.args] if isinstance(function, Definition) else []
        )
        at = call.args.index(node) if node in call.args else len(places)
        if (
            not isinstance(function, Definition)
            or not isinstance(call.func, ast.Name)
            or at >= len(places)
        ):
            return False
        self.entered.add(function)
        reads = [
            use for use in ast.walk(function) if isinstance(use, ast.Name) and use.id == places[at]
        ]
        self.stack.extend(use for use in reads if isinstance(use.ctx, ast.Load))
        return True

    def _shows(self, call: ast.Call) -> bool:
        """Return whether a call shows what it is given, by its name."""
        word = getattr(call.func, "attr", "") or getattr(call.func, "id", "")
        if word == "print" and writes_to_file(call):
            return False
        if (
            word in VALUE_MAPS and call.args and isinstance(call.args[0], ast.Name)
        ):  # pool.starmap(plot, values)
            word = call.args[0].id
        if word in ("print", "pprint", *SHOWING_METHODS) or not SHOWING_WORDS.isdisjoint(
            words(word)
        ):
            return True
        return (self.module.name(call.func) or "").startswith(SHOWERS)

    def _draws(self, call: ast.Call) -> bool:
        """Return whether a call that shows draws a picture."""
        return getattr(call.func, "id", "") not in ("print", "pprint") and not self._logs(call)

    def _logs(self, call: ast.Call) -> bool:
        return "logging." in (self.module.name(call.func) or "")

    def _fetches(self, call: ast.Call) -> bool:
        """Return whether a session only computes something here: `session.run(images, feed_dict={noise: drawn})`."""
        fetched = call.args[0] if call.args else None
        names = [*ast.walk(fetched)] if isinstance(fetched, ast.Name | ast.Attribute) else []
        said = {
            word
            for each in names
            for word in words(getattr(each, "id", "") or getattr(each, "attr", ""))
        }
        return (
            bool(names)
            and not said & {*TRAINING_WORDS, *STEP_WORDS}
            and any(each.arg for each in call.keywords)
        )

    def _show(self, *, pictured: bool = False) -> bool:
        self.shown = True
        self.pictured = self.pictured and pictured
        return True

    def _into(self, owner: ast.AST) -> bool:
        """Follow what a list, a table or an array is filled with to where that is read."""
        while isinstance(owner, ast.Subscript | ast.Attribute) and not _is_self(owner):
            owner = owner.value
        if not isinstance(owner, ast.Name) or any(
            each.kind == "parameter" for each in self.module.bindings(owner) or []
        ):
            return False
        reads = [
            each for each in self._reads(owner, self._beginning(owner)) if not self._is_filled(each)
        ]
        self.stack.extend(reads)
        return bool(reads)

    def _beginning(self, owner: ast.Name) -> ast.stmt | None:
        """Return the statement that surely gave a list its value, or None."""
        inside: ast.AST = owner
        for around in self.module.ancestors(owner):
            if isinstance(around, Definition):
                return None
            for block in (getattr(around, "body", None), getattr(around, "orelse", None)):
                before = (
                    block[: block.index(inside)]
                    if isinstance(block, list) and inside in block
                    else []
                )
                found: ast.stmt | None = next(
                    (each for each in reversed(before) if assigns(each, owner.id)), None
                )
                if found is not None:
                    return found
            inside = around
        return None

    def _is_filled(self, use: ast.AST) -> bool:
        """Return whether a list is only put something into here: `items.append(x)`, `items[i] = x`."""
        around = self.module.parent(use)
        if isinstance(around, ast.Attribute):
            return around.attr in FILLING_METHODS or isinstance(
                self.module.parent(self.module.parent(around) or use), ast.Expr
            )
        return (
            isinstance(around, ast.Subscript)
            and around.value is use
            and isinstance(around.ctx, ast.Store)
        )

    def _statement(self, statement: ast.AST, node: ast.AST) -> bool:
        """Return whether a statement can be followed: its names are put on the stack."""
        if isinstance(statement, ast.Expr):
            return (
                self.module.cells is not None and self._show()
            )  # a notebook shows what stands alone
        if isinstance(statement, ast.Assert | ast.Raise | ast.Delete):
            return True
        if isinstance(statement, ast.Return):
            return self.module.function_around(statement) in self.entered
        if isinstance(statement, ast.For | ast.AsyncFor):
            return node is statement.iter and self._bound(statement.target, statement)
        if isinstance(statement, ast.withitem):
            return statement.optional_vars is None or self._bound(
                statement.optional_vars, statement
            )
        if isinstance(statement, ast.Assign):
            return all(self._bound(target, statement) for target in statement.targets)
        if isinstance(statement, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            return self._bound(statement.target, statement)
        return False

    def _bound(self, target: ast.AST, place: ast.AST) -> bool:
        if isinstance(target, ast.Tuple | ast.List):
            return sum(self._bound(each, place) for each in target.elts) > 0
        if isinstance(target, ast.Subscript):
            return self._into(target.value)
        if not isinstance(target, ast.Name):
            return isinstance(target, ast.Starred) and self._bound(target.value, place)
        reads = list(self._reads(target, place))
        rest = [use for use in reads if not (self.tests and self._is_of_tests(use))]
        self.shown = self.shown or len(rest) < len(reads)
        self.stack.extend(rest)
        return bool(reads)

    def _reads(self, target: ast.Name, place: ast.AST | None) -> Iterator[ast.AST]:
        """Yield where a name is read that gets its value at a place: until it surely gets another one."""
        bound, here = self.module.bindings(target), self.module.function_around(target)
        first, last = (0, 1 << 40) if place is None else self._extent(target, place)
        for use in self.module.read.get(target.id, ()):
            if self.module.bindings(use) is not bound:
                continue
            if first <= use.lineno <= last or self.module.function_around(use) is not here:
                yield use

    def _extent(self, target: ast.Name, place: ast.AST) -> tuple[int, int]:
        """Return the lines from where a name gets a value, or the loop around that, to where it gets the next one."""
        statement = place if isinstance(place, ast.stmt) else self.module.parent(place)
        first, last = getattr(statement, "lineno", 0), 1 << 40
        inside: ast.AST = statement or place
        for around in self.module.ancestors(inside):
            for block in (getattr(around, "body", None), getattr(around, "orelse", None)):
                if isinstance(block, list) and inside in block:
                    following = block[block.index(inside) + 1 :]
                    last = min(
                        [last, *(each.lineno for each in following if assigns(each, target.id))]
                    )
            if isinstance(around, ast.For | ast.AsyncFor | ast.While) and not is_renewed(
                around, inside, target.id
            ):
                first = around.lineno
            if isinstance(around, Definition):
                break
            inside = around
        return first, last

    def _is_of_tests(self, use: ast.AST) -> bool:
        """Return whether a name stands in a statement with what a model is tested with, and no training."""
        statement = next(
            around for around in self.module.ancestors(use) if isinstance(around, ast.stmt)
        )
        if not isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr):
            return False
        others = (
            each
            for each in ast.walk(statement)
            if getattr(each, "id", "") != getattr(use, "id", "")
        )
        names = (getattr(each, "id", "") or getattr(each, "attr", "") for each in others)
        told = {word for name in names for word in words(name)}
        return not told & TRAINING_WORDS and not told.isdisjoint(TESTED_WORDS)


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in ("self", "cls")
