"""What expressions are: names, attributes, calls, containers, comprehensions."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable

from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.chances import find_chance
from envlock.linter.interpreter.library import LIBRARY
from envlock.linter.interpreter.operators import Operators
from envlock.linter.interpreter.orders import UNFILLED
from envlock.linter.interpreter.run_state import Loop, is_buffer
from envlock.linter.interpreter.values import (
    CLEAN,
    OPTIONS,
    PLAIN,
    Class,
    Constant,
    Either,
    FileValue,
    Function,
    Instance,
    Library,
    Made,
    Method,
    Scope,
    Sequence,
    Table,
    Taints,
    Value,
    as_mode,
    as_picks,
    in_mode,
    join_all,
)
from envlock.linter.names import canonical, name_starred

BUILTINS = frozenset(dir(builtins))
FILE_TIMES = ("st_mtime", "st_ctime", "st_atime", "st_birthtime")


class Expressions(Operators):
    """The evaluation of expressions."""

    def evaluate(self, node: ast.AST) -> Value:
        """Return what an expression stands for."""
        row = EXPRESSIONS.get(type(node))
        if row is not None:
            return row(self, node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.evaluate(child)
        return Value()

    def evaluate_constant(self, node: ast.Constant) -> Value:
        return Constant(node.value)

    def evaluate_name(self, node: ast.Name) -> Value:
        name = node.id
        scope = self.frames[-1].scope
        found = scope.find(name)
        if found is not None:
            # `SEED = None` at the top of a file is a setting that its users change.
            if type(found) is Constant and not found.optional and name in scope.get_top().names:
                return Constant(found.value, optional=True, taints=found.taints)
            return found
        if name in BUILTINS:
            return Library(name)
        return self.find_starred(scope.get_top(), name)

    def find_starred(self, scope: Scope, name: str) -> Value:
        """Return what `from x import *` may have given: of several, what one is known to hold,
        layers before others.
        """
        every = [name_starred(star, name) for star in self.stars.get(scope, ())]
        if not every:
            return Value()
        # Python takes the last star that has the name. Which ones have it is not known, except for
        # names in the tables; and after `from keras.layers import *`, `from keras.models import *`
        # most names are layers.
        known = [each for each in every if find_chance(each) or each in LIBRARY]
        layers = [each for each in every if each.startswith("keras.layers.")]
        likely = known or layers or every
        return Library(likely[-1])

    def evaluate_attribute(self, node: ast.Attribute) -> Value:
        return self.look_up_attribute(self.evaluate(node.value), node.attr, node)

    def look_up_attribute(self, owner: Value, name: str, node: ast.AST) -> Value:
        """Return an attribute."""
        row = OWNERS.get(type(owner))
        if row is None:
            return self.get_unknown_member(owner, name)
        return row(self, owner, name, node)

    def get_library_member(self, owner: Library, name: str, node: ast.AST) -> Value:
        """Return what a library has under a name, or the value of a flag."""
        if owner.name.endswith("flags.FLAGS"):
            return self.flags.get(name, Value())
        return Library(canonical(f"{owner.name}.{name}"))

    def get_class_member(self, owner: Class, name: str, node: ast.AST) -> Value:
        """Return an attribute of a class of the project."""
        found = owner.find_member(name)
        if found is None:
            return Method(owner, name)
        return self.bind_to_class(found, owner)

    def get_either_member(self, owner: Either, name: str, node: ast.AST) -> Value:
        """Return an attribute of one of several values."""
        return join_all(self.look_up_attribute(each, name, node) for each in owner.options)

    def get_unknown_member(self, owner: Value, name: str) -> Value:
        """Return an attribute of something of which only its kind is known."""
        # A parameter that has an attribute named as an option of this file: `args`, as `main(args)`
        # gets it from the end of the file.
        if owner.kind == "given" and name in self.known_flags.get(self.source, {}):
            return self.known_flags[self.source][name]
        method = Method(owner, name)
        if owner.kind in ("tensor", "number"):  # such as `array.T`
            method.kind = owner.kind
        if name in ("size", "shape", "ndim", "dtype"):
            return Value(kind="number")
        if name.startswith(FILE_TIMES):
            return Value(owner.taints, "moment")
        return method

    def get_made_member(self, owner: Made, name: str, node: ast.AST) -> Value:
        """Return an attribute of a library's object."""
        if name in owner.attributes:
            return owner.attributes[name]
        if "flags" in owner.marks:  # an option that is added elsewhere
            return Value()
        if "environment" in owner.marks:
            # One environment inside another: they are seeded together.
            if name in ("unwrapped", "env"):
                return owner
            if name.endswith("_space"):
                space = self.make("space", owner.node, "space")
                space.arguments = [owner]
                return space
        # Its parts take batches by the same generator.
        if "mnist" in owner.marks and name in ("train", "test", "validation"):
            return owner
        return Method(owner, name)

    def bind_to_class(self, found: Value, owner: Class) -> Value:
        """Return a member as the class itself gives it."""
        if isinstance(found, Function) and self.has_decorator(found, "classmethod"):
            return found.bind_to(owner)
        return found

    def get_instance_member(self, owner: Instance, name: str, node: ast.AST) -> Value:
        """Return an attribute of an object of the project."""
        owner.read.add(name)
        if name in owner.attributes:
            held = owner.attributes[name]
            # `row.text` of one of the rows that were shuffled: ENV206/bad_written_item.py.
            if owner.taints:
                return self.copy_value(held).add_taints(owner.taints)
            return held
        found = owner.owner.find_member(name)
        if isinstance(found, Function):
            if self.has_decorator(found, "staticmethod"):
                return found
            method = found.bind_to(owner)
            properties = ("property", "cached_property")
            if any(self.has_decorator(found, decorator) for decorator in properties):
                return self.call(method, Call(node))
            return method
        if found is not None:
            return found
        return Method(owner, name)

    def get_file_member(self, owner: FileValue, name: str, node: ast.AST) -> Value:
        """Return what a file of the project has under a name."""
        scope = self.run_file(owner.source)
        found = scope.find(name)
        if found is not None:
            return found
        below = self.sources.find_below(owner.source, name)
        if below is not None:
            self.run_file(below)
            return FileValue(below)
        return self.find_starred(scope, name)

    # ------------------------------------------------------------ calls

    def evaluate_call(self, node: ast.Call) -> Value:
        called = self.evaluate(node.func)
        arguments: list[Value] = []
        starred = False
        for each in node.args:
            if type(each) is ast.Starred:
                value = self.take_in_turn(self.evaluate(each.value), each)
                if isinstance(value, Sequence) and value.items is not None:
                    arguments.extend(value.items)
                else:
                    # As one argument, so that its chances are handed on; how many it is, is open.
                    arguments.append(value)
                    starred = True
            else:
                arguments.append(self.evaluate(each))
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Table) and value.most is not None:
                keywords.update({str(word): each for word, each in value.items.items()})
            else:
                starred = True
        discarded = node in self.discarded
        if discarded:
            self.fill_by_part(node.func)
        return self.call(called, Call(node, arguments, keywords, starred, discarded))

    def fill_by_part(self, called: ast.expr) -> None:
        """Let a method of a part of an array, such as `array[:, 0].fill(1)`, fill the array."""
        part = called.value if isinstance(called, ast.Attribute) else None
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
            self.fill(self.evaluate(part.value))

    def evaluate_await(self, node: ast.Await) -> Value:
        return self.evaluate(node.value)

    def evaluate_lambda(self, node: ast.Lambda) -> Value:
        return Function(node, self.find_closure_scope())

    def find_closure_scope(self) -> Scope:
        """Return the scope that a function made here closes over; that of a class is skipped."""
        scope = self.scope
        while scope.is_class and scope.parent is not None:
            scope = scope.parent
        return scope

    # ------------------------------------------------------------ containers

    def evaluate_items(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        form = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set"}[type(node)]
        items: list[Value] | None = []
        every: list[Value] = []
        taints = CLEAN
        for each in node.elts:
            if isinstance(each, ast.Starred):
                value = self.take_in_turn(self.evaluate(each.value), each)
                taints |= in_mode(value.taints, "order")
                every.append(self.get_element(value))
                items = None
                continue
            value = self.evaluate(each)
            every.append(value)
            if items is not None:
                items.append(value)
        element = join_all(every) if every else None
        result = Sequence(form, items, element, self.tick())
        return result.add_taints(taints)

    def evaluate_dict(self, node: ast.Dict) -> Value:
        table = Table(self.tick())
        for key, value in zip(node.keys, node.values, strict=True):
            found = self.evaluate(value)
            if key is None:
                self.table_update(table, Call(node, [found]))
                continue
            name = self.evaluate(key)
            # `{time.time(): loss}` and `{"id": uuid4()}` name what they hold.
            self.ledger.show(frozenset(each for each in name.taints if each[0].kind == "clock"))
            if isinstance(name, Constant) and name.value == "id":
                self.ledger.show(found.taints)
            table.store(name, found)
        return table

    def evaluate_subscript(self, node: ast.Subscript) -> Value:
        owner = self.evaluate(node.value)
        if isinstance(node.slice, ast.Slice):
            for bound in (node.slice.lower, node.slice.upper, node.slice.step):
                if bound is not None:
                    self.evaluate(bound)
            return self.cut(owner)
        key = self.evaluate(node.slice)
        parts: list[ast.expr] = []
        if isinstance(node.slice, ast.Tuple):
            parts = node.slice.elts
        # `table[:, columns]` is of an array, whose columns come in the order of the key.
        if any(isinstance(each, ast.Slice) for each in parts):
            moved = as_mode(in_mode(self.collect_taints(key), "place"), "value") | as_picks(
                self.collect_taints(key)
            )
            kind = "text" if owner.kind == "text" else "number"
            return Value(self.collect_taints(owner) | moved, kind)
        return self.get_item(owner, key, node)

    def cut(self, owner: Value) -> Value:
        """Return a slice: of what comes by chance it is others in every run."""
        if isinstance(owner, Either):
            return join_all(self.cut(each) for each in owner.options)
        taken = as_mode(in_mode(owner.taints, "order"), "value")
        if isinstance(owner, Sequence):
            element = self.copy_value(owner.element).add_taints(taken)
            part = Sequence(owner.form, None, element, self.tick())
            return part.add_taints(owner.taints)
        return Value(owner.taints | taken, owner.kind)

    def get_item(self, owner: Value, key: Value, node: ast.AST) -> Value:
        """Return `owner[key]`."""
        if isinstance(owner, Either):
            return join_all(self.get_item(each, key, node) for each in owner.options)
        drawn = as_picks(self.collect_taints(key))
        taken = as_mode(in_mode(owner.taints, "order"), "value")
        plain = key.value if isinstance(key, Constant) else ...
        if isinstance(owner, Sequence):
            return self.get_sequence_item(owner, plain, taken, drawn)
        if isinstance(owner, Table):
            self.make_missing(owner, key, node)
            return self.get_table_item(owner, plain, drawn)
        if isinstance(owner, Made) and not owner.taints and not drawn:
            return owner
        if isinstance(owner, Instance):
            method = owner.owner.find_member("__getitem__")
            if isinstance(method, Function):
                return self.call(method.bind_to(owner), Call(node, [key]))
        kind = owner.kind if owner.kind in ("number", "tensor") else ""
        # A row of an array that nothing has filled yet is mostly taken to be filled.
        held = frozenset(each for each in self.collect_taints(owner) if each[0].rule != UNFILLED)
        return Value(self.forget(held, "order") | taken | drawn, kind)

    def make_missing(self, owner: Table, key: Value, node: ast.AST) -> None:
        """Put a value under a key that a `defaultdict` may not have yet."""
        plain = key.value if isinstance(key, Constant) else ...
        known = isinstance(plain, PLAIN) and plain in owner.items
        if owner.maker is None or known:
            return
        made = owner.element or self.call(owner.maker, Call(node, []))
        # It may have been made in any round of a loop that the dictionary is older than.
        if isinstance(made, Sequence | Table):
            made.born = owner.born
        self.store(owner, key, made)

    def get_table_item(self, owner: Table, plain: object, drawn: Taints) -> Value:
        """Return the value under a key, which is `...` if it is not known."""
        found = owner.element or Value()
        try:
            if plain in owner.items:
                found, drawn = owner.items[plain], CLEAN
        except TypeError:  # a slice or a list: no dictionary has it as a key
            pass
        # `row["text"]` of one of the rows that were shuffled: ENV206/bad_written_item.py.
        drawn |= in_mode(owner.taints, "each")
        if drawn:
            return self.copy_value(found).add_taints(drawn)
        # Itself and not a copy: a list in a dictionary is filled where it lies.
        return self.share(found)

    def share(self, found: Value) -> Value:
        """Return what stands for the values at several places: in a loop, a set there may hold more
        than this loop has put into it so far.
        """
        if self.rounds and isinstance(found, Sequence) and found.form == "set":
            found.most = None
            if found.items:  # an empty one has no elements yet that it could be asked for
                found.items = None
        return found

    def get_sequence_item(
        self, owner: Sequence, plain: object, taken: Taints, drawn: Taints
    ) -> Value:
        """Return the element at an index, which is `...` if it is not known."""
        items = owner.items
        if items is not None and isinstance(plain, int) and -len(items) <= plain < len(items):
            return self.mark_one(items[plain], taken | in_mode(owner.taints, "each"))
        # Any of them: what fills one is seen there, and fills all (ENV210/good_buffers.py).
        if is_buffer(owner.element):
            if items and len(items) <= OPTIONS:
                return Either((owner.element, *items))
            return owner.element
        if isinstance(owner.element, Sequence) and owner.element.form == "set" and not owner.taints:
            return self.share(owner.element)
        one_of = taken | drawn | in_mode(owner.taints, "each")
        return self.mark_one(self.copy_value(owner.element), one_of)

    # ------------------------------------------------------------ texts, and what binds or yields

    def evaluate_joined(self, node: ast.JoinedStr) -> Value:
        values = [self.evaluate(each) for each in node.values]
        return self.make_text("format", Call(node, values))

    def evaluate_formatted(self, node: ast.FormattedValue) -> Value:
        return self.evaluate(node.value)

    def evaluate_walrus(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        self.assign_to(node.target, value)
        return value

    def evaluate_starred(self, node: ast.Starred) -> Value:
        return self.evaluate(node.value)

    def evaluate_yield(self, node: ast.Yield | ast.YieldFrom) -> Value:
        value: Value = Constant(None)
        if node.value is not None:
            value = self.evaluate(node.value)
        frame = self.frames[-1]
        if isinstance(node, ast.YieldFrom):
            frame.ordered |= in_mode(value.taints, "order")
            if isinstance(value, Sequence) and value.form == "wrapped":
                frame.wrapped = True
            value = self.get_element(value)
        frame.yielded.append(value)
        # Who goes over the generator sees the order of the loops in which it yields.
        frame.ordered |= as_mode(self.find_loop_orders(), "order")
        return Value()

    # ------------------------------------------------------------ comprehensions

    def evaluate_comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        form = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "iterator"}[type(node)]
        result = Sequence(form, None, None, self.tick())
        before = len(self.loops)
        self.enter_comprehension(node.generators)
        element = self.evaluate(node.elt)
        orders = self.find_orders(self.loops[before:], element)
        self.leave_comprehension(before, len(node.generators))
        if len(node.generators) == 1 and not node.generators[0].ifs:
            result.most = self.size
        if form == "set":  # it keeps no order of filling
            result.element = self.strip_orders(element)
            return result
        result.element = element
        return result.add_taints(orders)

    def enter_comprehension(self, generators: list[ast.comprehension]) -> None:
        """Bind the names of the loops of a comprehension in a scope of their own."""
        frame = self.frames[-1]
        frame.scope = Scope(self.source, frame.scope)
        for generator in generators:
            values = self.take_in_turn(self.evaluate(generator.iter), generator.iter)
            self.size = self.count_elements(values, generator.iter)
            self.enter_loop(values)
            self.assign_to(generator.target, self.get_element(values))
            for test in generator.ifs:
                self.evaluate(test)

    def count_elements(self, values: Value, node: ast.expr) -> int | None:
        """Return how many elements values have at most: `parts[:2]` has two."""
        if isinstance(values, Sequence | Table) and values.most is not None:
            return values.most
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
            return None
        if node.slice.lower is not None:
            return None
        last = node.slice.upper
        if isinstance(last, ast.Constant) and isinstance(last.value, int):
            return last.value
        return None

    def leave_comprehension(self, before: int, count: int) -> None:
        """Forget the names and loops of a comprehension."""
        frame = self.frames[-1]
        parent = frame.scope.parent
        frame.scope = parent or frame.scope
        del self.loops[before:]
        del self.rounds[len(self.rounds) - count :]

    def enter_loop(self, values: Value) -> None:
        """Begin the rounds of a loop over values."""
        moment = self.tick()
        self.rounds.append(moment)
        orders = in_mode(values.taints, "order")
        if orders:
            self.loops.append(Loop(as_mode(orders, "each"), moment))

    def evaluate_dict_comprehension(self, node: ast.DictComp) -> Value:
        table = Table(self.tick())
        before = len(self.loops)
        self.enter_comprehension(node.generators)
        key, value = self.evaluate(node.key), self.evaluate(node.value)
        # As in `store`: a place under a key is a number by chance.
        placed = in_mode(value.taints, "place")
        table.store(key, value.add_taints(as_mode(placed, "value")))
        orders = self.find_orders(self.loops[before:], value)
        self.leave_comprehension(before, len(node.generators))
        table.most = None
        return table.add_taints(orders)


OWNERS: dict[type[Value], Callable[..., Value]] = {
    Library: Expressions.get_library_member,
    FileValue: Expressions.get_file_member,
    Instance: Expressions.get_instance_member,
    Class: Expressions.get_class_member,
    Either: Expressions.get_either_member,
    Made: Expressions.get_made_member,
}
"""How an attribute is found, by the kind of its owner."""
EXPRESSIONS: dict[type[ast.AST], Callable[..., Value]] = {
    ast.Constant: Expressions.evaluate_constant,
    ast.Name: Expressions.evaluate_name,
    ast.Attribute: Expressions.evaluate_attribute,
    ast.Call: Expressions.evaluate_call,
    ast.Await: Expressions.evaluate_await,
    ast.Lambda: Expressions.evaluate_lambda,
    ast.List: Expressions.evaluate_items,
    ast.Tuple: Expressions.evaluate_items,
    ast.Set: Expressions.evaluate_items,
    ast.Dict: Expressions.evaluate_dict,
    ast.Subscript: Expressions.evaluate_subscript,
    ast.BinOp: Expressions.evaluate_binary,
    ast.UnaryOp: Expressions.evaluate_unary,
    ast.BoolOp: Expressions.evaluate_boolean,
    ast.Compare: Expressions.evaluate_compare,
    ast.IfExp: Expressions.evaluate_choice,
    ast.JoinedStr: Expressions.evaluate_joined,
    ast.FormattedValue: Expressions.evaluate_formatted,
    ast.NamedExpr: Expressions.evaluate_walrus,
    ast.Starred: Expressions.evaluate_starred,
    ast.Yield: Expressions.evaluate_yield,
    ast.YieldFrom: Expressions.evaluate_yield,
    ast.ListComp: Expressions.evaluate_comprehension,
    ast.SetComp: Expressions.evaluate_comprehension,
    ast.GeneratorExp: Expressions.evaluate_comprehension,
    ast.DictComp: Expressions.evaluate_dict_comprehension,
}
