"""Which code runs, and from where: programs first, then what no program calls."""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence as Several

from envlock.linter.interpreter.run_state import Frame, State, is_buffer
from envlock.linter.interpreter.source_files import Source, Sources
from envlock.linter.interpreter.statements import Statements
from envlock.linter.interpreter.values import (
    Class,
    Constant,
    Function,
    Instance,
    Library,
    Scope,
    Table,
    Value,
)
from envlock.linter.module import Module

BUDGET = 20_000
"""Statements of one program, and in FEW of one function that no program calls. In Keras 3.15.1 four
of 326 programs and 12 of 9,838 functions need more; with five times as much, ten findings
of 226 come and six go.
"""
FEW = 2_000
RECURSION = 6_000
"""Calls inside calls of the interpreter itself, of which a call of the program takes about ten and
a term of a long sum two. Python's own limit is 1,000.
"""

Entry = tuple[Source, ast.FunctionDef | ast.AsyncFunctionDef]
"""A function that no program calls, and its file."""


class Programs(Statements):
    """All programs of a project, one after the other."""

    def __init__(self, sources: Sources, tensorflow: str, *, switched: bool) -> None:
        super().__init__(sources, tensorflow, BUDGET)
        self.start = State(switched=switched)
        self.ends: dict[Source, State] = {}  # the state that each program ends with
        self.import_effects: dict[Source, State] = {}  # what each file seeds when it is imported
        self.loaded_files: set[Source] = set()  # the files that the program which runs has imported
        self.edges = sources.list_edges()  # which files each file imports
        self.reached: dict[Source, set[int]] = {}  # the files of each program
        self.users: dict[int, list[Source]] = defaultdict(list)  # the programs of each file
        self.trained_in: set[Source] = set()
        self.called: frozenset[ast.AST] = frozenset()  # the functions that a program has called
        self.begins: dict[Source, State] = {}  # what holds where the caller is not in the project

    def run_all(self) -> None:
        """Run every program, then every function that none of them called."""
        edges = self.edges
        imported: set[int] = set()
        imported.update(*edges)
        for each in self.sources.all:
            if each.is_program or each.is_prepared or each.index not in imported:
                self.run_program(each)
        # What is left is imported by files that import each other, or by a statement that no run
        # has reached.
        for source in self.sources.all:
            if source not in self.scopes:
                self.run_program(source)
        # What `importlib` imports belongs to its programs, too, but need not run with them.
        self.add_loaded(edges, imported)
        self.find_reached()
        self.prepare_tests()
        for program, files in self.reached.items():
            for index in files:
                self.users[index].append(program)
        # Before functions run that no program calls: what those seed is not seeded in a program.
        for made in self.ledger.environments.values():
            for _, environment, _ in made:
                if "seeded" not in environment.marks:
                    environment.marks.add("left unseeded")
        self.called = frozenset(self.run_nodes)
        self.run_entries()

    def run_program(self, source: Source) -> None:
        """Run a file as a program."""
        self.scopes.pop(source, None)
        self.state = self.start.copy()
        self.program = source
        self.steps = BUDGET
        self.trained = False
        self.registered = []
        self.loaded_files = set()
        self.run_file(source)
        # What a decorator registers, such as a command or a handler, is called last, if not before.
        for function in self.registered:
            if function.node not in self.visited:
                self.call_entry(function, source)
        self.run_main(source)
        # What other files draw for this program, they draw in its graphs.
        seeds = [seed for seed in self.graph_seeds[source] if seed is not None]
        if seeds and len(seeds) == len(self.graph_seeds[source]):
            self.state.seeded.setdefault("tf", seeds[0])
        self.ends[source] = self.state
        if self.trained:
            self.trained_in.add(source)

    def run_main(self, source: Source) -> None:
        """Run a function `main` that nothing calls, as an installed program does."""
        scope = self.scopes[source]
        main = scope.names.get("main")
        if isinstance(main, Function) and main.node not in self.visited:
            self.call_entry(main, source)

    def run_file(self, source: Source) -> Scope:
        """Return the names of a file, after it has run."""
        if source in self.scopes:
            self.load_again(source)
            return self.scopes[source]
        self.loaded_files.add(source)
        before = self.state.copy()
        scope = self.scopes[source] = Scope(source)
        # An import inside a function or a loop: its file runs outside of them.
        outer, self.frames = self.frames, [Frame(source.module.tree, source, scope)]
        kept, self.loops = self.loops, []
        rounds, self.rounds = self.rounds, []
        self.run_body(source.module.tree.body)
        self.frames, self.loops, self.rounds = outer, kept, rounds
        self.import_effects[source] = self.state.compute_change(before)
        return scope

    def load_again(self, source: Source) -> None:
        """Let a file that has run seed and switch for another program, too.

        It runs once for all programs; of two that import it, the second would find nothing seeded.
        """
        if source not in self.loaded_files and source in self.import_effects and not self.in_entry:
            self.loaded_files.add(source)
            self.state.join(self.import_effects[source])

    # ------------------------------------------------------------ what no program calls

    def add_loaded(self, edges: list[set[int]], imported: set[int]) -> None:
        """Let a file that imports names computed at run time import the modules below it, or those
        of its users, that no file imports.
        """
        every = self.sources.all
        rest = [each for each in every if each.index not in imported and _is_plain(each)]
        for loader in every:
            if not loader.loads:
                continue
            users = [each for each in every if each is loader or loader.index in edges[each.index]]
            folders = {self.sources.folder(each) for each in users}
            below = [each.index for each in rest if self.sources.is_below(each, folders)]
            edges[loader.index].update(below)

    def prepare_tests(self) -> None:
        """Give tests what pytest seeds before them: in the conftest.py beside them or further
        above.
        """
        for conftest in [each for each in self.sources.all if each.is_prepared]:
            folder = {self.sources.folder(conftest)}
            for each in self.sources.all:
                if each.is_test and each is not conftest and self.sources.is_below(each, folder):
                    self.reached[conftest].add(each.index)

    def find_reached(self) -> None:
        """Find out which programs each file is part of."""
        for source in self.ends:
            self.reached[source] = self.list_imported(source)

    def list_imported(self, source: Source) -> set[int]:
        """Return the files that a file imports, and those that they import; itself, too."""
        seen: set[int] = set()
        stack = [source.index]
        while stack:
            index = stack.pop()
            if index not in seen:
                seen.add(index)
                stack.extend(self.edges[index])
        return seen

    def find_state(self, source: Source) -> State:
        """Return what holds where a function of a file is called by somebody who is not seen.

        What a program that imports the file seeds is seeded, unless another program trains or draws
        without that seed.
        """
        state = self.begin_of(source).copy()
        state.weights = self.built
        return state

    def is_seeded_by_programs(self, generator: str) -> bool:
        """Return whether code draws for a test alone: all programs that use it seed the generator."""
        if self.program is None or not self.program.is_test or not self.in_entry:
            return False
        return not self.source.is_test and generator in self.begin_of(self.source).seeded

    def begin_of(self, source: Source) -> State:
        """Return what holds after the programs that import a file, looked up once."""
        known = self.begins.get(source)
        if known is None:
            known = self.begins[source] = self.find_begin(source)
        return known

    def find_begin(self, source: Source) -> State:
        """Return what the programs that import a file leave seeded and switched on."""
        # A test that seeds does not seed for the programs that use the same file.
        users = self.users[source.index]
        others = [each for each in users if not each.is_test or source.is_test]
        state = self.start.copy()
        for each in others:
            state.join(self.ends[each])
        if source.is_test:
            return state
        # One example that seeds does not seed a library for those that use it without a seed.
        for each in others:
            if each is source:
                continue
            ended = self.ends[each].seeded
            for name in list(state.seeded):
                used = each in self.trained_in or name in self.drawn_by[each]
                if used and name not in ended:
                    del state.seeded[name]
        return state

    def is_switched(self, source: Source) -> bool:
        """Return whether a program that a file is part of turns op determinism on."""
        return any(self.ends[each].switched for each in self.users[source.index])

    def run_entries(self) -> None:
        """Run the functions that nothing has called: first those whose name nothing calls either.

        The others may have a caller among the first, which gives them real arguments, and seeds
        before.
        """
        names: set[str] = set()
        attributes: Counter[str] = Counter()
        for source in self.sources.all:
            names.update(source.module.read_names)
            attributes.update(source.module.attributes)
        late: list[Entry] = []
        self.in_entry = True
        for source in self.sources.all:
            own = source.module.attributes
            for node in source.functions:
                if node in self.visited:
                    continue
                name = self.get_called_name(node)
                # `other.name` in the same file does not call a function at the top of this one.
                elsewhere = attributes[name]
                if node.col_offset == 0 and name in own:
                    elsewhere -= 1
                if name in names or elsewhere > 0:
                    late.append((source, node))
                else:
                    self.run_entry(source, node)
        for source, node in self.list_callers_first(late):
            if node not in self.visited:
                self.run_entry(source, node)

    def list_callers_first(self, functions: list[Entry]) -> list[Entry]:
        """Return functions, each after those of its file that name it: what they seed holds in it."""
        callers: dict[tuple[Source, str], list[Entry]] = {}
        for source, node in functions:
            for name in _list_named(node, source.module):
                callers.setdefault((source, name), []).append((source, node))
        ordered: dict[ast.AST, Entry] = {}
        # Those whose callers have been put before them; two that call each other are in there, too.
        begun: set[ast.AST] = set()
        stack = list(reversed(functions))
        while stack:
            source, node = stack[-1]
            left: list[Entry] = []
            if node not in begun:
                begun.add(node)
                waiting = callers.get((source, self.get_called_name(node)), [])
                left = [each for each in waiting if each[1] not in begun]
            if left:
                stack.extend(reversed(left))
            else:
                ordered.setdefault(node, stack.pop())
        return list(ordered.values())

    def get_called_name(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        """Return by which name a function is called: a constructor by that of its class."""
        owner = self.owners.get(node)
        if node.name == "__init__" and owner is not None:
            return owner.node.name
        return node.name

    def run_entry(self, source: Source, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Run one function as somebody who is not seen would call it."""
        self.program = source
        # Before its object is made, whose constructor may seed.
        self.state = self.find_state(source)
        self.steps = FEW
        function = self.find_function(source, node)
        if function is not None:
            self.steps = FEW
            self.call_entry(function, source)

    def find_function(self, source: Source, node: ast.AST) -> Function | None:
        """Return a function at the top of a file or in a class, as it stands there after the file
        has run.
        """
        found = self.defined.get(node)
        owner = self.owners.get(node)
        if found is None or owner is None or self.has_decorator(found, "staticmethod"):
            return found
        return found.bind_to(self.make_object(owner, source))

    def make_object(self, owner: Class, source: Source) -> Instance:
        """Return an object of a class: one that a program has made, or a new one."""
        self.frames = [Frame(owner.node, source, self.scopes[source])]
        found = self.get_example(owner)
        self.frames = []
        return found

    def call_entry(self, function: Function, source: Source) -> None:
        """Call a function from outside: what it returns may be used for anything."""
        outer = self.frames
        self.frames = [Frame(source.module.tree, source, self.scopes[source])]
        call = self.make_unknown_call(function.node)
        if function.owner is not None and function.node.args.args:
            call.keywords.pop(function.node.args.args[0].arg, None)
        result = self.call_function(function, call)
        if not self.is_harmless(function, result):
            self.count(result)
            # That one of several counts as well, where they come as workers finish.
            arrived = frozenset(
                each for each in self.collect_taints(result) if self.is_arrival(each[0].rule)
            )
            self.ledger.counted.update(chance for chance, _ in arrived)
        self.frames = outer

    def is_harmless(self, function: Function, result: Value) -> bool:
        """Return whether the order of what a function returns is its caller's matter, or no matter
        at all.

        A listing that is returned as it is, of the folder that was asked for, is one more name of
        `listdir`. TensorFlow Datasets orders examples by the hashes of their keys.
        """
        if getattr(result, "form", "") == "wrapped":
            return True
        owner = function.owner
        bases = owner.owner.list_library_bases() if isinstance(owner, Instance) else []
        of_tfds = any(base.startswith("tensorflow_datasets.") for base in bases)
        return of_tfds and getattr(function.node, "name", "") == "_generate_examples"

    # ------------------------------------------------------------ at the end

    def count_unread(self) -> None:
        """Let chances count that a name or an attribute keeps which nothing here reads: others may."""
        # After all programs: until then, a later one may read it.
        kept: set[Value] = set()  # each once: what is imported has a name in every file
        for scope in self.scopes.values():
            kept.update(value for name, value in scope.names.items() if name not in scope.read)
        for instance in [*self.instances, *self.examples.values()]:
            for name, value in instance.attributes.items():
                # An array that nothing has filled yet waits for its use.
                if name not in instance.read and not is_buffer(value):
                    kept.add(value)
                # What an object keeps that was drawn is its state, also where a method reads it.
                if value.taints:
                    drawn = frozenset(each for each in value.taints if each[0].kind == "draw")
                    self.ledger.count(drawn)
        for value in kept:
            self.count_kept(value)

    def count_kept(self, value: Value) -> None:
        """Let the chances in a value count; the order alone of a dictionary does not.

        Dictionaries are there to look up keys in.
        """
        # What an object holds has been looked at by its attributes.
        taints = value.taints if isinstance(value, Instance) else self.collect_taints(value)
        if not taints or isinstance(value, Constant | Library):
            return
        if isinstance(value, Table):
            taints = self.forget(taints, "order", "each")
        arrived = frozenset(
            each for each in taints if self.is_arrival(each[0].rule) and each[1] == "each"
        )
        self.ledger.counted.update(chance for chance, _ in arrived)
        self.ledger.count(self.forget(taints, "place"))


def _is_plain(source: Source) -> bool:
    """Return whether a file is neither a program nor a test, and imports only by names in its text."""
    return not (source.loads or source.is_program or source.is_test)


def _list_named(node: ast.FunctionDef | ast.AsyncFunctionDef, module: Module) -> set[str]:
    """Return the names and attributes that a function reads."""
    found: set[str] = set()
    for name in module.list_nodes_in(node, ast.Name):
        found.add(name.id)
    for attribute in module.list_nodes_in(node, ast.Attribute):
        found.add(attribute.attr)
    return found


def run(modules: Several[Module], tensorflow: str, *, switched: bool) -> Programs:
    """Run all programs of some files."""
    programs = Programs(Sources(modules), tensorflow, switched=switched)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION))
    try:
        programs.run_all()
        programs.count_unread()
    finally:
        sys.setrecursionlimit(limit)
    return programs
