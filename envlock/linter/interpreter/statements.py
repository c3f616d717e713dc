"""What statements do, in their order: each branch is a path of its own, and what follows joins
them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import cast

from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.branches import Branches
from envlock.linter.interpreter.run_state import Frame
from envlock.linter.interpreter.values import (
    CLEAN,
    HASHES,
    Class,
    Constant,
    FileValue,
    Function,
    Instance,
    Library,
    Made,
    Scope,
    Sequence,
    Taints,
    Value,
    as_mode,
    in_mode,
    join,
)
from envlock.linter.module import walk
from envlock.linter.names import FILLING_METHODS, TEST_CASES

_EVERYTHING = ast.arguments([], [], ast.arg("args"), [], [], ast.arg("kwargs"), [])
DECORATED = ast.Lambda(_EVERYTHING, ast.Constant(None))
"""Stands for the function that a decorator is given: any, as it puts the same around each."""
TRUE = ("1", "true", "True", "TRUE")
SWITCH_VARIABLE = "TF_DETERMINISTIC_OPS"


class Statements(Branches):
    """The execution of statements."""

    def run_body(self, body: list[ast.stmt]) -> bool:
        """Run statements; return whether what follows them is not reached."""
        for statement in body:
            self.steps -= 1
            if self.steps <= 0:
                return True
            row = STATEMENTS.get(type(statement))
            try:
                if row is not None and row(self, statement):
                    return True
            # An expression that is nested too deeply, as generated code can be: what follows it
            # runs.
            except RecursionError:
                continue
        return False

    # ------------------------------------------------------------ names

    def run_expression(self, node: ast.Expr) -> bool:
        if isinstance(node.value, ast.Call):
            self.discarded.add(node.value)
            function = node.value.func
            owner = function.value if isinstance(function, ast.Attribute) else None
            # `names.append(x)` fills a list and does not read it: one that is only filled here is
            # read by code that is not seen (`Programs.count_unread`).
            if isinstance(owner, ast.Name) and owner.id not in self.scope.read:
                self.evaluate(node.value)
                if getattr(function, "attr", "") in FILLING_METHODS:
                    self.scope.read.discard(owner.id)
                return False
        self.evaluate(node.value)
        return False

    def run_assign(self, node: ast.Assign) -> bool:
        first = node.targets[0]
        if isinstance(first, ast.Tuple) and len(node.targets) == 1:
            self.note_dropped(first, node.value)
        # `table[key] = x` does not read the table either; asked before the value, which may.
        filled = None
        if isinstance(first, ast.Subscript):
            filled = self.find_unread_container(first)
        value = self.evaluate(node.value)
        if filled is not None:
            self.assign_to(first, value)
            self.scope.read.discard(filled)
            return False
        if isinstance(value, Made):
            self.note_unused(first, value)
        for target in node.targets:
            if isinstance(target, ast.Name) and self.loops:
                value = self.carry(target.id, node.value, value)
            self.assign_to(target, value)
        return False

    def find_unread_container(self, target: ast.Subscript) -> str | None:
        """Return the name of the container that an assignment puts something into, if nothing has
        read it.
        """
        if not isinstance(target.value, ast.Name):
            return None
        name = target.value.id
        if name in self.scope.read:
            return None
        return name

    def note_dropped(self, target: ast.Tuple, value: ast.expr) -> None:
        """Note a call whose first result nothing uses."""
        # `_, places = tf.nn.max_pool_with_argmax(...)`: no gradient flows through the maxima.
        first = target.elts[0] if target.elts else None
        if isinstance(first, ast.Name) and first.id not in self.source.module.read_names:
            self.first_dropped.add(value)

    def carry(self, name: str, node: ast.expr, value: Value) -> Value:
        """Return a value that one round of a loop by chance makes of what the one before left."""
        # `total = total * 0.9 + read(file)`: the result depends on the order of the rounds, while
        # `x = x / 255` of what each round has made itself does not (ENV303/good_filled.py).
        each = in_mode(self.collect_taints(value), "each") & self.find_loop_orders()
        if not each or not _names(node, name):
            return value
        begun = self.scope.times.get(name) if name in self.scope.names else None
        outer = CLEAN
        for loop in self.loops:
            if begun is None or begun < loop.began:
                outer |= loop.taints
        return self.copy_value(value).add_taints(as_mode(each & outer, "order"))

    def run_annotated(self, node: ast.AnnAssign) -> bool:
        if node.value is not None:
            self.assign_to(node.target, self.evaluate(node.value))
        return False

    def assign_to(self, target: ast.expr, value: Value) -> None:
        """Give a value to what stands on the left."""
        if isinstance(target, ast.Name):
            if target.id == "__all__":  # only `import *` reads it
                value = self.end_any_order(value)
            scope = self.scope
            scope.bind(target.id, value)
            scope.times[target.id] = self.tick()
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.assign_parts(target.elts, value)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value)
            self.set_member(owner, target.attr, value, target)
        elif isinstance(target, ast.Subscript):
            self.assign_item(target, value)
        elif isinstance(target, ast.Starred):
            self.assign_to(target.value, self.make_sequence(None, self.get_element(value)))

    def assign_parts(self, targets: list[ast.expr], value: Value) -> None:
        """Give the parts of a value to several names."""
        if any(isinstance(each, ast.Starred) for each in targets):
            parts = [self.copy_value(self.get_element(value)) for _ in targets]
        else:
            parts = self.unpack(value, len(targets))
        for each, part in zip(targets, parts, strict=True):
            self.assign_to(each, part)

    def assign_item(self, target: ast.Subscript, value: Value) -> None:
        """Do `owner[key] = value`."""
        owner = self.evaluate(target.value)
        if isinstance(target.slice, ast.Slice):
            key = Value()
        else:
            key = self.evaluate(target.slice)
        if isinstance(owner, Library) and owner.name == "os.environ":
            self.set_variable(key, value)
            return
        # `picture[randrange(9)] = 1`: the array shows which place was drawn.
        drawn = self.find_picks(key)
        if drawn:
            value = self.copy_value(value).add_taints(as_mode(drawn, "pick"))
        self.store(owner, key, value)

    def find_picks(self, key: Value) -> Taints:
        """Return how chance is in the place that a key names: by a draw, or by a hash."""
        return frozenset(
            each
            for each in self.collect_taints(key)
            if each[0].kind == "draw" or each[0].rule == HASHES
        )

    def set_variable(self, key: Value, value: Value) -> None:
        """Set an environment variable: one of them turns op determinism on."""
        if isinstance(key, Constant) and isinstance(value, Constant) and value.value in TRUE:
            self.variables.add(str(key.value))
            if key.value == SWITCH_VARIABLE:
                self.state.switched = True

    def set_member(self, owner: Value, name: str, value: Value, node: ast.AST) -> None:
        """Give an object an attribute."""
        self.fill(value)  # other methods may do so
        option = isinstance(owner, Made) and "options" in owner.marks and name == "deterministic"
        if (option or name == "experimental_deterministic") and value.default is False:
            statement = self.source.module.get_parent(node) or node
            message = "the dataset's options let its elements come in any order"
            self.give_up_order(Call(statement), message)
        if isinstance(owner, Instance):
            # In a branch that is perhaps not taken the old value may stay: a name has a dictionary
            # for each branch, an object has not.
            before = owner.attributes.get(name)
            if before is not None and self.unsure > 0:
                value = join(before, value)
            owner.attributes[name] = value
            owner.read.discard(name)
        elif isinstance(owner, Made):
            owner.attributes[name] = value
        elif isinstance(owner, Class):
            owner.scope.names[name] = value
        elif isinstance(owner, FileValue):
            self.run_file(owner.source).names[name] = value
        else:
            self.count(value)

    def run_augmented(self, node: ast.AugAssign) -> bool:
        value = self.evaluate(node.value)
        target = node.target
        known = self.evaluate(target)
        name: ast.expr = target
        if isinstance(target, ast.Subscript):
            key = self.evaluate(target.slice)
            # Of another key, each round adds to an element of its own: `sizes[name] += 1`.
            if not isinstance(key, Constant) and not self.find_picks(key):
                return False
            name = target.value
        if isinstance(known, Sequence) and isinstance(node.op, ast.Add):
            self.extend(known, value, node.value)
            return False
        born = self.scope.times.get(name.id, 0) if isinstance(name, ast.Name) else 0
        orders = self.find_orders_since(born)
        kind = known.kind if known.kind == value.kind else ""
        result = self.combine([known, value], kind)
        each = in_mode(self.collect_taints(value), "each")
        if isinstance(target, ast.Name) and target.id in self.scope.outer and self.is_shared(born):
            self.note_sum(result, value, node)
        # `count += 1` counts the rounds. `text += name` has their order. Of other sums those of
        # what workers give are fractions; of listings and sets, mostly sizes are added up, which
        # have one sum in any order.
        if isinstance(value, Constant):
            result.taints |= as_mode(orders, "place")
        elif known.kind == "text":
            result.taints |= as_mode(orders & each, "value")
        else:
            arrived = frozenset(taint for taint in each if self.is_arrival(taint[0].rule))
            result.taints |= as_mode(arrived, "value")
        if isinstance(known, Constant) and isinstance(value, Constant) and not orders:
            result.kind = "number"
        self.keep_time(target, result)
        return False

    def note_sum(self, total: Value, value: Value, node: ast.AugAssign) -> None:
        """Note that several threads add to one global sum; whole numbers that count add up alike."""
        if not isinstance(value, Constant):
            chance = self.add_chance("ENV307", "order", "threads", node)
            total.taints |= frozenset({(chance, "value")})

    def keep_time(self, target: ast.expr, value: Value) -> None:
        """Give a name a value that goes on from its old one, and is as old: a sum outlives the
        rounds.
        """
        if isinstance(target, ast.Name):
            begun = self.scope.times.get(target.id)
            self.scope.bind(target.id, value)
            if begun is not None:
                self.scope.times[target.id] = begun
        else:
            self.assign_to(target, value)

    def run_delete(self, node: ast.Delete) -> bool:
        return False

    def run_global(self, node: ast.Global | ast.Nonlocal) -> bool:
        for name in node.names:
            scope = self.scope.parent
            if isinstance(node, ast.Global):
                scope = self.scope.get_top()
            while scope is not None and scope.parent is not None and name not in scope.names:
                scope = scope.parent
            if scope is not None and scope is not self.scope:
                self.scope.outer[name] = scope
        return False

    def run_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        function = Function(node, self.find_closure_scope())
        self.scope.bind(node.name, function)
        self.scope.read.add(node.name)
        self.defined[node] = function
        for each in node.decorator_list:
            self.evaluate_decorator(each, function)
        return False

    def evaluate_decorator(self, node: ast.expr, function: Function) -> None:
        """Note what a decorator does with a function: Sacred runs the configuration and the main
        function.
        """
        name = getattr(node, "attr", getattr(node, "id", ""))
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            for each in node.args:
                self.evaluate(each)
        self.wrap(node, function)
        if name == "config" and "sacred" in self.source.packages:
            self.configure(function)
        elif name in ("automain", "main") and "sacred" in self.source.packages:
            self.call(function, self.make_unknown_call(function.node))
        elif name not in KNOWN_DECORATORS:
            self.registered.append(function)

    def wrap(self, node: ast.expr, function: Function) -> None:
        """Keep what a decorator puts around a function: it may seed before each call."""
        named = node
        if isinstance(node, ast.Call):
            named = node.func
        if not isinstance(named, ast.Name | ast.Attribute):
            return
        decorator = self.evaluate(named)
        if isinstance(decorator, Function) and isinstance(node, ast.Call):
            decorator = self.evaluate(node)
        if not isinstance(decorator, Function):
            return
        # It is run once to see what it returns; what that does runs with each call, and not now.
        before = self.state.copy()
        wrapper = self.call_function(
            decorator, Call(node, [Function(DECORATED, self.find_closure_scope())])
        )
        self.state = before
        if isinstance(wrapper, Function) and wrapper.node is not function.node:
            self.wrappers.setdefault(function.node, []).append(wrapper)

    def configure(self, function: Function) -> None:
        """Run a configuration of Sacred: one with a seed seeds Python's and NumPy's generators.

        https://sacred.readthedocs.io/en/stable/randomness.html
        """
        if isinstance(function.node, ast.Lambda):
            return
        self.note_visit(function)
        for each in function.node.body:
            if isinstance(each, ast.Assign) and getattr(each.targets[0], "id", "") == "seed":
                value = self.evaluate(each.value)
                if not self.is_none(value):
                    for generator in ("python", "numpy"):
                        self.state.seeded[generator] = each, self.source

    def run_class(self, node: ast.ClassDef) -> bool:
        bases = [self.evaluate(each) for each in node.bases]
        scope = Scope(self.source, self.find_closure_scope())
        scope.is_class = True
        owner = Class(node, scope, bases)
        if not TEST_CASES.isdisjoint(owner.list_library_bases()):
            self.test_bases[self.source] = node
            self.apply_test_seeds(self.source)
        self.frames.append(Frame(node, self.source, scope))
        self.run_body(node.body)
        self.frames.pop()
        self.scope.bind(node.name, owner)
        self.scope.read.add(node.name)
        for value in scope.names.values():
            if isinstance(value, Function):
                self.owners[value.node] = owner
        return False

    # ------------------------------------------------------------ loops

    def run_for(self, node: ast.For | ast.AsyncFor) -> bool:
        values = self.take_in_turn(self.evaluate(node.iter), node.iter)
        before = len(self.loops)
        self.enter_loop(values)
        taken = self.get_element(values)
        # Twice, where the order of the rounds matters: what one round leaves, the next one may use
        # (ENV303/bad_next_place.py). Otherwise a round tells what all of them do.
        rounds = 1
        if len(self.loops) > before:
            rounds = 2
        for _ in range(rounds):
            self.assign_to(node.target, taken)
            # A name that only counts rounds keeps nothing, although the body may not read it.
            names = [each.id for each in walk(node.target) if isinstance(each, ast.Name)]
            self.scope.read.update(names)
            self.run_body(node.body)
        self.leave_loop(before)
        self.run_body(node.orelse)
        return False

    def leave_loop(self, before: int) -> None:
        """End the rounds of a loop: what counted them is a whole number again."""
        self.rounds.pop()
        for loop in self.loops[before:]:
            places = as_mode(loop.taints, "place")
            for name, value in self.scope.names.items():
                if type(value) is Value and value.taints & places:
                    self.scope.names[name] = Value(value.taints - places, value.kind, value.default)
        del self.loops[before:]

    def run_while(self, node: ast.While) -> bool:
        self.decide(self.evaluate(node.test))
        self.rounds.append(self.tick())
        before = len(self.loops)
        self.run_body(node.body)
        self.leave_loop(before)
        self.run_body(node.orelse)
        return False

    def run_with(self, node: ast.With | ast.AsyncWith) -> bool:
        graph: Made | None = None
        devices = len(self.devices)
        for item in node.items:
            value = self.evaluate(item.context_expr)
            if isinstance(value, Made) and value.name == "tf.device":
                self.devices.append(value)
            elif isinstance(value, Made) and value.name == "tf.Graph":
                graph = value
            if item.optional_vars is not None:
                self.assign_to(item.optional_vars, value)
        if graph is None:
            ends = self.run_body(node.body)
        else:
            ends = self.run_in_graph(graph, node.body)
        del self.devices[devices:]
        return ends

    def run_in_graph(self, graph: Made, body: list[ast.stmt]) -> bool:
        """Run statements while a graph of TensorFlow 1 is the default one."""
        # A seed is of the graph that is the default where it is set: ENV204/bad_other_graph.py.
        outside = self.state.seeded.pop("tf", None)
        if "seeded" in graph.marks:
            self.state.seeded["tf"] = graph.node, self.source
        ends = self.run_body(body)
        seed = self.state.seeded.pop("tf", None)
        if seed is not None:
            graph.marks.add("seeded")
        if self.program is not None and not self.in_entry:
            self.graph_seeds[self.program].append(seed)
        if outside is not None:
            self.state.seeded["tf"] = outside
        return ends

    def run_return(self, node: ast.Return) -> bool:
        value: Value = Constant(None)
        if node.value is not None:
            value = self.evaluate(node.value)
        self.fill(value)  # its caller may do so
        self.frames[-1].returned.append(value)
        return True

    def run_raise(self, node: ast.Raise) -> bool:
        if node.exc is not None:
            # An error only shows what it says: ENV304/good_message.py.
            self.ledger.silent += 1
            self.evaluate(node.exc)
            self.ledger.silent -= 1
        return True

    def run_assert(self, node: ast.Assert) -> bool:
        self.ledger.show(self.collect_taints(self.evaluate(node.test)))
        single = _find_single(node.test)
        if single is not None:
            value = self.scope.find(single)
            if value is not None:
                self.note_single(value)
        return False

    def stop(self, node: ast.stmt) -> bool:
        return True


def _names(node: ast.expr, name: str) -> bool:
    """Return whether an expression has a name in it."""
    return any(isinstance(part, ast.Name) and part.id == name for part in walk(node))


def _find_single(test: ast.expr) -> str | None:
    """Return the name `x` of `len(x) == 1`; None for any other test."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return None
    call = test.left
    if not isinstance(call, ast.Call) or getattr(call.func, "id", "") != "len" or not call.args:
        return None
    measured = call.args[0]
    if getattr(test.comparators[0], "value", None) != 1 or not isinstance(measured, ast.Name):
        return None
    return measured.id


