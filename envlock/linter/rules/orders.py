"""Orders that nothing fixes: listings, sets, salted hashes, and clocks that decide."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from envlock.linter.events import Event
from envlock.linter.facts import Facts
from envlock.linter.findings import Found, join
from envlock.linter.module import UNSURE, Module, get_last_word, read_literal, walk
from envlock.linter.names import CLOCKS, SETTLING, TEXTUAL, UNROLLING
from envlock.linter.origins import Origins
from envlock.linter.project import File, Project

SETTLING_METHODS = frozenset({"sort", "natsorted", "argsort", "unique", "isin"})
TIES = re.compile(r"^len$|mtime|ctime|getsize|st_size")
"""Keys that several things share, which then keep the order that they came in."""
KEEPING = frozenset(
    {"append", "extend", "insert", "write", "writelines", "writerow", "put", "add_example", "send"}
)
"""Methods that keep what they are given in the order of the calls."""
LOOKING = (ast.Expr, ast.If, ast.While, ast.Assert, ast.Delete, ast.Raise)
"""Statements that keep nothing of an expression of their own."""
ENDING = ("save", "request_stop", "save_weights", "stop", "set_value", "assign", "save_model")


class Uses:
    """How a file uses what has no order."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.places: list[ast.expr] = []  # where what was asked about is read in its order

    def is_ordered(self, node: ast.expr, depth: int = 4, *, unrolled: bool = True) -> bool:
        """Return whether the order of what an expression gives goes into something that keeps it.

        What is not `unrolled` is a set, which may be handed on as one.
        """
        child: ast.AST = node
        parent = self.module.get_parent(node)
        while parent is not None:
            if isinstance(parent, ast.For | ast.AsyncFor):
                return child is parent.iter and self.keeps_order(parent)
            if isinstance(parent, ast.Assign):
                return self.is_kept(parent, depth, unrolled)
            if isinstance(parent, ast.stmt):
                return unrolled and not isinstance(parent, LOOKING)
            answer = self._pass_on(child, parent, unrolled=unrolled)
            if answer is not None:
                return answer
            if isinstance(parent, ast.comprehension | ast.Call):
                unrolled = unrolled or child is not getattr(parent, "func", None)
            child, parent = parent, self.module.get_parent(parent)
        return False

    def _pass_on(self, child: ast.AST, parent: ast.AST, *, unrolled: bool) -> bool | None:
        """Return whether what is around an expression keeps its order; None where that is open."""
        if isinstance(parent, ast.Call) and child is not parent.func:
            if _settles(parent) or isinstance(self.module.get_parent(parent), ast.Raise):
                return False
            return None if get_last_word(parent.func) in UNROLLING else unrolled
        if isinstance(parent, ast.Attribute):
            return False if parent.attr in SETTLING_METHODS else None
        if isinstance(parent, ast.Subscript) and child is parent.slice and unrolled:
            return True  # `table[columns]`
        if isinstance(parent, ast.Compare):
            return False if child is not parent.left else None  # `name in os.listdir(folder)`
        if isinstance(parent, ast.comprehension):
            made = self.module.get_parent(parent)
            if child is not parent.iter or isinstance(made, ast.SetComp):
                return False
            if isinstance(made, ast.DictComp):
                return _counts(parent.iter)  # each gets a number by its place
        return None

    def is_kept(self, assign: ast.Assign, depth: int, unrolled: bool) -> bool:
        """Return whether a name or an attribute that is given something without an order is used."""
        target = assign.targets[0]
        if isinstance(target, ast.Tuple | ast.List | ast.Subscript):
            return unrolled
        uses = self.list_uses(target, assign)
        for use in uses:
            parent = self.module.get_parent(use)
            if isinstance(parent, ast.Attribute) and parent.attr == "sort":
                return False
            if (
                isinstance(parent, ast.Call)
                and use in parent.args
                and get_last_word(parent.func) in ("sorted", "natsorted")
            ):
                return False
        if isinstance(target, ast.Attribute) and unrolled:
            return True
        if not depth:
            return False
        ordered = [use for use in uses if self.is_ordered(use, depth - 1, unrolled=unrolled)]
        self.places += ordered
        return bool(ordered)

    def list_uses(self, target: ast.expr, assign: ast.Assign) -> list[ast.expr]:
        """Return where a name is read in the function of its assignment, below it, or an attribute
        anywhere in the file.
        """
        word = get_last_word(target)
        if isinstance(target, ast.Attribute):
            attributes = self.module.list_nodes(ast.Attribute)
            return [
                each for each in attributes if each.attr == word and isinstance(each.ctx, ast.Load)
            ]
        around = self.module.find_function_around(assign)
        return [
            each
            for each in self.module.list_nodes(ast.Name)
            if each.id == word
            and isinstance(each.ctx, ast.Load)
            and each.lineno >= assign.lineno
            and (around is None or around.lineno <= each.lineno <= (around.end_lineno or 0))
        ]

    def keeps_order(self, loop: ast.For | ast.AsyncFor) -> bool:
        """Return whether a loop keeps something of each turn, one after the other, or stops early."""
        nodes = [node for statement in loop.body for node in walk(statement)]
        counted = {get_last_word(each.target) for each in nodes if isinstance(each, ast.AugAssign)}
        return any(self._keeps(node, loop, counted) for node in nodes)

    def _keeps(self, node: ast.AST, loop: ast.For | ast.AsyncFor, counted: set[str]) -> bool:
        if isinstance(node, ast.Break | ast.Return | ast.Yield | ast.YieldFrom):
            return True
        if isinstance(node, ast.Call):
            return get_last_word(node.func) in KEEPING
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            return not isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            used = {each.id for each in walk(node) if isinstance(each, ast.Name)}
            # `numbers[word] = len(numbers)`
            filled = ast.unparse(node.targets[0].value)
            return bool(used & counted) or _counts(loop.iter) or filled in ast.unparse(node.value)
        return False


