"""Calls: which code runs, with what, and what it gives back."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.chances import find_chance
from envlock.linter.interpreter.containers import NAMED_TUPLE
from envlock.linter.interpreter.graph_functions import LOOPS, MAP_AND_BATCH, GraphFunctions
from envlock.linter.interpreter.library import LIBRARY, STARTERS
from envlock.linter.interpreter.methods import FLAG_TYPES
from envlock.linter.interpreter.operations import WIDTHS, is_listed
from envlock.linter.interpreter.own_environments import SEED_METHODS
from envlock.linter.interpreter.run_state import DEPTH, ITEMS, Frame, list_changes
from envlock.linter.interpreter.source_files import Source, Sources
from envlock.linter.interpreter.values import (
    CLEAN,
    Class,
    Code,
    Constant,
    Either,
    Function,
    Instance,
    Library,
    Made,
    Method,
    Partial,
    Scope,
    Sequence,
    Table,
    Value,
    join_all,
)
from envlock.linter.module import Hit
from envlock.linter.names import CLOCKED_SAVES, DISTRIBUTIONS, RANDOM_OPS, THREADED_QUEUES

ESTIMATORS = ("Estimator", "TPUEstimator")
"""The last words of the names of TensorFlow's estimators, which several modules have had."""
SET_TYPES = ("set", "frozenset", "typing.Set", "typing.AbstractSet", "typing.FrozenSet")
NUMBER_TYPES = ("int", "float", "bool")
RUNNABLE = frozenset({Function, Partial, Library, Sequence})
"""Values that are a function, or can hold some."""

NEVER = 1_000_000
"""Seconds, eleven days: so long a time between two checkpoints is a way to have none by the clock."""


