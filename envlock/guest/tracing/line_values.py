"""What each statement of the user's read and left, as fingerprints, until the entry of the trace at
which runs differ.

`sys.settrace` shows every line that runs in a file of the user's. From its statement's names the
values are found before and after; nothing of the user's is called for that. Where a value differs
from run to run and nothing that its statement read does, that statement made it, by whatever means:
a clock, the order of a set, uninitialized memory, a file.
"""

from __future__ import annotations

import ast
import collections
import datetime
import decimal
import functools
import json
import pathlib
import random
import sys
import threading
import types
import uuid
from contextlib import contextmanager
from hashlib import blake2b
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from zlib import crc32

from envlock.guest.tracing import tensors
from envlock.guest.tracing.temporary_names import replace_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

    from envlock.guest.tracing.source_lines import Places

    Prints = Dict[str, Tuple[Optional[str], int]]
    """A fingerprint and an identity by name: two names of one object have one identity."""
    Trace = Callable[[FrameType, str, object], Optional[Callable[..., Any]]]

MOST = 100_000
"""Statements of a run that are kept: beyond, it is too long to be looked at in this way."""
NODES = 2_000
"""Values within one value that are looked at."""
DEPTH = 6
"""How deep they lie."""
RETURNED = "<return>"
GENERATORS = ("<random>", "<numpy>")
"""What stands for the state of the generators of Python and NumPy, which a statement can draw from."""
SEEDS = ("seed", "set_random_seed", "set_seed")
"""The last words of calls that give a generator a new state, whatever it was before."""
FOREIGN = ("tensorflow", "keras", "tf_keras", "torch", "jax")
"""Packages whose objects are known by their types only: to read one may run an operation."""
AT_WORK = (
    "asyncio",
    "_asyncio",
    "concurrent",
    "contextlib",
    "io",
    "_io",
    "logging",
    "multiprocessing",
    "queue",
    "selectors",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "threading",
    "_thread",
)
"""Packages whose objects change while others work, so that what one holds now says nothing."""
BY_WORDS = (
    datetime.date,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
    pathlib.PurePath,
    uuid.UUID,
)
"""Types whose `repr` is their value."""
WITHOUT_VALUE = (
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    type,
)


class Statement:
    """A statement of a file, without the body of a loop or a branch."""

    def __init__(self, node: ast.stmt, parts: List[ast.AST], header: Optional[int]) -> None:
        """`header` is the line of the loop or branch that decides whether it runs."""
        self.line = node.lineno
        self.header = header
        names: Dict[str, None] = {}
        self.calls: List[str] = []
        self.attributes: List[Tuple[str, str]] = []
        for part in parts:
            for each in ast.walk(part):
                if isinstance(each, ast.Name):
                    names[each.id] = None
                elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
                    self.attributes.append((each.value.id, each.attr))
                elif isinstance(each, ast.Call):
                    called = _format_name(each.func)
                    if called:
                        self.calls.append(called)
                elif isinstance(each, (ast.Set, ast.SetComp)):
                    self.calls.append("set")
        self.names = tuple(names)
        self.is_loop = isinstance(node, (ast.For, ast.AsyncFor))
        # The last line of the body, to whose end Python comes back to the head.
        is_with = isinstance(node, (ast.With, ast.AsyncWith))
        self.end_of_with = (node.end_lineno or 0) if is_with else 0
        self.seeds = any(call.rpartition(".")[2] in SEEDS for call in self.calls)


def _format_name(node: ast.AST) -> str:
    """Return the dotted name of what is called; empty where it has none, and from a value on."""
    words: List[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        words.append(node.id)
    elif not words:
        return ""
    return ".".join(reversed(words))


def read_statements(source: str) -> Dict[int, Statement]:
    """Return the statement of each line of a file; nothing where it is not Python."""
    found: Dict[int, Statement] = {}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return found
    todo: List[Tuple[ast.AST, Optional[int]]] = [(tree, None)]
    while todo:
        node, header = todo.pop()
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.stmt):
                if isinstance(
                    child, (ast.excepthandler, getattr(ast, "match_case", ast.excepthandler))
                ):
                    todo.append((child, header))
                continue
            inside = header
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                todo.append((child, None))
                continue
            if isinstance(child, (ast.For, ast.AsyncFor, ast.While, ast.If)):
                inside = child.lineno
            todo.append((child, inside))
            _add_statement(child, header, found)
    return found


