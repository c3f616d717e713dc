"""Orders by chance: where they come from, what passes them on, what ends them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.chances import Chances
from envlock.linter.interpreter.run_state import Loop
from envlock.linter.interpreter.values import (
    CLEAN,
    Class,
    Constant,
    Either,
    Function,
    Instance,
    Made,
    Sequence,
    Table,
    Taints,
    Value,
    as_mode,
    in_mode,
    join,
    options,
)
from envlock.linter.names import UNORDERED_FUNCTIONS, UNORDERED_KEYWORDS

UNFILLED = "ENV210"
"""The rule of arrays without initial values."""
NUMBERS = frozenset({"number", "tensor"})
WALKS = ("os.walk", "tf.io.gfile.walk", "tf.gfile.Walk")


class Orders(Chances):
    """Values with an order that is not guaranteed."""

    def list_folder(self, name: str, call: Call) -> Value:
        """Return the names in a folder."""
        chance = self.add_chance("ENV303", "order", name, call.node)
        text: Value = Value(kind="text")
        if name in WALKS:
            # Three orders: that of the files, that of the folders, which a program may sort so that
            # it walks in order (ENV303/good_walk.py), and that of the walk.
            files = self.make_sequence(None, text).add_taints(frozenset({(chance, "order")}))
            folders = self.make_sequence(None, text).add_taints(frozenset({(chance, "order")}))
            text = self.make_sequence([Value(kind="text"), folders, files], form="tuple")
        found = self.make_sequence(None, text, "iterator")
        # `def list_files(folder): return os.listdir(folder)` is a listing under another name: it is
        # its callers that use the order (`Programs.is_harmless`, ENV303/good_wrapper.py).
        if call.arguments and all(self.is_parameter(each) for each in call.arguments):
            found.form = "wrapped"
        return found.add_taints(frozenset({(chance, "order")}))

    def is_parameter(self, value: Value) -> bool:
        """Return whether a value is what a caller that is not seen gives, unchanged."""
        return type(value) is Value and value.kind == "given"

    def arrive(self, name: str, call: Call) -> Value:
        """Return results in the order in which workers finish."""
        chance = self.add_chance("ENV307", "order", name, call.node)
        self.use_functions(call)
        # Other names raise an error when the time is over; this one says how many have come by
        # then.
        if name == "ray.wait" and call.get_constant("timeout") is not None:
            self.ledger.counted.add(chance)
        element = self.combine([])
        found = self.make_sequence(None, element, "iterator")
        return found.add_taints(frozenset({(chance, "order")}))

    def use_functions(self, call: Call) -> list[Value]:
        """Run the functions that a call hands on, and return what they return."""
        raise NotImplementedError

    def take_in_turn(self, value: Value, node: ast.AST) -> Value:
        """Return a value as what its elements are taken from in turn: the order of a set is by
        chance.
        """
        if isinstance(value, Either):
            parts = [self.take_in_turn(each, node) for each in value.options]
            result = parts[0]
            for part in parts[1:]:
                result = join(result, part)
            return result
        if not isinstance(value, Sequence) or value.form != "set" or self.is_stable(value):
            return value
        chance = self.add_chance("ENV304", "order", "set", node)
        if any(self.is_salted(each) for each in options(value.element)):
            self.ledger.salted.add(chance)
        # A copy: the set itself is still one, and may be sorted or asked for its length later.
        copy = value.copy_as("iterator", value.born)
        copy.items = None
        return copy.add_taints(frozenset({(chance, "order")}))

    def is_stable(self, value: Sequence) -> bool:
        """Return whether a set holds whole numbers, or tuples of them, whose hashes are the same in
        every run.
        """
        if value.most is not None and value.most < 2:  # one element has one order
            return True
        # Of strings it is not: https://docs.python.org/3/using/cmdline.html#envvar-PYTHONHASHSEED
        # A None among numbers is mostly what stood there before them.
        numbers = [each for each in options(value.element) if not self.is_written_none(each)]
        return bool(numbers) and all(self.is_whole(each) for each in numbers)

    def is_salted(self, value: Value) -> bool:
        """Return whether a value is seen to be a text, or something that is hashed by its address."""
        if isinstance(value, Sequence):
            items = options(value.element) if value.items is None else value.items
            return any(self.is_salted(part) for each in items for part in options(each))
        if isinstance(value, Constant):
            return isinstance(value.value, str | bytes)
        return value.kind == "text" or isinstance(value, Instance | Made | Function | Class)

    def is_whole(self, value: Value) -> bool:
        """Return whether a value is a number, or a tuple of numbers.

        An array counts, as sets are made of whole numbers in it, such as labels: the hash of a
        float is the same in every run, too.
        """
        if isinstance(value, Sequence):
            items = options(value.element) if value.items is None else value.items
            return all(self.is_whole(each) for each in items)
        return value.kind in ("number", "tensor", "whole")

    def end_order(self, value: Value, form: str) -> Sequence:
        """Return the same elements in an order that is always the same, as `sorted` does."""
        result = self.make_sequence(None, self.strip_orders(self.get_element(value)), form)
        if isinstance(value, Sequence):
            result.most = value.most
            if form != "list":
                result.items = None
        result.taints = frozenset(
            each for each in value.taints if each[0].kind != "order" and each[1] != "order"
        )
        return result

    def end_any_order(self, value: Value) -> Value:
        """Return a value without the order of its elements, for whatever does not look at it."""
        if isinstance(value, Sequence):
            return self.end_order(value, value.form)
        if type(value) is Value:
            return Value(self.forget(value.taints, "each", "order"), value.kind, value.default)
        return value

    def end_unordered(self, name: str, call: Call) -> Call:
        """Return a call of a library without the orders that change nothing of what it does."""
        whole = name.rpartition(".")[2] in UNORDERED_FUNCTIONS
        if not whole and (not call.keywords or UNORDERED_KEYWORDS.isdisjoint(call.keywords)):
            return call
        words = UNORDERED_KEYWORDS & call.keywords.keys()
        arguments, keywords = list(call.arguments), dict(call.keywords)
        if whole:
            arguments = [self.end_any_order(each) for each in arguments]
            words = frozenset(keywords)
        for word in words:
            keywords[word] = self.end_any_order(keywords[word])
        return replace(call, arguments=arguments, keywords=keywords)

    def note_single(self, value: Value) -> None:
        """Note that a container has one element, in whatever order it was filled.

        So says `assert len(files) == 1`.
        """
        self.sort_in_place(value)
        for each in options(value):
            if isinstance(each, Sequence):
                each.most = 1

    def strip_orders(self, value: Value) -> Value:
        """Return a value without the orders it was taken from."""
        if isinstance(value, Sequence):
            copy = value.copy_as(value.form, value.born)
            copy.taints = self.forget(copy.taints, "each")
            copy.element = self.strip_orders(copy.element)
            copy.items = (
                None if copy.items is None else [self.strip_orders(each) for each in copy.items]
            )
            return copy
        if type(value) is Value:
            return Value(self.forget(value.taints, "each"), value.kind, value.default)
        return value

    def sort_in_place(self, value: Value) -> None:
        """Take the order of a container away; the order of those that it was filled with goes with
        it.
        """
        for each in options(value):
            if isinstance(each, Sequence | Made | Table):
                ended = in_mode(each.taints, "order")
                each.taints = frozenset(t for t in each.taints if t[1] != "order")
                if isinstance(each, Sequence):
                    each.element = self.strip_orders(each.element)
                    each.items = None
                # A walk that sorts its folders goes through them in order: ENV303/good_walk.py.
                for loop in self.loops:
                    loop.taints -= as_mode(ended, "each")

    # ------------------------------------------------------------ filling

    def fill(self, *values: Value) -> None:
        """Note that something gives arrays their numbers, or may do so out of sight."""
        for value in values:
            for each in options(value):
                # The array itself, where it lies: what was computed from it before is not filled.
                if each.kind == "unfilled":
                    each.taints = frozenset(t for t in each.taints if t[0].rule != UNFILLED)
                    each.kind = "tensor"

    def is_shared(self, born: int) -> bool:
        """Return whether several threads of a loop run here and share what was made before it
        began.

        Processes share nothing.
        """
        return any(worker.is_thread and worker.is_many(born) for worker in self.workers[-1:])

    def keep(self, container: Value, value: Value, born: int) -> None:
        """Note that something that outlives a loop keeps a value: it has the order of the rounds."""
        orders = self.find_orders_since(born)
        # A list that a round makes and fills has the order of its own filling. What comes from a
        # queue (ENV307/bad_queue.py) comes by chance, whatever loop takes it.
        for taint in in_mode(value.taints, "each"):
            if self.is_arrival(taint[0].rule):
                orders |= {taint}
        container.add_taints(as_mode(orders, "order"))

    def find_orders(self, loops: Iterable[Loop], element: Value) -> Taints:
        """Return the orders by chance of a list to which each round of some loops gives an element."""
        orders = CLEAN
        for chance, mode in self.collect_taints(element):
            if mode == "each" and self.is_arrival(chance.rule):
                orders |= {(chance, "order")}
        for loop in loops:
            orders |= as_mode(loop.taints, "order")
        return orders

    def is_arrival(self, rule: str) -> bool:
        """Return whether what comes by such a chance comes late or early, whatever loop it is in."""
        return rule == "ENV307"

    def append(self, container: Value, value: Value) -> None:
        """Put a value into a container of the program."""
        for each in options(container):
            if isinstance(each, Sequence):
                # A loop runs once here, and any number of times in truth.
                repeated = self.is_repeated(each.born)
                if repeated:
                    each.most = None
                elif each.most is not None:
                    each.most += 1
                items = each.items
                if each.form == "set":  # it keeps no order of filling
                    each.add(self.strip_orders(value))
                else:
                    each.add(value)
                if items is not None and not repeated and not self.unsure:
                    each.items = [*items, value]
                if each.form != "set":
                    self.keep(each, value, each.born)
            elif isinstance(each, Made | Instance):
                self.teach(each, value)

    def is_repeated(self, born: int) -> bool:
        """Return whether a loop of any kind began after something was made."""
        return any(began > born for began in self.rounds)

    def extend(self, container: Value, values: Value, node: ast.AST) -> None:
        """Put all elements of a value into a container."""
        values = self.take_in_turn(values, node)
        if isinstance(values, Sequence) and values.most == 0:
            return
        for each in options(container):
            if not isinstance(each, Sequence):
                self.teach(each, values)
                continue
            each.most = None
            if each.form == "set":
                each.add(self.strip_orders(self.get_element(values)))
                continue
            each.add(self.get_element(values))
            each.add_taints(in_mode(values.taints, "order"))
            self.keep(each, self.get_element(values), each.born)

    def teach(self, learner: Value, value: Value) -> None:
        """Let something that is not seen keep or learn from a value, one after the other.

        A model that is older than a loop by chance has learnt in the order of its rounds; a file
        that each round opens for itself (ENV303/good_copied.py) has no such order.
        """
        born = getattr(learner, "born", 0)
        taints = self.collect_taints(value)
        orders = in_mode(taints, "each") & self.find_orders_since(born)
        arrived = frozenset(
            each for each in in_mode(taints, "each") if self.is_arrival(each[0].rule)
        )
        self.ledger.count(as_mode(orders | arrived, "value"))
        self.ledger.count(taints)

    def store(self, container: Value, key: Value, value: Value) -> None:
        """Put a value under a key or at a place."""
        for each in options(container):
            if isinstance(each, Table):
                # A word gets the number of its place: another one in every run
                # (ENV304/bad_vocabulary.py).
                placed = in_mode(value.taints, "place")
                kept = value
                if placed:
                    kept = value.add_taints(as_mode(placed, "value"))
                named = in_mode(self.collect_taints(key), "each")
                if named:  # whoever looks it up by its key gets the same one, whenever it came
                    kept = self.strip_orders(kept)
                each.store(key, kept)
                orders = self.find_orders_since(each.born) & named
                each.add_taints(as_mode(orders, "order"))
            elif isinstance(each, Sequence):
                each.element = join(each.element, value)
                self.place(each, key, value)
            elif isinstance(each, Made):
                self.place(each, key, value)
            elif type(each) is Value:
                self.fill(each)
                each.taints |= self.forget(self.collect_taints(value), "each")
                self.place(each, key, value)

    def place(self, container: Value, key: Value, value: Value) -> None:
        """Note what lies at a place that counts the rounds of a loop."""
        places = in_mode(self.collect_taints(key), "place")
        if places:
            order = as_mode(places, "order")
            if type(container) is Value:  # an array: `add_taints` would return another one
                container.taints |= order
            else:
                container.add_taints(order)
        if not isinstance(container, Sequence):
            drawn = frozenset(
                each for each in self.collect_taints(value) if each[1] in ("value", "order")
            )
            container.add_taints(drawn)

    # ------------------------------------------------------------ hashes

    def hash(self, call: Call) -> Value:
        """Return hash() of a value: of text it is salted."""
        given = call.get_first()
        # A class that says what its hash is: that is used by sets and dictionaries.
        inside = getattr(self.frames[-1].node, "name", "")
        if self.is_hashed_alike(given) or inside in ("__hash__", "__eq__"):
            return Value(self.collect_taints(given), "number")
        chance = self.add_chance("ENV305", "clock", "hash()", call.node)
        return Value(self.collect_taints(given) | {(chance, "value")}, "number")

    def is_hashed_alike(self, value: Value) -> bool:
        """Return whether a value has the same hash in every run."""
        if isinstance(value, Constant):
            return value.kind == "number" or value.value is None
        if isinstance(value, Sequence) and value.items is not None:
            # Beside numbers, what is not known is a number too: so seeds are mixed, as in
            # `hash((seed, index))`.
            known = [each for each in value.items if each.kind or isinstance(each, Sequence)]
            return bool(known) and all(self.is_hashed_alike(each) for each in known)
        return self.is_whole(value)
