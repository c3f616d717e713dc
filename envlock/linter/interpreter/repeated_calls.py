"""Calls of a function that has run before: what they have in common, and what they do without
running again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.library import PARSERS
from envlock.linter.interpreter.operations import Operations
from envlock.linter.interpreter.run_state import Deed, Seed, State
from envlock.linter.interpreter.source_files import Sources
from envlock.linter.interpreter.values import (
    CLEAN,
    Chance,
    Class,
    Code,
    Constant,
    Function,
    Instance,
    Library,
    Made,
    Taints,
    Value,
)
from envlock.linter.module import Module, walk

Key = tuple[object, ...]
Named = list[tuple[str, Value]]
"""The arguments of a call with their names, as `Call.list_named_values` returns them."""
MOST, MOST_TAINTED = 1, 3
"""How often a function runs with the same seeds and switches: more callers tell nothing new.

Where chances are handed over, three callers are given a look: one may only print what another one
trains with.
"""
IN_ALL = 12
"""Times as often with other switches: of 16,000 functions of Keras and NumPy 4 % ran 20 times and
more.
"""


@dataclass(slots=True)
class Look:
    """What is kept of calls that have a key in common.

    Attributes:
        runs: how often they have run.
        last: what the last of them returned, and the state after it.
    """

    runs: int = 0
    last: tuple[Value, State] | None = None


class RepeatedCalls(Operations):
    """What is kept of the calls of each function.

    Attributes:
        results: what a call with the same arguments returned, and the state after it.
        looks: how often each kind of call has run.
        usual: the chances in what each function returned last.
        done: what each function did last.
        attributes_given: what each method gave its object last.
        counting: the arguments of each function that have reached something in its body.
        examples: the first object of each class.
        asked: the attributes by which each function decides.
    """

    def __init__(self, sources: Sources, tensorflow: str, budget: int) -> None:
        super().__init__(sources, tensorflow, budget)
        self.results: dict[Key, tuple[Value, State]] = {}
        self.looks: dict[Key, Look] = {}
        self.usual: dict[ast.AST, Taints] = {}
        self.done: dict[ast.AST, list[Deed]] = {}
        self.attributes_given: dict[ast.AST, dict[str, Value]] = {}
        self.counting: dict[ast.AST, set[str]] = {}
        self.examples: dict[ast.ClassDef, Instance] = {}
        self.constructor_seeds: dict[ast.ClassDef, dict[str, Seed]] = {}
        self.asked: dict[Code, list[tuple[str, str, bool]]] = {}

    def make_exact_key(
        self, function: Function, call: Call, named: Named, state: Key
    ) -> Key | None:
        """Return what the result of a call hangs on, or None where it cannot be kept."""
        # There its effects matter, and not its result alone: on the chances of the loops, on what
        # is looked into.
        if self.loops or self.deeds or self.dead or call.starred:
            return None
        where = function.node, getattr(function.owner, "born", 0), function.scope.number
        paths = bool(self.off), self.in_entry, self.unsure > 0, len(self.rounds) > 0
        parts: list[object] = [*where, state, *paths]
        for word, value in named:
            kind = type(value)
            is_tainted = value.taints and kind in (Value, Instance)
            if is_tainted or kind not in EXACT:
                return None
            parts += word, EXACT[kind](value)
        return tuple(parts)

    def make_loose_key(self, function: Function, named: Named, state: Key, *, tainted: bool) -> Key:
        """Return what a call has in common with those that tell nothing new.

        That is the state, the switches among its arguments and attributes, and what it closes over:
        the function of a closure that is made twice, once for training, is two functions.
        """
        switches: list[tuple[str, object]] = []
        for word, each in named:
            switch: object = each.default
            if switch is not ... and not _is_switch(switch):
                switch = ...
            if isinstance(each, Made) and each.name in PARSERS:  # to which it adds flags
                switch = each.born
            switches.append((word, switch))
        asked = self.list_asked(function.node, function.scope.source.module)
        owners: dict[str, Value] = {}
        if asked:
            owners = _name_arguments(function, named)
        for owner, word, is_text in asked:
            held = owners.get(owner)
            # Of its own object a method may ask for much: it would run for each of its states.
            if isinstance(held, Instance) and (is_text or held is not function.owner):
                own = held.attributes.get(word)
                if own is not None and _is_switch(own.default):
                    switches.append((f"{owner}.{word}", own.default))
        closure = function.scope.number if function.scope.parent is not None else 0
        around = tainted, bool(self.off), bool(self.deeds), closure
        return function.node, state, around, tuple(switches)

    def list_asked(self, node: Code, module: Module) -> list[tuple[str, str, bool]]:
        """Return the attributes by which a function decides: of which of its names, which, and
        whether it compares them with a text.
        """
        if node in self.asked:
            return self.asked[node]
        found: dict[tuple[str, str], bool] = {}
        deciding: list[ast.If | ast.IfExp] = [*module.list_nodes_in(node, ast.If)]
        deciding += module.list_nodes_in(node, ast.IfExp)
        for branching in deciding:
            for each in walk(branching.test):
                if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
                    found[each.value.id, each.attr] = False
        for comparison in module.list_nodes_in(node, ast.Compare):
            each = comparison.left
            if not _is_text(comparison.comparators[0]):
                continue
            if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
                found[each.value.id, each.attr] = True
        self.asked[node] = [(*names, is_text) for names, is_text in found.items()]
        return self.asked[node]

    def find_look(self, key: Key) -> Look:
        """Return what is kept of the calls that have a key in common."""
        found = self.looks.get(key)
        if found is None:
            found = self.looks[key] = Look()
        return found

    def is_known(self, look: Look, in_all: Look, *, tainted: bool) -> bool:
        """Return whether a function has run often enough in this way, and count the run."""
        look.runs += 1
        in_all.runs += 1
        most = MOST_TAINTED if tainted else MOST
        return look.runs > most or in_all.runs > IN_ALL * most

    def recall(self, function: Function, look: Look, handed: Taints) -> Value:
        """Return what a function returns that does not run once more, and do what it does to the
        state.
        """
        node = function.node
        for deeds in self.deeds:
            deeds.extend(self.done.get(node, ()))
        if isinstance(function.owner, Instance):
            self.give_again(node, function.owner)
        if look.last is not None:
            result, after = look.last
            self.state = after.copy()
            # A model or a closure that it makes is still one; of a value, only the chances are
            # known.
            if isinstance(result, (Made, Function)) and not handed:
                return result
        return Value(handed | self.usual.get(node, CLEAN))

    def give_again(self, method: Code, instance: Instance) -> None:
        """Give an object what a method gave another one; a None is still to be set."""
        for name, value in self.attributes_given.get(method, {}).items():
            own = instance.attributes.get(name)
            if own is None or (isinstance(own, Constant) and own.value is None):
                instance.attributes[name] = value

    def list_uncounted(self, named: Named) -> dict[str, set[Chance]]:
        """Return the chances in each argument that have reached nothing so far."""
        found = {}
        for word, value in named:
            taints = self.collect_taints(value)
            if not taints:
                continue
            chances = {chance for chance, _ in taints} - self.ledger.counted
            if chances:
                found[word] = chances
        return found

    def list_counting_values(self, node: Code, named: Named) -> list[Value]:
        """Return the arguments of which it was seen that the function lets them reach something."""
        words = self.counting.get(node)
        if words is None:
            return []
        return [value for word, value in named if word in words]


def _name_arguments(function: Function, named: Named) -> dict[str, Value]:
    """Return the arguments of a call by the names of the parameters that get them."""
    parameters = [each.arg for each in function.node.args.args]
    found: dict[str, Value] = {}
    if function.owner is not None and parameters:
        found[parameters.pop(0)] = function.owner
    for word, value in named:
        name = word
        if word.isdigit() and int(word) < len(parameters):  # given by its place
            name = parameters[int(word)]
        found[name] = value
    return found


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_switch(value: object) -> bool:
    """Return whether a constant may decide what a function does: True, None, or `train`."""
    if isinstance(value, str):
        return value.isidentifier()
    return value is None or isinstance(value, bool)


def _identify_constant(value: Constant) -> object:
    return type(value.value), repr(value.value), value.optional


def _identify_function(value: Function) -> object:
    return value.node, value.scope.number, getattr(value.owner, "born", 0)


EXACT: dict[type[Value], Callable[..., object]] = {
    Constant: _identify_constant,
    Value: lambda value: (value.kind, value.default is None),
    Library: lambda value: value.name,
    Instance: lambda value: value.born,
    Function: _identify_function,
    Class: lambda value: value.node,
}
"""What tells two values of a kind apart in a call with the same arguments; no call with any other
kind is kept.
"""