def _add_statement(node: ast.stmt, header: Optional[int], found: Dict[int, Statement]) -> None:
    parts: List[ast.AST] = [node]
    if hasattr(node, "body"):
        # Not what stands in its body: those are statements of their own.
        parts = [
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, (ast.stmt, ast.excepthandler))
        ]
    statement = Statement(node, parts, header)
    end = node.lineno
    for part in parts:
        for each in ast.walk(part):
            end = max(end, getattr(each, "end_lineno", None) or end)
    for line in range(node.lineno, end + 1):
        found[line] = statement


class _Frame:
    """A call of a function of the user's, and the statement that is running in it."""

    def __init__(self, number: int, parent: Optional[int], file: str, code: CodeType) -> None:
        self.number = number
        self.parent = parent
        self.file = file
        self.function = code.co_name
        self.statement: Optional[Statement] = None
        self.more: List[str] = []
        self.event = 0
        self.before: Prints = {}
        # A generator or a coroutine leaves within a statement, and goes on in it later.
        self.can_return = bool(code.co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))
        self.left: Optional[Statement] = None

    def is_within(self, statement: Statement) -> bool:
        """Return whether the statement that is running stands in the body of this `with`."""
        running = self.statement
        return running is not None and statement.line < running.line <= statement.end_of_with


