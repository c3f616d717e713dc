"""Functions of graphs: the bodies of TensorFlow's loops, what a dataset maps, and what XLA
compiles.
"""

from __future__ import annotations

import ast

from envlock.data.specifiers import matches_version
from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.own_environments import Environments
from envlock.linter.interpreter.run_state import Deed
from envlock.linter.interpreter.source_files import describe_more
from envlock.linter.interpreter.values import (
    Class,
    Either,
    Function,
    Instance,
    Library,
    Made,
    Method,
    Partial,
    Taints,
    Value,
)
from envlock.linter.module import Hit, walk

MAP_AND_BATCH = ("tf.contrib.data.map_and_batch", "tf.data.experimental.map_and_batch")
LOOPS = {"tf.map_fn": 0, "tf.while_loop": 1, "tf.scan": 0, "tf.foldl": 0, "tf.foldr": 0}
"""Loops of TensorFlow, and the position of their body."""
# Loops whose rounds get what the round before has made; the rounds of `map_fn` are independent.
CARRYING = ("tf.while_loop", "tf.scan", "tf.foldl", "tf.foldr")
IN_GRAPH = ("op", "generator")


class GraphFunctions(Environments):
    """What functions do that TensorFlow calls."""

    def look_into(self, mapped: Value | None, owner: Value, call: Call) -> list[Deed]:
        """Return what a function does that is stateful, whoever calls it."""
        if mapped is None:
            return []
        self.deeds.append([])
        each = Value()
        if self.is_dataset(owner):
            each = self.get_element(owner)
        # Elements are tuples mostly, of as many parts as the function has parameters.
        if isinstance(mapped, Function) and not mapped.node.args.vararg:
            count = len(mapped.node.args.args)
            if mapped.owner is not None:  # `self` is given already
                count -= 1
            self.call_function(mapped, Call(call.node, [each] * max(count, 0)))
        elif isinstance(
            mapped, Library | Instance | Made | Method | Partial | Class | Either | Function
        ):
            self.call(mapped, Call(call.node, [each]))
        return self.deeds.pop()

    def map_batches(self, call: Call) -> Value:
        """Run a function on each element of batches.

        As many elements as a batch has are mapped at a time, unless fewer are asked for. Source:
        https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/experimental/map_and_batch
        """
        deeds = self.look_into(call.get("map_func", 0), Value(), call)
        if call.get_constant("num_parallel_calls", 4) != 1:
            self.report_parallel(deeds, call)
        return Value(self.collect_all_taints(call.list_values()))

    def run_map(self, name: str, call: Call) -> Value:
        """Run the body of a loop of TensorFlow, whose rounds run in parallel."""
        word = "body" if name == "tf.while_loop" else "fn"
        body = call.get(word, LOOPS[name])
        deeds: list[Deed] = []
        if isinstance(body, Function):
            self.deeds.append([])
            self.call_function(body, Call(call.node, self.list_carried(name, body)))
            deeds = self.deeds.pop()
        elif body is not None:
            deeds = self.look_into(body, Value(), call)
        found = [each for each in deeds if each.kind in IN_GRAPH]
        if name in CARRYING:
            # What needs the result of the round before waits for it: its rounds are in order.
            found = [each for each in found if not each.carried]
        one = call.get_constant("parallel_iterations") == 1
        if found and not one and matches_version([">=2.5"], self.tensorflow):
            more = describe_more(found[0].source, [each.node for each in found])
            message = f"{found[0].name} draws in iterations that run in parallel{more}"
            self.ledger.report("ENV403", self.source, Hit(call.node, message))
        return Value(self.collect_all_taints(call.list_values()), "tensor")

    def list_carried(self, name: str, body: Function) -> list[Value]:
        """Return what a round gets from the one before, marked as such.

        A counter is not marked: the next round knows it without waiting for this one.
        """
        names = [each.arg for each in body.node.args.args]
        if name not in CARRYING:
            return [Value() for _ in names]
        # `return i + 1, ...`
        counters: set[str] = set()
        for each in walk(body.node):
            if not isinstance(each, ast.BinOp) or not isinstance(each.left, ast.Name):
                continue
            if getattr(each.right, "value", 0) == 1:
                counters.add(each.left.id)
        chance = self.ledger.add_chance("CARRIED", "order", name, body.node, self.source)
        carried: Taints = frozenset({(chance, "value")})
        values: list[Value] = []
        for word in names:
            if word in counters:
                values.append(Value(kind="number"))
            else:
                values.append(Value(carried))
        return values

    def is_compiled(self, node: ast.FunctionDef) -> bool:
        """Return whether XLA compiles a function, by its decorators."""
        for each in node.decorator_list:
            if not isinstance(each, ast.Call):
                continue
            for word in each.keywords:
                # `experimental_compile` is its name up to TensorFlow 2.4.
                if word.arg not in ("jit_compile", "experimental_compile"):
                    continue
                if isinstance(word.value, ast.Constant) and word.value.value is True:
                    return True
        return False

    def report_compiled(self, node: ast.FunctionDef, deeds: list[Deed]) -> None:
        """Report random operations that XLA compiles."""
        # From 2.16 on layers are those of Keras 3, which draw from seeds that are variables.
        kinds = ["op"]
        if matches_version(["<2.16"], self.tensorflow):
            kinds.append("layer")
        found = [each for each in deeds if each.kind in kinds]
        if found and matches_version([">=2.5"], self.tensorflow):
            more = describe_more(found[0].source, [each.node for each in found])
            message = f"{found[0].name} in {node.name}, which XLA compiles{more}, ignores the seeds"
            self.ledger.report("ENV404", found[0].source, Hit(found[0].node, message))
        # What the functions around do as well: its deeds were noted in a list of their own.
        for deeds_around in self.deeds:
            deeds_around.extend(deeds)

    def call_function(self, function: Function, call: Call) -> Value:
        """Return what a function of the project returns."""
        raise NotImplementedError