def _settles(call: ast.Call) -> bool:
    name = get_last_word(call.func)
    key = next((each.value for each in call.keywords if each.arg == "key"), None)
    if name == "sorted" and key is not None and TIES.search(ast.unparse(key)):
        return False
    return name in SETTLING


def _counts(iterated: ast.expr) -> bool:
    return isinstance(iterated, ast.Call) and get_last_word(iterated.func) in ("enumerate", "zip")


def find_listings(facts: Facts) -> Iterator[Found]:
    """ENV303: data in the order in which a folder lists its files."""
    kept: list[Event] = []
    uses: dict[File, Uses] = {}
    for event in facts.select("list"):
        mine = uses.setdefault(event.file, Uses(event.file.module))
        if isinstance(event.node, ast.Call) and mine.is_ordered(event.node):
            kept.append(event)
    message = "{name} gives files in the order of the file system{more}"
    yield from join(facts.project, "ENV303", kept, message)


def find_sets(facts: Facts) -> Iterator[Found]:
    """ENV304: data in the order of a set; later where nothing shows that it holds texts."""
    project = facts.project
    texts: list[Event] = []
    others: list[Event] = []
    for file in project.files:
        module = file.module
        made: list[ast.expr] = [*module.list_nodes(ast.SetComp)]
        made += module.list_nodes(ast.Set)
        if "set(" in module.text and "set" not in module.own_names:
            made += [
                each
                for each in module.list_nodes(ast.Call)
                if isinstance(each.func, ast.Name) and each.func.id in ("set", "frozenset")
            ]
        uses = Uses(module)
        for node in made:
            uses.places = [node]
            if uses.is_ordered(node, unrolled=False):
                statement = module.find_statement(node)
                around = [node] if statement is None else [statement]
                is_certain = any(map(_holds_texts, around))
                for place in uses.places:
                    event = Event("set", "", "a set", place, file.find_scope(place))
                    (texts if is_certain else others).append(event)
    message = "the order of {name} differs from process to process{more}"
    yield from join(project, "ENV304", texts, message)
    yield from join(project, "ENV304", others, message, part=UNSURE)


def _holds_texts(node: ast.AST) -> bool:
    """Return whether a text, a method of texts, or what reads some stands in a set, or is put into it."""
    for each in walk(node):
        if isinstance(each, ast.Call) and get_last_word(each.func) in TEXTUAL:
            return True
        if isinstance(each, ast.Set | ast.Tuple) and any(
            isinstance(read_literal(item), str) for item in each.elts
        ):
            return True
    return False


def find_hashes(facts: Facts) -> Iterator[Found]:
    """ENV305: numbers made with hash()."""
    events = []
    for event in facts.select("hash"):
        parent = event.file.module.get_parent(event.node)
        if event.scope.name == "__hash__" or isinstance(parent, ast.Compare | ast.Expr):
            continue
        events.append(event)
    message = "{name}() differs from process to process{more}"
    yield from join(facts.project, "ENV305", events, message)


def find_clocks(facts: Facts) -> Iterator[Found]:
    """ENV309: clocks that decide when something ends, changes or is saved."""
    message = "{name} saves whenever a time has passed{more}"
    yield from join(facts.project, "ENV309", facts.select("clocked"), message, part=UNSURE)
    deciding: list[Event] = []
    for file in dict.fromkeys(each.file for each in facts.select("clock")):
        if "time" in file.module.text:
            deciding += _list_deciding(facts.project, file)
    message = "the clock decides what happens here{more}"
    fix = "Count steps instead of seconds."
    yield from join(facts.project, "ENV309", deciding, message, fix)


def _list_deciding(project: Project, file: File) -> Iterator[Event]:
    """Yield the conditions in which a time is compared and what depends on it is more than a word."""
    module = file.module
    origins = Origins(project, file)
    tests: list[ast.While | ast.If] = [*module.list_nodes(ast.While), *module.list_nodes(ast.If)]
    for statement in tests:
        compared = [each for each in walk(statement.test) if isinstance(each, ast.Compare)]
        terms = [node for each in compared for node in walk(each)]
        for node in list(terms):
            if isinstance(node, ast.Name | ast.Attribute):
                terms += [each for value in origins.list_given(node) for each in walk(value)]
        read = [
            each
            for each in terms
            if isinstance(each, ast.Call) and project.resolve(file, each.func) in CLOCKS
        ]
        body = [node for each in statement.body for node in walk(each)]
        if read and (isinstance(statement, ast.While) or any(map(_matters, body))):
            for node in (statement.test, *read):
                yield Event("decide", "", "time", node, file.find_scope(statement))


def _matters(node: ast.AST) -> bool:
    if isinstance(node, ast.Break | ast.Return):
        return True
    if isinstance(node, ast.Call):
        return get_last_word(node.func) in ENDING
    return False