class Functions(GraphFunctions):
    """Calls of anything."""

    def __init__(self, sources: Sources, tensorflow: str, budget: int) -> None:
        super().__init__(sources, tensorflow, budget)
        self.discarded: set[ast.AST] = set()
        self.stars: dict[Scope, list[str]] = {}
        self.flags: dict[str, Value] = {}
        self.size: int | None = None
        self.defined: dict[ast.AST, Function] = {}
        self.wrappers: dict[ast.AST, list[Function]] = {}
        self.instances: list[Instance] = []
        self.defaults: dict[ast.arguments, dict[ast.arg, ast.expr]] = {}

    def run_file(self, source: Source) -> Scope:
        """Return the names of a file, after it has run."""
        raise NotImplementedError

    def run_body(self, body: list[ast.stmt]) -> bool:
        """Run statements; return whether what follows is not reached."""
        raise NotImplementedError

    def evaluate(self, node: ast.AST) -> Value:
        """Return what an expression stands for."""
        raise NotImplementedError

    def call(self, called: Value, call: Call) -> Value:
        """Return what a call returns."""
        row = CALLED.get(type(called))
        if row is None:
            return self.call_unknown(call)
        return row(self, called, call)

    def call_name(self, called: Library, call: Call) -> Value:
        """Return what a function of a library returns."""
        return self.call_named(called.name, call)

    def call_partial(self, called: Partial, call: Call) -> Value:
        """Return what a callable returns that has some of its arguments already."""
        arguments = [*called.arguments, *call.arguments]
        keywords = {**called.keywords, **call.keywords}
        return self.call(called.called, Call(call.node, arguments, keywords, call.starred))

    def call_named(self, name: str, call: Call) -> Value:
        """Return what a function of a library returns."""
        # Checks come first: they ask for arguments that the next step may take orders from.
        for check in _find_checks(name):
            check(self, name, call)
        call = self.end_unordered(name, call)
        result = self.find_result(name, call)
        if name in WIDTHS:
            self.note_width(name, call, result)
        return result

    def find_result(self, name: str, call: Call) -> Value:
        """Return what a function of a library returns, by the first table that knows it."""
        row = find_chance(name)
        if row is not None:
            return row(self, name, call)
        if name == NAMED_TUPLE:
            return self.make_named_tuple(call)
        if name.rpartition(".")[2] in ESTIMATORS:
            return self.make_estimator(name, call)
        if name in LOOPS:
            return self.run_map(name, call)
        if name in MAP_AND_BATCH:
            return self.map_batches(call)
        return self.call_library(name, call)

    def make_estimator(self, name: str, call: Call) -> Value:
        """Return an estimator: only its configuration seeds the graph in which its model is built."""
        # `tf.set_random_seed` is of the graph that is the default where it is called; an estimator
        # makes another one: ENV204/bad_estimator.py.
        config = call.get("config", 2)
        before = self.state.copy()
        if isinstance(config, Made) and "tf_random_seed" in config.keywords:
            self.state.seeded["tf"] = call.node, self.source
        elif config is None or isinstance(config, Made):
            self.state.seeded.pop("tf", None)
        made = self.call_library(name, call)
        self.state = before
        return made

    def check_saves(self, name: str, call: Call) -> None:
        """Report checkpoints that are saved, or kept, whenever some time has passed."""
        word = CLOCKED_SAVES[name]
        seconds = call.get_constant(word)
        if isinstance(seconds, int) and seconds >= NEVER:
            return
        if word in call.keywords and seconds not in (None, 0):
            message = f"{word}: the clock decides which steps' weights are saved"
            self.ledger.report("ENV309", self.source, Hit(call.node, message))

    def define_flag(self, name: str, call: Call) -> None:
        """Add a flag of absl or of TensorFlow 1."""
        given = call.get("default", 1)
        if isinstance(given, Constant):
            given = Constant(given.value, optional=True, taints=given.taints)
        self.flags[str(call.get_constant("name", 0))] = given or Value()

    def call_either(self, called: Either, call: Call) -> Value:
        """Call what can be one of several; two of one name stand in for each other."""
        # `os.scandir`, or `scandir.scandir` where Python is older: what is known of one holds for
        # both (ENV303/bad_backport.py).
        libraries = [each for each in called.options if isinstance(each, Library)]
        if len(libraries) == len(called.options):
            words = {each.name.rpartition(".")[2] for each in libraries}
            known = [each for each in libraries if find_chance(each.name) or each.name in LIBRARY]
            if len(words) == 1 and known:
                return self.call(known[0], call)
            # Of two functions that do different things, one of which is not known, nothing is.
            if known and len(known) < len(called.options):
                return Value()
        # None cannot be called: `callback = None` is what it is before it is given.
        every = [
            each
            for each in called.options
            if not isinstance(each, Constant) or each.value is not None
        ]
        values = [self.call(each, call) for each in every]
        # A sorter, or a function that is not seen: it may not sort.
        is_listed = any(isinstance(each, Library) and each.name in LIBRARY for each in every)
        if is_listed and any(type(each) is Value for each in every):
            return Value()
        return join_all(values)

    def call_bound(self, called: Method, call: Call) -> Value:
        """Call a method of something that no file here defines; `super().x()` first looks at the
        bases.
        """
        owner = called.owner
        if isinstance(owner, Method):
            if owner.name == "super()" and isinstance(owner.owner, Instance):
                return self.call_parent(owner.owner, called.name, call)
            if owner.name == "np_random":  # the generator that Gym gives an environment
                self.draw_by_environment(owner.owner, call)
        if isinstance(owner, Instance) and called.name == "start":
            self.start_own_worker(owner, call)
        return self.call_method(owner, called.name, call)

    def start_own_worker(self, owner: Instance, call: Call) -> None:
        """Run the method `run` of a thread or a process whose class is the project's own."""
        run = owner.owner.find_member("run")
        for base in owner.owner.list_library_bases():
            if base in STARTERS and isinstance(run, Function):
                is_thread = base.endswith("Thread")
                self.run_worker(run.bind_to(owner), Call(call.node), is_thread=is_thread)

    def call_parent(self, owner: Instance, name: str, call: Call) -> Value:
        """Call the method of a parent class; a method of its own name that does no more hands on.

        The first other method of the name in the lineage is taken for the parent's.
        """
        current = self.frames[-1].node
        for each in owner.owner.list_lineage():
            found = each.scope.names.get(name)
            if isinstance(found, Function) and found.node is not current:
                return self.call_function(found.bind_to(owner), call)
        # The parent is a library's class: what its method does with the arguments is not this one's
        # doing.
        if getattr(current, "name", "") == name:
            if name == "__init__":
                self.draw_as_base(owner, call)
            return Value(self.collect_all_taints(call.list_values()))
        return self.call_method(owner, name, call)

    def draw_as_base(self, owner: Instance, call: Call) -> None:
        """Draw as the library's class does from which an object is derived: a DropoutWrapper of
        one's own (ENV204/bad_own_dropout.py).
        """
        for base in owner.owner.list_library_bases():
            row = find_chance(base)
            if row is not None:
                row(self, base, call)

    def call_instance(self, called: Instance, call: Call) -> Value:
        """Call an object of the project.

        Keras calls `call` and PyTorch `forward` from their own `__call__`.
        """
        for name in ("__call__", "call", "forward"):
            found = called.owner.find_member(name)
            if isinstance(found, Function):
                return self.call_function(found.bind_to(called), call)
        self.use_functions(call)
        return Value(self.collect_all_taints(call.list_values()), "tensor")

    def call_made(self, called: Made, call: Call) -> Value:
        """Call an object of a library: a layer, a model, an initializer."""
        if "random" in called.marks:
            self.do("layer", called.name, call.node)
        taints = self.collect_all_taints(call.list_values())
        self.use_functions(call)
        # `model(numpy.random.rand(1, 8))` only builds its weights: ENV204/good_dummy.py.
        if call.discarded:
            self.ledger.show(taints)
        elif not called.marks and not called.name.startswith(("keras.", "torch.", "tf.")):
            self.count(*call.list_values())
        return Value(taints | self.forget(called.taints, "order"), "tensor")

    # ------------------------------------------------------------ functions of the project

    def call_function(self, function: Function, call: Call) -> Value:
        """Return what a function of the project returns."""
        node = function.node
        self.note_visit(function)
        handed = self.collect_all_taints(call.list_values())
        # One that calls itself does there what it does here.
        if len(self.frames) >= DEPTH or self.steps <= 0 or self.is_running(node):
            return Value(handed)
        named, state = call.list_named_values(), self.state.key()
        # First the cheap question: a call with the same arguments in the same state.
        key = self.make_exact_key(function, call, named, state)
        if key is not None and key in self.results:
            result, after = self.results[key]
            self.state = after.copy()  # it seeds and switches again as it did from the same state
            return result
        # Then the loose one: a call that differs in nothing that decides what the function does.
        often = self.make_loose_key(function, named, state, tainted=bool(handed))
        look = self.find_look(often)
        if self.is_known(look, self.find_look(often[:2]), tainted=bool(handed)):
            self.ledger.count(self.collect_all_taints(self.list_counting_values(node, named)))
            return self.recall(function, look, handed)
        fresh = self.list_uncounted(named)
        before = len(self.deeds[-1]) if self.deeds else 0
        frame = Frame(node, function.scope.source, Scope(function.scope.source, function.scope))
        frame.handed = frozenset([chance for chance, _ in handed])
        self.bind(function, call, frame.scope)
        owner = function.owner
        attributes: dict[str, Value] = {}
        if isinstance(owner, Instance):
            attributes = dict(owner.attributes)
        result = self.run_frame(function, frame)
        if isinstance(owner, Instance):
            self.attributes_given[node] = list_changes(attributes, owner.attributes)
        for word, chances in fresh.items():
            if not chances.isdisjoint(self.ledger.counted):
                self.counting.setdefault(node, set()).add(word)
        kept = result, self.state.copy()
        if key is not None:
            self.results[key] = kept
        look.last = kept
        self.usual[node] = self.collect_taints(result)
        if self.deeds:
            self.done[node] = self.deeds[-1][before:]
        return result

    def is_running(self, node: Code) -> bool:
        """Return whether a function is one of those that the code which runs is called by."""
        for frame in self.frames:  # noqa: SIM110 (asked for each call: `any` takes twice as long)
            if frame.node is node:
                return True
        return False

    def run_frame(self, function: Function, frame: Frame) -> Value:
        """Run a function whose parameters are bound, and look into it where XLA compiles it."""
        node = function.node
        # An environment that seeds itself by `self.seed()` is seeded again by `env.seed(7)`.
        if getattr(node, "name", "") in SEED_METHODS and self.is_seeded_later(function.owner):
            return Value()
        compiled = isinstance(node, ast.FunctionDef) and self.is_compiled(node)
        if compiled:
            self.deeds.append([])
        self.frames.append(frame)
        if node in self.wrappers:
            result = self.run_wrapped(node, frame)
        else:
            result = self.run_code(node, frame)
        self.frames.pop()
        if compiled and isinstance(node, ast.FunctionDef):
            self.report_compiled(node, self.deeds.pop())
        return result

    def run_wrapped(self, node: Code, frame: Frame) -> Value:
        """Run a function after what decorators put around it; what they seed holds for it alone."""
        before = dict(self.state.seeded)
        for wrapper in self.wrappers[node]:
            self.call_function(wrapper, self.make_unknown_call(wrapper.node))
        around = list_changes(before, self.state.seeded)
        result = self.run_code(node, frame)
        # What seeds before one test seeds nothing for the next.
        for name in around.keys() - before.keys():
            self.state.seeded.pop(name, None)
        return result

    def run_code(self, node: Code, frame: Frame) -> Value:
        """Run a function whose arguments are bound; return what it returns."""
        if isinstance(node, ast.Lambda):
            return self.evaluate(node.body)
        self.run_body(node.body)
        if frame.yielded:
            form = "wrapped" if frame.wrapped else "iterator"
            result = self.make_sequence(None, join_all(frame.yielded), form)
            return result.add_taints(frame.ordered)
        if frame.returned:
            return join_all(frame.returned)
        return Constant(None)

    def bind(self, function: Function, call: Call, scope: Scope) -> None:
        """Give the parameters of a function their values."""
        arguments = function.node.args
        plain = [*arguments.posonlyargs, *arguments.args]
        given = list(call.arguments)
        if function.owner is not None:
            given.insert(0, function.owner)
        left = dict(call.keywords)
        defaults = self.list_defaults(arguments)
        for index, each in enumerate((*plain, *arguments.kwonlyargs)):
            if index < len(plain) and index < len(given):
                value = given[index]
            elif each.arg in left:
                value = left.pop(each.arg)
            elif call.starred:
                value = Value(CLEAN)
            else:
                value = self.evaluate_default(defaults.get(each), function.scope)
            if isinstance(value, Constant):
                value = value.make_argument()
            if each.annotation is not None:
                value = self.apply_annotation(value, each, function.scope)
            scope.names[each.arg] = value
        self.bind_rest(arguments, given[len(plain) :], left, call, scope)
        # A parameter is new in each round of the loops around: `x = x + 1` goes on from no other
        # round.
        scope.times.update(dict.fromkeys(scope.names, self.tick()))

    def list_defaults(self, arguments: ast.arguments) -> dict[ast.arg, ast.expr]:
        """Return the parameters that have a default, with it."""
        found = self.defaults.get(arguments)
        if found is None:
            found = self.defaults[arguments] = _list_defaults(arguments)
        return found

    def bind_rest(
        self,
        arguments: ast.arguments,
        rest: list[Value],
        left: dict[str, Value],
        call: Call,
        scope: Scope,
    ) -> None:
        """Give `*args` and `**kwargs` what no other parameter takes."""
        if arguments.vararg is not None:
            known = None if call.starred else rest  # there may be more
            scope.bind(arguments.vararg.arg, self.make_sequence(known, form="tuple"))
        if arguments.kwarg is not None:
            table = Table(self.tick())
            for word, value in left.items():
                table.store(Constant(word), value)
            if call.starred:
                table.most = None
            scope.bind(arguments.kwarg.arg, table)

    def evaluate_default(self, node: ast.expr | None, scope: Scope) -> Value:
        """Return the value that a parameter has by default."""
        if node is None:
            return Value()
        if isinstance(node, ast.Constant):
            return Constant(node.value)
        self.frames.append(Frame(node, scope.source, scope))
        value = self.evaluate(node)
        self.frames.pop()
        return value

    def apply_annotation(self, value: Value, parameter: ast.arg, scope: Scope) -> Value:
        """Return the value of a parameter according to its annotation, if nothing else is known
        about it.
        """
        note = parameter.annotation
        # A text is a name that is defined later, as that of the class around.
        if note is None or type(value) is not Value or isinstance(note, ast.Constant):
            return value
        if isinstance(note, ast.Subscript):  # `set[str]`
            note = note.value
        # In the scope of the function: its annotations are evaluated there, not where it is called.
        self.frames.append(Frame(parameter, scope.source, scope))
        said = self.evaluate(note)
        self.frames.pop()
        return self.apply_type(value, said, parameter)

    def apply_type(self, value: Value, said: Value, node: ast.AST) -> Value:
        """Return an unknown value as one of a type."""
        if isinstance(said, Class):
            return self.get_example(said)
        if not isinstance(said, Library):
            return value
        name = said.name
        if name.startswith("tf.data."):
            return self.make("tf.data.Dataset", node).add_taints(value.taints)
        if name.startswith(DISTRIBUTIONS):
            return self.make(name, node, "distribution")
        if name == "tf.Variable":
            return self.make(name, node, "variable")
        if name in SET_TYPES:
            return self.make_sequence(None, Value(), "set")
        if name in NUMBER_TYPES:
            return Value(value.taints, "number", value.default)
        if name.startswith(("keras.Model", "keras.Sequential")):
            return self.make(name, node, "keras")
        if name.startswith("keras.optimizers."):
            return self.make(name, node, "optimizer")
        return value

    def get_example(self, owner: Class) -> Instance:
        """Return an object of a class, made with what nothing is known of."""
        found = self.examples.get(owner.node)
        if found is None:
            # Known before its constructor runs, which may ask for an example of its own class.
            found = self.examples[owner.node] = Instance(owner, self.tick())
            init = owner.find_member("__init__")
            if isinstance(init, Function):
                self.construct(found, init, self.make_unknown_call(init.node))
        else:
            # Whoever calls its methods has made it, so that what its constructor seeds is seeded.
            seeds = self.constructor_seeds.get(owner.node, {})
            self.state.seeded = {**seeds, **self.state.seeded}
        return found

    def construct(self, instance: Instance, init: Function, call: Call) -> None:
        """Run a constructor, and note what it seeds that was not seeded yet."""
        before = set(self.state.seeded)
        self.call_function(init.bind_to(instance), call)
        seeds = self.constructor_seeds.setdefault(instance.owner.node, {})
        for name, seed in self.state.seeded.items():
            if name not in before:
                seeds[name] = seed

    def make_unknown_call(self, node: Code, *, defaults: bool = False) -> Call:
        """Return a call by somebody who is not seen; what has a default can be given another value."""
        arguments = node.args
        values: dict[str, Value] = {}
        known = self.list_defaults(arguments)
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            default = known.get(each)
            if isinstance(default, ast.Constant):
                if defaults:
                    values[each.arg] = Constant(default.value, optional=True)
                else:
                    values[each.arg] = Value(kind="given", default=default.value)
            elif default is None:
                values[each.arg] = Value(kind="given")
        return Call(node, [], values)

    def instantiate(self, owner: Class, call: Call) -> Value:
        """Return a new object of a class of the project."""
        if len(self.frames) >= DEPTH or self.steps <= 0:
            return Instance(owner, self.tick())
        instance = Instance(owner, self.tick())
        self.instances.append(instance)
        self.examples.setdefault(owner.node, instance)
        init = owner.find_member("__init__")
        if isinstance(init, Function):
            self.construct(instance, init, call)
        else:
            returned = self.use_functions(call)
            if owner.node.bases:  # what is above the project may call them
                self.count(*returned)
            instance.attributes.update(call.keywords)
            instance.attributes.update(zip(owner.list_fields(), call.arguments, strict=False))
        return instance

    def use_functions(self, call: Call) -> list[Value]:
        """Run the functions that a call hands on, with what nothing is known of; a command line
        asks for defaults.
        """
        return [
            self.use_function(value, call)
            for value in call.list_values()
            if type(value) in RUNNABLE
        ]

    def use_function(self, value: Value, call: Call) -> Value:
        """Return what a function that is handed on returns."""
        if isinstance(value, Function):
            handed = self.make_unknown_call(value.node, defaults=self.is_command_line(call))
            if value.owner is not None and value.node.args.args:
                handed.keywords.pop(value.node.args.args[0].arg, None)
            return self.call_function(value, handed)
        if isinstance(value, Partial):
            return self.call(value, Call(call.node))
        if isinstance(value, Library) and value.name in RANDOM_OPS:
            self.count(self.call_named(value.name, Call(call.node)))
        elif isinstance(value, Sequence):  # a list of callbacks
            for each in (value.items or [])[:ITEMS]:
                if isinstance(each, Function):
                    self.use_function(each, call)
        return Value()

    def is_command_line(self, call: Call) -> bool:
        """Return whether a call runs a function from the command line."""
        function = call.node.func if isinstance(call.node, ast.Call) else None
        word = _get_last_word(function)
        # `app.run(main)` of absl and TensorFlow 1, `fire.Fire(main)`.
        if word == "run" and isinstance(function, ast.Attribute):
            return _get_last_word(function.value).endswith("app")
        return word.endswith("Fire")

    def has_decorator(self, function: Function, name: str) -> bool:
        """Return whether a function has a decorator of this name."""
        node = function.node
        if isinstance(node, ast.Lambda) or not node.decorator_list:
            return False
        return name in map(_get_last_word, node.decorator_list)