class LineValues:
    """The statements of one run, until entry `until` of its trace is there."""

    def __init__(self, places: Places, entries: Callable[[], int], until: int) -> None:
        """Begin with none; `entries` tells how many entries the trace has."""
        self._places = places
        self._entries = entries
        self._until = until
        self._main = threading.get_ident()
        self._local = threading.local()
        self._lock = threading.Lock()
        self._files: Dict[str, Dict[int, Statement]] = {}
        self._frames: Dict[int, Tuple[FrameType, _Frame]] = {}
        self._number = 0
        self._last_returned: Optional[int] = None
        self.events: List[Dict[str, object]] = []
        self.target: Optional[int] = None
        self.is_over = False

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watch what runs inside, in this thread and in those that it begins."""
        before = sys.gettrace()
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(None)
            self.is_over = True

    def suspend(self) -> None:
        """Watch nothing in this thread for a time."""
        sys.settrace(None)

    def resume(self, module: object = None) -> None:
        """Watch again; the statements that are running go on."""
        if not self.is_over:
            sys.settrace(self._enter)

    def write(self, path: str) -> None:
        """Write the statements into a file, as JSON."""
        target = self.target if self.target is not None else self._last_returned
        for _, own in list(self._frames.values()):
            if own.statement is not None:  # it was still running
                self._add_event(own, own.statement, {})
        with self._lock, open(path, "w", encoding="utf-8") as file:
            json.dump(
                {"target": target, "cut": len(self.events) >= MOST, "events": self.events}, file
            )

    def _enter(self, frame: FrameType, event: str, arg: object) -> Optional[Trace]:
        """Take a call; return what takes its lines, where it is the user's."""
        code = frame.f_code
        if self.is_over or (code.co_name.startswith("<") and code.co_name != "<module>"):
            return None
        file = self._places.find_name(code.co_filename)
        if file is None:
            return None
        if code.co_filename not in self._files:
            self._files[code.co_filename] = self._read(code.co_filename)
        own = self._find_frame(frame, file)
        self._stack.append(own)
        if own.left is not None:
            self._start(own, own.left, frame)

        def step(frame: FrameType, event: str, arg: object) -> Optional[Trace]:
            if self.is_over:
                return None
            if event == "line":
                self._begin(own, frame)
            elif event == "return":
                self._leave(own, frame, arg)
            return step

        return step

    @property
    def _stack(self) -> List[_Frame]:
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        stack: List[_Frame] = self._local.stack
        return stack

    def _find_frame(self, frame: FrameType, file: str) -> _Frame:
        """Return what is known of a call; a generator goes on in the same one."""
        known = self._frames.get(id(frame))
        parent = self._stack[-1].event if self._stack else None
        if known is not None and known[0] is frame:
            known[1].parent = parent
            return known[1]
        with self._lock:
            self._number += 1
            own = _Frame(self._number, parent, file, frame.f_code)
            # Kept, so that no identity comes again.
            self._frames[id(frame)] = frame, own
        return own

    def _read(self, path: str) -> Dict[int, Statement]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return read_statements(file.read())
        except OSError:
            return {}

    def _begin(self, own: _Frame, frame: FrameType) -> None:
        """Begin the statement of a line, and end the one before."""
        statement = self._files[frame.f_code.co_filename].get(frame.f_lineno)
        # Another line of the same one; a loop that comes to its head again begins it again.
        if statement is not None and statement is own.statement and not statement.is_loop:
            return
        # What leaves a `with` comes to its head once more: what is returned there was made before.
        if statement is not None and own.is_within(statement):
            return
        self._end(own, frame, {})
        if self._stops(own):
            return
        if statement is not None:
            self._start(own, statement, frame)

    def _start(self, own: _Frame, statement: Statement, frame: FrameType) -> None:
        own.statement, own.left = statement, None
        with self._lock:
            self._number += 1
            own.event = self._number
        values = _find_values(statement, frame)
        own.before = self._print_values(values)
        # `alloc(9)` is a call of `empty` where the program has given that another name.
        own.more = list(_list_real_names(statement, frame))
        # To go through a set that has a name is as to go through one that is made there. Last, as
        # what is called with it says more.
        read = list(values.values())
        for name, attribute in statement.attributes:
            read.append(getattr(values.get(name), "__dict__", {}).get(attribute))
        if any(isinstance(value, (set, frozenset)) for value in read):
            own.more.append("set")

    def _leave(self, own: _Frame, frame: FrameType, value: object) -> None:
        """End the statement that returns or yields."""
        if own.can_return:
            own.left = own.statement
        self._end(own, frame, {RETURNED: (hash_any(value), 0)})
        if self._stack and self._stack[-1] is own:
            self._stack.pop()
        if not self._stack and threading.get_ident() == self._main:
            self._last_returned = own.event
        self._stops(own)

    def _stops(self, own: _Frame) -> bool:
        """Return whether the entry is there; the statement that has just ended is the one that made it."""
        if self._entries() > self._until and threading.get_ident() == self._main:
            if self._stack and self.target is None:
                self.target = own.event
            self.is_over = True
        if len(self.events) >= MOST:
            self.is_over = True
        return self.is_over

    def _end(self, own: _Frame, frame: FrameType, after: Prints) -> None:
        statement = own.statement
        if statement is None:
            return
        own.statement = None
        self._add_event(
            own, statement, {**self._print_values(_find_values(statement, frame)), **after}
        )

    def _add_event(self, own: _Frame, statement: Statement, after: Prints) -> None:
        event: Dict[str, object] = {
            "number": own.event,
            "frame": own.number,
            "parent": own.parent,
            "place": [own.file, statement.line, own.function],
            "header": statement.header,
            "calls": [*statement.calls, *own.more],
            "seeds": statement.seeds,
            "before": own.before,
            "after": after,
        }
        with self._lock:
            self.events.append(event)

    def _print_values(self, values: Dict[str, object]) -> Prints:
        """Return fingerprints of the values that the names of a statement have now."""
        found: Prints = {}
        for name, value in values.items():
            found[name] = hash_any(value), id(value)
        # By name, as each is called with another one.
        found[GENERATORS[0]] = str(hash(random.getstate()[1])), 0
        numpy = sys.modules.get("numpy")
        if hasattr(numpy, "random"):
            state = numpy.random.get_state()  # type: ignore[union-attr]
            found[GENERATORS[1]] = "{}-{}".format(crc32(state[1].tobytes()), state[2]), 0
        return found


