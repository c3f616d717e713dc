"""Where an order goes that nobody promised: whether it reaches data, or is sorted, counted or only asked before.

An order is followed as one of three things: `sequence` (positions tell it), `keys` (a dict that only iterating shows it
of) and `table` (a dict whose values are positions, so that looking up shows it).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import ClassVar

from envlock.linter.module import DEPTH, FILES, Definition, Module, argument
from envlock.linter.names import KEEPERS, PYTHON_DRAWS, RANDOM_OPS, SAME_ORDER
from envlock.linter.positions import (
    KEYS,
    NUMBERING,
    SEQUENCE,
    TABLE,
    Loop,
    Order,
    counter,
    dotted,
    is_first,
    is_joined_on,
    is_length,
    pairs_are_numbered,
)
from envlock.linter.scopes import Function
from envlock.linter.sets import is_set_of_any
from envlock.linter.sorting import (
    SORTING,
    forgets_order,
    is_sorted_there,
    sorts,
    sorts_for_good,
    writes_to_file,
)

THROUGH = ("tqdm", "join", "imap", "imap_unordered", "starmap", "map", "array", "asarray")
"""Methods and functions of others whose result has the order of what they are given."""
_THROUGH = (
    *(ast.Starred, ast.keyword, ast.List, ast.Tuple, ast.Dict, ast.BinOp, ast.IfExp, ast.Await),
    *(ast.ListComp, ast.GeneratorExp),
)
Assigning = ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.AugAssign


class Flow:
    """One question about one order; what was followed once is not followed again."""

    def __init__(self, module: Module, followed: set[ast.AST] | None = None) -> None:
        self.module = module
        self.followed = set[ast.AST]() if followed is None else followed

    def reaches_data(self, start: ast.AST, kind: str = SEQUENCE) -> bool:
        """Return whether the order of an expression can reach data."""
        node, order = start, Order(kind)
        for around in self.module.ancestors(start):
            if isinstance(around, Assigning):
                return node is around.value and self._assigned(around, order.kind)
            step = self._STEPS.get(type(around))
            if step is not None:
                verdict = step(self, around, node, order)
                if verdict is not None:
                    return verdict
            elif not isinstance(around, _THROUGH):
                return False
            node = around
        return False

    def _call(self, call: ast.Call, node: ast.AST, order: Order) -> bool | None:
        """Return what a call makes of an order: the verdict, or None where its result has it, too."""
        if node is call.func:
            return None
        if forgets_order(self.module, call):
            return False
        built_in = self._built_in(call)
        if built_in == "sum":  # of lists
            return None
        if built_in == "dict":
            numbered = order.numbered or order.kind == TABLE or pairs_are_numbered(call)
            order.kind = TABLE if numbered else KEYS
            return None
        if built_in in SAME_ORDER or _last_word(call.func) in THROUGH or self._is_iterated(call):
            order.iterated()
            order.numbered = order.numbered or built_in in NUMBERING
            return None
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if method == "fromkeys":
            order.kind = KEYS
            return None
        if order.kind == KEYS:
            return False
        if isinstance(call.func, ast.Attribute) and method in KEEPERS:
            return self._kept(call.func.value)
        return not (
            self._only_asked(call)
            or self._is_sorted_then(call)
            or is_sorted_there(self.module, call, node)
        )

    def _comprehension(self, around: ast.comprehension, node: ast.AST, order: Order) -> bool | None:
        order.iterated()
        return None if node is around.iter else False

    def _dict_comprehension(self, around: ast.DictComp, node: ast.AST, order: Order) -> bool | None:
        counted = any(
            isinstance(each, ast.Call) and _last_word(each.func) == "next"
            for each in ast.walk(around.value)
        )
        order.kind = TABLE if order.numbered or counted else KEYS
        return None

    def _attribute(self, around: ast.Attribute, node: ast.AST, order: Order) -> bool | None:
        if order.kind == SEQUENCE:
            return (
                False if around.attr in (*SORTING, "count", "remove", "clear", "discard") else None
            )
        passes = around.attr in (
            ("items", "keys", "values") if order.kind == KEYS else ("items", "values", "get")
        )
        order.iterated()
        return None if passes else False

    def _subscript(self, around: ast.Subscript, node: ast.AST, order: Order) -> bool | None:
        forgets = order.kind == KEYS or (order.kind == SEQUENCE and is_first(around))
        return False if node is around.value and forgets else None

    def _loop(self, around: ast.For | ast.AsyncFor, node: ast.AST, order: Order) -> bool:
        return node is around.iter and self.loop(around)

    def _returned(self, around: ast.Return, node: ast.AST, order: Order) -> bool:
        """Return whether what a function returns is data where it is called, here or in the files that import this one.

        It is taken for data where nobody calls the function by its name, or where that cannot be known.
        """
        module, function = self.module, self.module.function_around(around)
        if order.kind == KEYS or not isinstance(function, Definition) or function in self.followed:
            return order.kind != KEYS
        self.followed.add(function)
        if (
            module.project is None
            or len(self.followed) > DEPTH
            or module.parent(function) is not module.tree
        ):
            return not _hands_on(module, node)
        calls = [
            each
            for each in module.worded((function.name,))
            if module.definition(each.func) is function
        ]
        found = [(self, call) for call in calls]
        for other, call in module.project.calls(module.path, function.name, FILES):
            found.append((Flow(other, self.followed), call))
        if not found:
            return not _hands_on(module, node)
        return any(flow.reaches_data(call, order.kind) for flow, call in found)

    def _of_lambda(self, around: ast.Lambda, node: ast.AST, order: Order) -> bool:
        """Return whether what a named lambda returns is data where it is called."""
        assign = self.module.parent(around)
        target = assign.targets[0] if isinstance(assign, ast.Assign) else None
        if not isinstance(target, ast.Name) or around in self.followed:
            return False
        self.followed.add(around)
        calls = [
            each
            for each in self.module.worded((target.id,))
            if self.module.definition(each.func) is around
        ]
        return any(self.reaches_data(call, order.kind) for call in calls)

    def shuffled(self, call: ast.Call) -> bool:
        """Return whether the order in which a call leaves a list can reach data; no where it only says what is next."""
        given = call.args[0] if call.args else None
        bindings = self.module.bindings(given) if isinstance(given, ast.Name) else None
        if not isinstance(given, ast.Name) or any(
            each.kind in ("parameter", "element") for each in bindings or []
        ):
            return True
        uses = [
            use
            for use in self._uses(given, call)
            if use is not given and self.module.parent(use) is not call
        ]
        return not uses or any(self._passes_on(use, SEQUENCE) for use in uses)

    def _handed_out(self, around: ast.AST, node: ast.AST, order: Order) -> bool:
        return order.kind != KEYS and not _hands_on(self.module, node)

    _STEPS: ClassVar[dict[type[ast.AST], Callable[..., bool | None]]] = {
        ast.Call: _call,
        ast.comprehension: _comprehension,
        ast.DictComp: _dict_comprehension,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.For: _loop,
        ast.AsyncFor: _loop,
        ast.Return: _returned,
        ast.Lambda: _of_lambda,
        ast.Yield: _handed_out,
        ast.YieldFrom: _handed_out,
    }

    def _built_in(self, call: ast.Call) -> str:
        """Return the name of the built-in function that is called, or nothing."""
        return (
            call.func.id
            if isinstance(call.func, ast.Name) and self.module.bindings(call.func) is None
            else ""
        )

    def _is_iterated(self, call: ast.Call) -> bool:
        """Return whether a loop runs over what a call returns, as `tqdm(files)`: its order is taken for the same."""
        around = self.module.parent(call)
        return (
            isinstance(around, ast.For | ast.AsyncFor | ast.comprehension) and around.iter is call
        )

    def _assigned(self, assign: Assigning, kind: str) -> bool:
        """Return whether what is assigned lets the order into data wherever its name is used."""
        if assign in self.followed or len(self.followed) > DEPTH * 8:
            return False
        self.followed.add(assign)
        targets = assign.targets if isinstance(assign, ast.Assign) else [assign.target]
        if len(targets) == 1 and isinstance(targets[0], ast.Tuple | ast.List):
            targets = targets[0].elts  # taken apart: each part can have the order
        tables = [
            each.value
            for each in targets
            if isinstance(each, ast.Subscript) and isinstance(assign, ast.Assign)
        ]
        if kind == SEQUENCE and any(self._is_returned(each) for each in tables):
            return True
        named = [each for each in targets if isinstance(each, ast.Name | ast.Attribute)]
        uses = [use for target in named for use in self._uses(target, assign)]
        if kind != TABLE and any(sorts_for_good(self.module, use) for use in uses):
            return False
        return any(self._passes_on(use, kind) for use in uses) or (kind == TABLE and not uses)

    def _is_returned(self, owner: ast.AST) -> bool:
        """Return whether a dict that gets an order as one of its values is what a function returns."""
        uses = self._uses(owner, owner) if isinstance(owner, ast.Name) else ()
        return any(isinstance(self.module.parent(use), ast.Return) for use in uses)

    def _uses(self, target: ast.Name | ast.Attribute, place: ast.AST) -> Iterator[ast.AST]:
        """Yield every place that reads a name."""
        name, function = dotted(target), self.module.function_around(place)
        for use in self.module.nodes(type(target)):
            if _is_use(self.module, use, name, function):
                yield use

    def _passes_on(self, use: ast.AST, kind: str) -> bool:
        """Return whether a use of the name lets the order into data."""
        around = self.module.parent(use)
        if isinstance(around, ast.Subscript) and around.value is use:
            told = kind == TABLE or (kind == SEQUENCE and not is_first(around))
            return told and isinstance(around.ctx, ast.Load) and not self._only_asked(around)
        if isinstance(around, ast.Attribute) and around.attr in ("index", "get") and kind != KEYS:
            return (around.attr == "index" or kind == TABLE) and not self._only_asked(around)
        if (
            isinstance(around, ast.Call)
            and use is not around.func
            and kind != KEYS
            and self._goes_elsewhere(around)
        ):
            sorted_there = self._is_sorted_then(around) or is_sorted_there(self.module, around, use)
            return not self._only_asked(around) and not sorted_there
        return self.reaches_data(use, kind)

    def _goes_elsewhere(self, call: ast.Call) -> bool:
        """Return whether a call hands what it is given to code that is not looked at."""
        keeps_order = (
            self._built_in(call) in {*SAME_ORDER, "dict"} or _last_word(call.func) in THROUGH
        )
        known = keeps_order or getattr(call.func, "attr", "") in KEEPERS
        return not known and not self._is_iterated(call) and not forgets_order(self.module, call)

    def _is_sorted_then(self, call: ast.Call) -> bool:
        """Return whether the result of a call gets a name and is sorted."""
        assign = self.module.parent(call)
        if not isinstance(assign, ast.Assign) or not isinstance(
            assign.targets[0], ast.Name | ast.Attribute
        ):
            return isinstance(assign, ast.Attribute) and assign.attr in SORTING
        return any(sorts(self.module, use) for use in self._uses(assign.targets[0], assign))

    def _only_asked(self, start: ast.AST) -> bool:
        """Return whether nothing is made of a value but a test or what forgets its order."""
        for around in self.module.ancestors(start):
            if isinstance(around, ast.Call) and forgets_order(self.module, around):
                return not self.module.is_builtin(around.func, "print")
            if isinstance(
                around, ast.Compare | ast.Assert | ast.FormattedValue | ast.SetComp | ast.Raise
            ):
                return True
            if isinstance(around, ast.stmt):
                return False
        return False

    def _kept(self, owner: ast.AST, inside: ast.AST | None = None) -> bool:
        """Return whether what a list or a file keeps stays in that order: and outlives the loop."""
        if is_set_of_any(self.module, owner):
            return False
        if not isinstance(owner, ast.Name | ast.Attribute):
            return True
        if self.module.name(owner) is not None:  # a function of a module: it keeps nothing
            return False
        if inside is not None and self._is_made_in(owner, inside):
            return False
        uses = list(self._uses(owner, owner))
        if any(sorts_for_good(self.module, use) or self._sorted_by_call(use) for use in uses):
            return False
        returned = [use for use in uses if isinstance(self.module.parent(use), ast.Return)]
        rest = [use for use in uses if use not in returned and not self._only_fills(use)]
        if rest and not returned and self._is_local(owner):
            return any(self._passes_on(use, SEQUENCE) for use in rest)
        if not returned or rest:
            return True
        return any(self.reaches_data(use) for use in returned)

    def _is_local(self, owner: ast.AST) -> bool:
        """Return whether a name is one of a function, which makes it a list."""
        bindings = self.module.bindings(owner) if isinstance(owner, ast.Name) else None
        inside = self.module.function_around(owner) is not None
        return (
            inside
            and bool(bindings)
            and all(isinstance(each.node, ast.List) for each in bindings or [])
        )

    def _only_fills(self, use: ast.AST) -> bool:
        method = self.module.parent(use)
        return isinstance(method, ast.Attribute) and method.attr in KEEPERS

    def _sorted_by_call(self, use: ast.AST) -> bool:
        around = self.module.parent(use)
        given = isinstance(around, ast.Call) and use in around.args
        return given and isinstance(around, ast.Call) and self._is_sorted_then(around)

    def _is_made_in(self, owner: ast.AST, loop: ast.AST) -> bool:
        """Return whether a name gets its value inside a loop: then each round has its own."""
        if not isinstance(owner, ast.Name):
            return False
        bindings = self.module.bindings(owner) or []
        return bool(bindings) and all(loop in self.module.ancestors(each.node) for each in bindings)

    def loop(self, loop: Loop) -> bool:
        """Return whether the body of a loop keeps something in the order of its rounds."""
        if loop in self.followed:
            return False
        self.followed.add(loop)
        return any(
            self._keeps(node, loop) for statement in loop.body for node in ast.walk(statement)
        )

    def _keeps(self, node: ast.AST, loop: Loop) -> bool:
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "setdefault" and len(node.args) > 1:
                return self._counts(node.args[1], loop)
            if node.func.attr in KEEPERS:
                return self._kept(node.func.value, loop)
            if node.func.attr == "update" and node.args and isinstance(node.args[0], ast.Dict):
                return any(self._is_keyed(node.func.value, key, loop) for key in node.args[0].keys)
        if isinstance(node, ast.Call):
            return self._writes(node, loop)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            return (
                self._counts(node.value, loop)
                or self._is_next(target, loop)
                or self._is_listed(target, loop)
            )
        if isinstance(node, ast.Assign) and is_joined_on(node, loop):
            return True
        if (
            isinstance(node, ast.AugAssign)
            and isinstance(node.op, ast.Add)
            and isinstance(node.target, ast.Name)
        ):
            began = [
                value
                for value in self.module.values(node.target)
                if not self._is_made_in(node.target, loop)
            ]
            texts = (
                isinstance(v, ast.List)
                or (isinstance(v, ast.Constant) and isinstance(v.value, str))
                for v in began
            )
            return any(texts) and self._kept(node.target, loop)
        return False

    def _raised(self, loop: Loop) -> set[tuple[str, ...]]:
        """Return the names that each round of a loop changes and hands to the next one, as a counter."""
        changed = [node.target for node in ast.walk(loop) if isinstance(node, ast.AugAssign)]
        return {dotted(target) for target in changed if not self._is_made_in(target, loop)} - {()}

    def _is_next(self, target: ast.Subscript, loop: Loop) -> bool:
        """Return whether the next place of what outlives a loop is filled: `images[i] = image`, with `i += 1`."""
        raised = self._raised(loop)
        first = (
            target.slice.elts[0]
            if isinstance(target.slice, ast.Tuple) and target.slice.elts
            else target.slice
        )
        return dotted(first) in {*raised, counter(loop)} and self._kept(target.value, loop)

    def _is_listed(self, target: ast.Subscript, loop: Loop) -> bool:
        """Return whether a dict gets the elements of the loop as keys, in their order, and is iterated over later."""
        return self._is_keyed(target.value, target.slice, loop)

    def _is_keyed(self, owner: ast.expr, key: ast.expr | None, loop: Loop) -> bool:
        targets = ast.walk(loop.target) if isinstance(loop, ast.For | ast.AsyncFor) else ()
        elements = {each.id for each in targets if isinstance(each, ast.Name)}
        keyed = isinstance(key, ast.Name) and key.id in elements
        if (
            not keyed
            or not isinstance(owner, ast.Name | ast.Attribute)
            or self._is_made_in(owner, loop)
        ):
            return False
        return any(self._passes_on(use, KEYS) for use in self._uses(owner, owner))

    def _writes(self, call: ast.Call, loop: Loop) -> bool:
        """Return whether a call in a loop hands on a file of records that was opened before it, or copies into one."""
        if self.module.name(call.func) == "shutil.copyfileobj":
            target = argument(call, "fdst", 1)
            return isinstance(target, ast.Name) and not self._is_made_in(target, loop)
        if self._built_in(call) == "print" and writes_to_file(call):
            return not self._is_made_in(
                next(each.value for each in call.keywords if each.arg == "file"), loop
            )
        given = [
            each
            for each in call.args
            if isinstance(each, ast.Name) and not self._is_made_in(each, loop)
        ]
        made = [
            value
            for each in given
            for value in self.module.values(each)
            if isinstance(value, ast.Call)
        ]
        return any((self.module.name(each.func) or "").endswith("TFRecordWriter") for each in made)

    def _counts(self, value: ast.AST, loop: Loop) -> bool:
        """Return whether a value depends on the round of a loop: a length, a counter, or a draw from a generator."""
        raised = self._raised(loop)
        for node in ast.walk(value):
            if isinstance(node, ast.Name | ast.Attribute) and dotted(node) in raised:
                return True
            if isinstance(node, ast.Call):
                name = self.module.name(node.func) or ""
                drawn = (
                    name in RANDOM_OPS or name in PYTHON_DRAWS or name.startswith("numpy.random.")
                )
                if drawn or getattr(node.func, "id", "") == "next" or is_length(node, loop):
                    return True
        return False


def _hands_on(module: Module, node: ast.AST) -> bool:
    """Return whether this is a call that a function only hands on: `def ls(path): return os.listdir(path)`."""
    given = (
        [*node.args, *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else []
    )
    bound = [module.bindings(each) or [] if isinstance(each, ast.Name) else [] for each in given]
    return bool(given) and all(
        each and all(one.kind == "parameter" for one in each) for each in bound
    )


def _last_word(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_use(module: Module, use: ast.AST, name: tuple[str, ...], function: Function | None) -> bool:
    if not isinstance(use, ast.Name | ast.Attribute) or not isinstance(use.ctx, ast.Load):
        return False
    if (use.id if isinstance(use, ast.Name) else use.attr,) != name[:1] or dotted(use) != name:
        return False
    return (
        isinstance(use, ast.Attribute)
        or function is None
        or module.function_around(use) is function
    )