# Decorators that do not keep a function in order to call it later, which others are thought to do:
# `@app.route("/")`, `@tool`.
KNOWN_DECORATORS = frozenset(
    {
        "property", "cached_property", "staticmethod", "classmethod", "contextmanager", "wraps", "lru_cache",
        "cache", "function", "setter", "getter", "abstractmethod", "overload", "dataclass", "jit", "override",
        "singledispatch", "no_grad", "defun", "map_fn", "capture", "config", "named_config", "automain",
        "add_arg_scope",
    }
)  # fmt: skip


def _row(function: object) -> Callable[[Statements, ast.stmt], bool]:
    return cast("Callable[[Statements, ast.stmt], bool]", function)


STATEMENTS: dict[type[ast.stmt], Callable[[Statements, ast.stmt], bool]] = {
    ast.Expr: _row(Statements.run_expression),
    ast.Assign: _row(Statements.run_assign),
    ast.AnnAssign: _row(Statements.run_annotated),
    ast.AugAssign: _row(Statements.run_augmented),
    ast.Delete: _row(Statements.run_delete),
    ast.Global: _row(Statements.run_global),
    ast.Nonlocal: _row(Statements.run_global),
    ast.FunctionDef: _row(Statements.run_function),
    ast.AsyncFunctionDef: _row(Statements.run_function),
    ast.ClassDef: _row(Statements.run_class),
    ast.Import: _row(Statements.run_import),
    ast.ImportFrom: _row(Statements.run_import_from),
    ast.If: _row(Statements.run_if),
    ast.For: _row(Statements.run_for),
    ast.AsyncFor: _row(Statements.run_for),
    ast.While: _row(Statements.run_while),
    ast.With: _row(Statements.run_with),
    ast.AsyncWith: _row(Statements.run_with),
    ast.Try: _row(Statements.run_try),
    ast.Match: _row(Statements.run_match),
    ast.Return: _row(Statements.run_return),
    ast.Raise: _row(Statements.run_raise),
    ast.Assert: _row(Statements.run_assert),
    ast.Break: _row(Statements.stop),
    ast.Continue: _row(Statements.stop),
}
if sys.version_info >= (3, 11):
    STATEMENTS[ast.TryStar] = _row(Statements.run_try)