def _find_values(statement: Statement, frame: FrameType) -> Dict[str, object]:
    """Return the values that the names of a statement have now; none of modules, functions and types."""
    found: Dict[str, object] = {}
    own, shared = frame.f_locals, frame.f_globals
    for name in statement.names:
        value = own.get(name, shared.get(name, WITHOUT_VALUE))
        if value is not WITHOUT_VALUE and not isinstance(value, WITHOUT_VALUE):
            found[name] = value
    return found


def _list_real_names(statement: Statement, frame: FrameType) -> Iterator[str]:
    """Yield the names under which functions were defined that a statement calls by other ones."""
    for name in statement.calls:
        called = frame.f_locals.get(name, frame.f_globals.get(name))
        real = getattr(getattr(called, "func", called), "__name__", name)
        if isinstance(called, (*WITHOUT_VALUE, functools.partial)) and real != name:
            yield real


def hash_any(value: object) -> Optional[str]:
    """Return a fingerprint of a value and of what it holds; None where it cannot be read.

    Objects are known by their type and attributes. Names of temporary files are left out.
    """
    printer = _Printer()
    try:
        printer.add(value, DEPTH)
    except Exception:  # of the user's or a library's own types, whatever those do
        return None
    return printer.digest.hexdigest()


class _Printer:
    def __init__(self) -> None:
        self.digest = blake2b(digest_size=8)
        self.left = NODES

    def add(self, value: object, depth: int) -> None:
        """Add a value, and what lies within it."""
        self.left -= 1
        if self.left < 0 or depth < 0:
            return
        kind = type(value)
        self._say(kind.__name__)
        if value is None or isinstance(value, WITHOUT_VALUE):
            return
        if isinstance(value, (bool, int, float, complex, str, bytes, bytearray, range, BY_WORDS)):
            self.digest.update(replace_names(repr(value).encode("utf-8", "surrogatepass")))
        elif isinstance(value, (list, tuple)):
            self._say(str(len(value)))
            for each in value:
                self.add(each, depth - 1)
        elif isinstance(value, dict):
            self._say(str(len(value)))
            for key, each in value.items():
                self.add(key, depth - 1)
                self.add(each, depth - 1)
        elif isinstance(value, (set, frozenset)) or kind.__name__ == "WeakSet":
            # A set has no order of its own.
            parts = sorted(str(hash_any(each)) for each in list(value)[:NODES])  # type: ignore[call-overload]
            self._say(" ".join(parts))
        else:
            self._add_object(value, depth)

    def _add_object(self, value: object, depth: int) -> None:
        kind = type(value)
        package = (kind.__module__ or "").partition(".")[0]
        if hasattr(kind, "_datatype_enum"):
            self._say(str(tensors.hash_tensor(value)))
        elif package == "numpy":
            self._add_of_numpy(value, depth)
        elif package in FOREIGN or package in AT_WORK:
            # The shape of a variable, not what it holds: to read that is an operation of its own. Its
            # number goes on from run to run of a process.
            variable = getattr(value, "_wrapped", value)
            if hasattr(variable, "_unique_id"):
                self._say(str(getattr(variable, "shape", "")))
        elif isinstance(value, collections.deque):
            self.add(list(value), depth)
        elif isinstance(value, random.Random):
            self._say(str(hash(value.getstate()[1])))
        elif kind.__name__ == "DirEntry":
            self._say(str(getattr(value, "name", "")))
        else:
            for name, each in sorted(getattr(value, "__dict__", {}).items()):
                self._say(name)
                self.add(each, depth - 1)

    def _add_of_numpy(self, value: object, depth: int) -> None:
        if hasattr(value, "bit_generator"):
            self.add(value.bit_generator.state, depth - 1)
        elif hasattr(value, "get_state"):
            self.add(value.get_state(), depth - 1)
        elif hasattr(value, "dtype"):
            array = sys.modules["numpy"].asarray(value)
            self._say(str((array.dtype, array.shape)))
            if array.dtype.hasobject:
                self.add(array.tolist(), depth - 1)
            else:
                self._say(str(tensors.hash_array(array)))

    def _say(self, text: str) -> None:
        self.digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
