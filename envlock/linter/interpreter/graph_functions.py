"""Functions of graphs: the bodies of TensorFlow's loops, what a dataset maps, and what XLA compiles."""

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
    Scope,
    Taints,
    Value,
)
from envlock.linter.module import Hit

LOOPS = {"tf.map_fn": 0, "tf.while_loop": 1, "tf.scan": 0, "tf.foldl": 0, "tf.foldr": 0}
"""Loops of TensorFlow, and the position of their body."""
CARRYING = ("tf.while_loop", "tf.scan", "tf.foldl", "tf.foldr")
IN_GRAPH = ("op", "generator")


class GraphFunctions(Environments):
    """What functions do that TensorFlow calls."""

    def look_into(self, mapped: Value | None, owner: Value, call: Call) -> list[Deed]:
        """Return what a function does that is stateful, whoever calls it."""
        if mapped is None:
            return []
        self.deeds.append([])
        each = self.elements(owner) if self.is_dataset(owner) else Value()
        if isinstance(mapped, Function) and not mapped.node.args.vararg:
            count = len(mapped.node.args.args) - (mapped.owner is not None)
            self.call_function(mapped, Call(call.node, [each] * max(count, 0)))
        elif isinstance(
            mapped, Library | Instance | Made | Method | Partial | Class | Either | Function
        ):
            self.call(mapped, Call(call.node, [each]))
        return self.deeds.pop()

    def run_map(self, name: str, call: Call) -> Value:
        """Run the body of a loop of TensorFlow, whose rounds run in parallel."""
        body = call.get("body" if name == "tf.while_loop" else "fn", LOOPS[name])
        deeds: list[Deed] = []
        if isinstance(body, Function):
            self.deeds.append([])
            self.call_function(body, Call(call.node, self.state_of(name, body)))
            deeds = self.deeds.pop()
        elif body is not None:
            deeds = self.look_into(body, Value(), call)
        found = [
            each
            for each in deeds
            if each.kind in IN_GRAPH and not (name in CARRYING and each.carried)
        ]
        one = call.constant("parallel_iterations") == 1
        if found and not one and matches_version([">=2.5"], self.tensorflow):
            more = describe_more(found[0].source, [each.node for each in found])
            message = f"{found[0].name} draws in iterations that run in parallel{more}"
            self.ledger.hit("ENV403", self.source, Hit(call.node, message))
        return Value(self.deep_of(call.values()), "tensor")

    def state_of(self, name: str, body: Function) -> list[Value]:
        """Return what a round gets from the one before: all but what only counts."""
        names = [each.arg for each in body.node.args.args]
        if name not in CARRYING:
            return [Value() for _ in names]
        counters = {
            each.left.id
            for each in ast.walk(body.node)
            if isinstance(each, ast.BinOp)
            and isinstance(each.left, ast.Name)
            and getattr(each.right, "value", 0) == 1
        }
        chance = self.ledger.chance("CARRIED", "order", name, body.node, self.source)
        carried: Taints = frozenset({(chance, "value")})
        return [Value(kind="number") if each in counters else Value(carried) for each in names]

    def is_compiled(self, node: ast.FunctionDef, scope: Scope) -> bool:
        """Return whether XLA compiles a function."""
        for each in node.decorator_list:
            if isinstance(each, ast.Call):
                told = [
                    word.value
                    for word in each.keywords
                    if word.arg in ("jit_compile", "experimental_compile")
                ]
                if any(isinstance(value, ast.Constant) and value.value is True for value in told):
                    return True
        return False

    def report_compiled(self, node: ast.FunctionDef, deeds: list[Deed]) -> None:
        """Report random operations that XLA compiles."""
        layers = matches_version(["<2.16"], self.tensorflow)
        found = [each for each in deeds if each.kind == "op" or (each.kind == "layer" and layers)]
        if found and matches_version([">=2.5"], self.tensorflow):
            more = describe_more(found[0].source, [each.node for each in found])
            message = f"{found[0].name} in {node.name}, which XLA compiles{more}, ignores the seeds"
            self.ledger.hit("ENV404", found[0].source, Hit(found[0].node, message))
        for deeds_around in self.deeds:
            deeds_around.extend(deeds)

    def call_function(self, function: Function, call: Call) -> Value:
        """Return what a function of the project returns."""
        raise NotImplementedError