def _list_defaults(arguments: ast.arguments) -> dict[ast.arg, ast.expr]:
    plain = [*arguments.posonlyargs, *arguments.args]
    # The defaults belong to the last of them.
    found = dict(zip(reversed(plain), reversed(arguments.defaults), strict=False))
    by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    found.update({parameter: default for parameter, default in by_name if default is not None})
    return found


def _get_last_word(node: ast.AST | None) -> str:
    """Return the name that an expression ends with, or an empty text."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


CALLED: dict[type[Value], Callable[..., Value]] = {
    Function: Functions.call_function,
    Library: Functions.call_name,
    Method: Functions.call_bound,
    Class: Functions.instantiate,
    Partial: Functions.call_partial,
    Either: Functions.call_either,
    Instance: Functions.call_instance,
    Made: Functions.call_made,
}
"""How each kind of value is called; of others nothing is known."""


@lru_cache(maxsize=2**14)
def _find_checks(name: str) -> tuple[Callable[[Functions, str, Call], None], ...]:
    """Return what is looked at where a function of a library is called: few are in any table."""
    found: list[Callable[[Functions, str, Call], None]] = []
    if is_listed(name):
        found.append(Functions.check_operation)
    if name in THREADED_QUEUES:
        found.append(Functions.check_threads)
    if name in CLOCKED_SAVES:
        found.append(Functions.check_saves)
    if name.rpartition(".")[2] in FLAG_TYPES:
        found.append(Functions.define_flag)
    return tuple(found)
