"""What Python's own functions and containers do with values."""

from __future__ import annotations

import ast
from collections.abc import Callable

from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.orders import Orders
from envlock.linter.interpreter.values import (
    CLEAN,
    Class,
    Constant,
    Either,
    Function,
    Instance,
    Library,
    Made,
    Scope,
    Sequence,
    Table,
    Taints,
    Value,
    as_mode,
    in_mode,
    join,
    join_all,
)

NAMED_TUPLE, TYPED_TUPLE = "collections.namedtuple", "typing.NamedTuple"


class Containers(Orders):
    """Built-in functions, lists, sets and dictionaries."""

    def call(self, called: Value, call: Call) -> Value:
        """Return what a call returns."""
        raise NotImplementedError

    def sort(self, name: str, call: Call) -> Value:
        """Return what has always the same order."""
        chances = self.find_sort_chances(call.get_first(), call)
        return self.end_order(call.get_first(), "list").add_taints(chances)

    def find_sort_chances(self, values: Value, call: Call) -> Taints:
        """Return the chances of a key that differs between machines or runs: a file's time, an
        address.
        """
        key = call.get("key")
        if not isinstance(key, Function | Library):
            self.use_functions(call)
            return CLEAN
        # The key is run on a copy of one element: what it does to its taints is not done to the
        # list.
        each = self.copy_value(self.get_element(values))
        rank = self.call(key, Call(call.node, [each]))
        if isinstance(rank, Sequence) and rank.items:  # the first of several keys decides most
            rank = rank.items[0]
        place = getattr(call.node, "func", call.node)
        if rank.kind == "moment":
            # One listing is one cause: sorted by time, it is reported where it is listed.
            chance = self.add_chance("ENV303", "order", "time", place)
            return in_mode(values.taints, "order") or frozenset({(chance, "order")})
        salted = [chance for chance, _ in rank.taints if chance.rule == "ENV305"]
        if salted:
            chance = self.add_chance("ENV305", "order", salted[0].name, place)
            return frozenset({(chance, "order")})
        return CLEAN

    def end(self, name: str, call: Call) -> Value:
        """Return what does not depend on any order."""
        self.use_functions(call)
        kind = ""
        if name in ("len", "any", "all"):
            kind = "number"
        # `ids[word] = len(ids)`: of what a loop by chance fills, the length counts its rounds.
        if name == "len" and self.find_growth_orders(call.get_first()):
            return Value(as_mode(self.find_growth_orders(call.get_first()), "place"), "number")
        if name in ("min", "max"):
            if len(call.arguments) == 1:
                return self.strip_orders(self.get_element(call.get_first()))
            return self.strip_orders(join_all(call.arguments))
        # How many there are is the same, whatever was drawn.
        if name == "len":
            return Value(kind=kind)
        drawn = frozenset(
            each
            for each in self.collect_all_taints(call.list_values())
            if each[0].kind != "order" and each[1] in ("value", "pick")
        )
        return Value(drawn, kind)

    def find_growth_orders(self, container: Value) -> Taints:
        """Return the orders of loops in which a container grows."""
        born = getattr(container, "born", None)
        if born is None or not isinstance(container, Sequence | Table):
            return CLEAN
        return self.find_orders_since(born)

    def make_set(self, name: str, call: Call) -> Value:
        """Return a set."""
        given = call.get_first()
        if name == "weakref.WeakSet":  # of objects, whose hashes are their addresses
            return Sequence("set", None, Value(), self.tick())
        if not call.arguments:
            return Sequence("set", [], None, self.tick())
        result = self.end_order(given, "set")
        if isinstance(given, Sequence) and given.most is not None:
            result.most = given.most
        return result

    def make_list(self, name: str, call: Call) -> Value:
        """Return the elements of a value in their order."""
        if not call.arguments:
            return self.make_sequence([], form="list")
        given = self.take_in_turn(call.get_first(), call.node)
        form = "list"
        if name == "tuple":
            form = "tuple"
        if name in ("iter", "reversed", "tqdm.tqdm", "tqdm", "tqdm.auto.tqdm"):
            form = "iterator"
        if isinstance(given, Sequence):
            return given.copy_as(form, self.tick())
        if isinstance(given, Table):
            keys = self.make_sequence(None, given.key, form)
            return keys.add_taints(given.taints)
        made = self.make_sequence(None, self.get_element(given), form)
        return made.add_taints(self.forget(given.taints, "each"))

    def enumerate(self, name: str, call: Call) -> Value:
        """Return pairs of a number and an element."""
        given = self.take_in_turn(call.get_first(), call.node)
        orders = in_mode(given.taints, "order")
        number = Value(as_mode(orders, "place"), "number")
        pair = self.make_sequence([number, self.get_element(given)], form="tuple")
        return self.make_sequence(None, pair, "iterator").add_taints(orders)

    def zip(self, name: str, call: Call) -> Value:
        """Return tuples of elements; numbers beside what comes by chance count it."""
        given = [self.take_in_turn(each, call.node) for each in call.arguments]
        orders = CLEAN
        for each in given:
            orders |= in_mode(each.taints, "order")
        items = []
        for each in given:
            item = self.get_element(each)
            # `dict(zip(words, range(len(words))))` numbers words by chance.
            if not in_mode(each.taints, "order") and orders and item.kind == "number":
                item = Value(as_mode(orders, "place"), "number")
            items.append(item)
        if call.starred:
            every = self.get_element(join_all(given))
            one = self.make_sequence(None, self.get_element(every), "tuple").add_taints(
                orders | in_mode(every.taints, "order")
            )
            return self.make_sequence(None, one, "iterator")
        return self.make_sequence(
            None, self.make_sequence(items, form="tuple"), "iterator"
        ).add_taints(orders)

    def map(self, name: str, call: Call) -> Value:
        """Return what a function makes of each element."""
        given = [self.take_in_turn(each, call.node) for each in call.arguments[1:]]
        each = [self.get_element(value) for value in given]
        function = call.get_first()
        result = self.call(function, Call(call.node, each))
        if isinstance(function, Library) and function.name in ("int", "float", "len"):
            result = Value(result.taints, "number")
        if name == "filter":
            result = next(iter(each), Value())
        orders = CLEAN
        for value in given:
            orders |= in_mode(value.taints, "order")
        return self.make_sequence(None, result, "iterator").add_taints(orders)

    def sum(self, name: str, call: Call) -> Value:
        """Return a sum; of lists it is a list in the order in which they come."""
        given = call.get_first()
        # `sum(lists, [])` puts lists together.
        if len(call.arguments) > 1 and isinstance(call.arguments[1], Sequence):
            inner = self.get_element(given)
            return self.make_sequence(None, self.get_element(inner)).add_taints(
                in_mode(inner.taints, "order") | in_mode(given.taints, "order")
            )
        # Of a listing or a set, whole numbers are added up mostly, such as sizes. Results of
        # workers are fractions, whose sum depends on its order: ENV307/bad_sum_of_arrivals.py.
        taints = self.collect_array_taints([given])
        kept = frozenset(
            each for each in taints if each[0].kind != "order" or self.is_arrival(each[0].rule)
        )
        return Value(as_mode(in_mode(kept, "order"), "value") | in_mode(kept, "value"), "number")

    def make_dict(self, name: str, call: Call) -> Value:
        """Return a dictionary."""
        table = Table(self.tick())
        for word, value in call.keywords.items():
            table.store(Constant(word), value)
        if call.arguments:
            given = self.take_in_turn(call.get_first(), call.node)
            if isinstance(given, Table):
                return given
            pair = self.get_element(given)
            first, second = self.unpack(pair, 2)
            # As in `store`: a place under a key is a number by chance.
            placed = in_mode(second.taints, "place")
            table.store(first, second.add_taints(as_mode(placed, "value")))
            table.most = None
            table.add_taints(in_mode(given.taints, "order"))
        return table

    def make_default_dict(self, name: str, call: Call) -> Value:
        """Return a dictionary that makes what is missing; an empty `Counter` counts from 0."""
        if call.arguments and name == "collections.Counter":
            return self.sort(name, call)
        table = self.make_dict(name, Call(call.node, call.arguments[1:], call.keywords))
        if isinstance(table, Table):
            table.maker = call.arguments[0] if call.arguments else Library("int")
        return table

    def unpack(self, value: Value, count: int) -> list[Value]:
        """Return the parts of a value that is taken apart."""
        if isinstance(value, Sequence) and value.items is not None and len(value.items) == count:
            one_of = in_mode(value.taints, "each")  # `for name, label in pairs` of shuffled pairs
            if one_of:
                return [self.copy_value(each).add_taints(one_of) for each in value.items]
            return value.items
        if isinstance(value, Instance) and TYPED_TUPLE in value.owner.list_library_bases():
            parts_of_tuple = list(value.attributes.values())
            if len(parts_of_tuple) == count:
                return parts_of_tuple
        if isinstance(value, Either):
            parts = [self.unpack(each, count) for each in value.options]
            return [join_all(each) for each in zip(*parts, strict=True)]
        if isinstance(value, Sequence):
            # Which of them is the first is by chance.
            taken = as_mode(in_mode(value.taints, "order"), "value")
            return [self.copy_value(value.element).add_taints(taken)] * count
        if isinstance(value, Made):
            return [value] * count
        if value.kind == "unfilled":  # its rows are filled each
            return [Value(kind="tensor") for _ in range(count)]
        kind = value.kind if value.kind == "unique" else ""
        return [Value(value.taints, kind) for _ in range(count)]

    def make_named_tuple(self, call: Call) -> Value:
        """Return the class that `namedtuple` makes, as `typing.NamedTuple` would."""
        given = call.get("field_names", 1)
        names = given.items or [] if isinstance(given, Sequence) else [given]
        words: list[str] = []
        for each in names:
            if isinstance(each, Constant):
                words += str(each.value).replace(",", " ").split()
        body: list[ast.stmt] = []
        for word in words:
            name = ast.Name(word, ast.Store())
            body.append(ast.AnnAssign(name, ast.Name("object", ast.Load()), None, 1))
        # As if it were written as a class: everything that knows those knows this.
        node = ast.ClassDef("", [], [], body, [])
        return Class(node, Scope(self.source), [Library(TYPED_TUPLE)])

    def make_range(self, name: str, call: Call) -> Value:
        """Return whole numbers."""
        return self.make_sequence(None, Value(kind="number"), "iterator")

    def make_text(self, name: str, call: Call) -> Value:
        """Return text: a number that was drawn is mostly part of a name or a message in it.

        A word that was picked is still that word.
        """
        taints = self.collect_all_taints(call.arguments)
        drawn = frozenset(each for each in taints if each[0].kind == "draw" and each[1] == "value")
        self.ledger.show(drawn)
        return Value(taints - drawn, "text")

    def convert(self, name: str, call: Call) -> Value:
        """Return a number."""
        given = call.get_first()
        if isinstance(given, Constant) and given.value is not None:
            return given
        taints = self.collect_all_taints(call.arguments)
        # A seed that is None by default is off by default, as in `deterministic=bool(seed)`.
        if name == "bool" and given.default in (None, False):
            return Value(taints, "number", default=False)
        if name == "int" and isinstance(given, Constant):
            return Value(taints, "number", given.default)
        return Value(taints, "number")

    def use_hash(self, name: str, call: Call) -> Value:
        """Return hash() or id()."""
        if name == "hash":
            return self.hash(call)
        chance = self.add_chance("ENV305", "clock", "id()", call.node)
        return Value(frozenset({(chance, "value")}))

    def take_next(self, name: str, call: Call) -> Value:
        """Return one element."""
        each = self.get_element(call.get_first())
        return self.copy_value(each).add_taints(
            as_mode(in_mode(call.get_first().taints, "order"), "value")
        )

    def reduce(self, name: str, call: Call) -> Value:
        """Return `functools.reduce`, which goes from one element to the next: their order counts."""
        each = self.get_element(call.arguments[1]) if len(call.arguments) > 1 else Value()
        self.call(call.get_first(), Call(call.node, [each, each]))
        return Value(as_mode(in_mode(self.collect_all_taints(call.arguments), "order"), "value"))

    def fill_from(self, name: str, call: Call) -> Value:
        """Return `dict.fromkeys(...)`."""
        given = self.take_in_turn(call.get_first(), call.node)
        table = Table(self.tick())
        table.store(self.get_element(given), Value())
        return table.add_taints(in_mode(given.taints, "order"))

    def list_append(self, owner: Value, call: Call) -> Value:
        """Put something into a container."""
        value = call.arguments[-1] if call.arguments else Value()
        self.fill(value)
        self.append(owner, value)
        self.note_arrival(owner, call)
        return Constant(None)

    def note_arrival(self, owner: Value, call: Call) -> None:
        """Note that several threads put something into a container: the first to finish comes
        first.
        """
        if isinstance(owner, Sequence) and owner.form != "set" and self.is_shared(owner.born):
            chance = self.add_chance("ENV307", "order", "threads", call.node)
            owner.add_taints(frozenset({(chance, "order")}))

    def list_extend(self, owner: Value, call: Call) -> Value:
        """Put several things into a container."""
        for each in call.arguments:
            self.extend(owner, each, call.node)
        return Constant(None)

    def list_sort(self, owner: Value, call: Call) -> Value:
        """Sort in place."""
        chances = self.find_sort_chances(owner, call)
        self.sort_in_place(owner)
        owner.add_taints(chances)
        return Constant(None)

    def list_pop(self, owner: Sequence, call: Call) -> Value:
        """Take one element."""
        return self.take_next("pop", Call(call.node, [self.take_in_turn(owner, call.node)]))

    def list_index(self, owner: Value, call: Call) -> Value:
        """Return the place of an element."""
        return Value(as_mode(in_mode(owner.taints, "order"), "value"), "number")

    def list_copy(self, owner: Sequence, call: Call) -> Value:
        """Copy."""
        return owner.copy_as(owner.form, self.tick())

    def set_combine(self, owner: Sequence, call: Call) -> Value:
        """Combine sets."""
        parts = [self.get_element(each) for each in call.arguments]
        element = join_all([owner.element, *parts])
        return self.make_sequence(None, self.strip_orders(element), "set")

    def set_subtract(self, owner: Sequence, call: Call) -> Value:
        """Take elements out of a set: what is left are its own."""
        if self.collect_all_taints(call.arguments):
            return self.set_combine(owner, call)
        return self.make_sequence(None, self.strip_orders(owner.element), "set")

    def set_intersect(self, owner: Sequence, call: Call) -> Value:
        """Return what several sets have: whole numbers, if one of them has nothing else."""
        if not self.collect_all_taints(call.arguments):
            for each in (owner, *call.arguments):
                if isinstance(each, Sequence) and self.is_whole(each.element):
                    return self.make_sequence(None, self.strip_orders(each.element), "set")
        return self.set_combine(owner, call)

    def table_keys(self, owner: Table, call: Call) -> Value:
        """Return the keys in their order."""
        return self.make_sequence(None, owner.key, "iterator").add_taints(
            in_mode(owner.taints, "order")
        )

    def table_values(self, owner: Table, call: Call) -> Value:
        """Return the values in their order."""
        found = self.make_sequence(None, owner.element, "iterator")
        found.most = owner.most
        return found.add_taints(in_mode(owner.taints, "order"))

    def table_items(self, owner: Table, call: Call) -> Value:
        """Return pairs in their order."""
        pair = self.make_sequence([owner.key or Value(), owner.element or Value()], form="tuple")
        return self.make_sequence(None, pair, "iterator").add_taints(in_mode(owner.taints, "order"))

    def table_get(self, owner: Table, call: Call) -> Value:
        """Return the value of a key, or another one."""
        found = self.get_item(owner, call.get_first(), call.node)
        return join(found, call.arguments[1]) if len(call.arguments) > 1 else found

    def table_setdefault(self, owner: Table, call: Call) -> Value:
        """Return the value of a key, or put one there."""
        if len(call.arguments) > 1:
            self.store(owner, call.arguments[0], call.arguments[1])
        return self.get_item(owner, call.get_first(), call.node)

    def table_update(self, owner: Table, call: Call) -> Value:
        """Put the items of another dictionary into it."""
        for given in call.arguments:
            if isinstance(given, Table):
                self.store(owner, given.key or Value(), given.element or Value())
                owner.add_taints(in_mode(given.taints, "order"))
            elif owner.maker is not None:  # a Counter
                counted = self.take_in_turn(given, call.node)
                self.store(owner, self.get_element(counted), Value(kind="number"))
                owner.add_taints(in_mode(counted.taints, "order"))
        for word, value in call.keywords.items():
            self.store(owner, Constant(word), value)
        return Constant(None)

    def get_item(self, owner: Value, key: Value, node: ast.AST) -> Value:
        """Return `owner[key]`."""
        raise NotImplementedError


LIST_METHODS: dict[str, Callable[[Containers, Sequence, Call], Value]] = {
    **dict.fromkeys(("append", "add", "appendleft", "insert"), Containers.list_append),
    **dict.fromkeys(("extend", "update", "extendleft"), Containers.list_extend),
    **dict.fromkeys(("union", "symmetric_difference"), Containers.set_combine),
    "difference": Containers.set_subtract,
    "intersection": Containers.set_intersect,
    "sort": Containers.list_sort,
    "pop": Containers.list_pop,
    "popleft": Containers.list_pop,
    "index": Containers.list_index,
    "copy": Containers.list_copy,
}
TABLE_METHODS: dict[str, Callable[[Containers, Table, Call], Value]] = {
    "keys": Containers.table_keys,
    "values": Containers.table_values,
    "items": Containers.table_items,
    "most_common": Containers.table_items,
    "get": Containers.table_get,
    "setdefault": Containers.table_setdefault,
    "pop": Containers.table_get,
    "update": Containers.table_update,
}
