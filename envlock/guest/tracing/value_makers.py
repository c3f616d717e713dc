"""Calls of Python and NumPy whose results can differ from run to run: which function, in which
line, with what result.

The functions in the table `makers` are replaced during a run. A module that a program has imported
can keep such a replacement for longer: it then calls the original.
"""

from __future__ import annotations

import gc
import os
import random
import stat
import sys
import threading
import time
from array import array
from contextlib import contextmanager
from functools import wraps
from hashlib import blake2b, shake_128

from envlock.guest.tracing import tensors
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future
    from types import FrameType, ModuleType
    from typing import (
        Callable,
        Dict,
        Iterable,
        Iterator,
        List,
        Optional,
        Sequence,
        Set,
        Tuple,
        Union,
    )

    from envlock.guest.tracing.source_lines import Places

    Place = Tuple[str, int, str]
    Key = Tuple[str, Place]
    FilePath = Union[str, bytes, os.PathLike[str], os.PathLike[bytes]]
    Function = Callable[..., object]
    Owner = Union[ModuleType, type, None]

CALLS = 200
"""How many calls of one line are recorded, and how many lines."""
DIRECT = ("clock", "constant")
"""Recorded only if the user's own line calls them: libraries measure durations, and name files
after their process.
"""
LIBRARIES = ("numpy", "tensorflow", "keras")
"""Packages of the table that are not Python's."""
STEADY = ("monotonic", "perf_counter")
"""Clocks that count from the start of the machine, all the same on Linux."""
IMPORTING = "<frozen importlib"
"""How the name of the file of Python's own import begins."""
SET_SEED = "set_random_seed"
"""The function of Keras that seeds all generators."""
FILE = "open"
"""The name of the recorded call where a line reads a file that an earlier run wrote."""
LARGEST = 1 << 24
"""The most bytes of such a file that are hashed: a larger one, such as big weights, has no fingerprint."""
REPLACES = "_envlock_replaces"
"""The attribute of a function that stands for a watched one: the name of that."""
_current: List[Makers] = []
_hooks: List[object] = []


class Call:
    """A call of a function in the table, and how the table says that it is held."""

    __slots__ = ("args", "how", "kwargs", "name", "original")

    def __init__(
        self,
        name: str,
        how: str,
        original: Function,
        args: Tuple[object, ...],
        kwargs: Dict[str, object],
    ) -> None:
        self.name = name
        self.how = how
        self.original = original
        self.args = args
        self.kwargs = kwargs

    def run(self) -> object:
        """Return the result of the original function."""
        return self.original(*self.args, **self.kwargs)


class Held:
    """Which calls give the same in every run, and what clocks then show.

    A held clock begins with what it showed before the first of the runs that are compared, and
    moves on with every call. So a program that waits until a time, of which one line is held and
    another one is not, finds it in the past or reaches it in a few thousand calls: one that began
    at a time of its own would let it wait for years.
    """

    def __init__(
        self, calls: Sequence[Sequence[object]] = (), now: Sequence[float] = (0.0, 0.0)
    ) -> None:
        """Take function, file and line of each; `now`: the time of day and the steady clocks, in seconds."""
        self.calls = {tuple(call) for call in calls}
        self._wall, self._steady = now
        self._ticks = 0

    def read_clock(self, name: str) -> Union[int, float]:
        """Return what a held clock shows: a millisecond more with each call of any, in the end a second."""
        self._ticks += 1
        later = self._ticks + max(self._ticks - CALLS, 0) * 1_000
        base = 0.0  # the time of a process begins with it
        function = name.rpartition(".")[2]
        if function.startswith(STEADY):
            base = self._steady
        elif not function.startswith("process_time"):
            base = self._wall
        now = int(base * 1_000) + later
        if name.endswith("_ns"):
            return now * 1_000_000
        return now / 1_000


class Makers:
    """The calls of one run."""

    def __init__(
        self,
        places: Places,
        entries: Callable[[], int],
        held: Optional[Held] = None,
        since: float = 0.0,
    ) -> None:
        """Begin without calls.

        `entries` tells how many entries the run's own trace has; `held`: which calls give the same
        in every run; `since`: when the first of all runs began, in seconds, or 0 where that is
        unknown.
        """
        self._since = since
        self._places = places
        self._entries = entries
        self._held = held or Held()
        self._lock = threading.Lock()
        self._calls: Dict[Key, List[Tuple[int, int, Optional[str]]]] = {}
        self._number = 0
        self._counts: Dict[Key, int] = {}
        self._importing: Set[Key] = set()
        self._undo: List[Tuple[Owner, str, Function]] = []
        self._collector: Optional[int] = None
        """The thread that collects garbage now."""
        self._began = time.time()
        self._reading: Set[int] = set()
        """The threads that read a file to know it again."""

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watch the calls inside."""
        self.watch_module()
        _watch_files()
        gc.callbacks.append(self._note_collection)
        _current.append(self)
        try:
            yield
        finally:
            _current.remove(self)
            gc.callbacks.remove(self._note_collection)
            for owner, last, original in reversed(self._undo):
                setattr(owner, last, original)
            self._undo.clear()

    def watch_module(self, module: Optional[ModuleType] = None) -> None:
        """Watch the functions of what is imported by now, such as of a module that has just been."""
        watched = {(id(owner), last) for owner, last, _ in self._undo}
        for row in table("makers"):
            if row["hold"] == "left":  # Python tells of each file that is opened
                continue
            for name in row["functions"]:
                owner, last = _find_owner(name)
                original = getattr(owner, last, None)
                # A package has it from its module, where it has been replaced by then.
                is_replaced = hasattr(original, REPLACES)
                if original is None or is_replaced or (id(owner), last) in watched:
                    continue
                self._undo.append((owner, last, original))
                setattr(owner, last, _wrap(original, row["name"] or name, row["hold"]))

    def answer(self, call: Call) -> object:
        """Record a call and return its result, or the constant result if its line is held."""
        # Two frames of envlock lie between the user's line and this one: this one and the wrapper.
        place = self._places.find_caller(3, through_libraries=call.how not in DIRECT)
        if place is None or _is_seeded(call) or self._collector == threading.get_ident():
            return call.run()
        if call.how == "given" and _is_seeded_by_keras(sys._getframe(2)):
            call.name = SET_SEED
        key = call.name, place
        with self._lock:
            number = self._counts[key] = self._counts.get(key, 0) + 1
        if number == 1 and call.how not in DIRECT and _is_importing(sys._getframe(2), self._places):
            self._importing.add(key)
        is_held = (call.name, place[0], place[1]) in self._held.calls
        if call.how == "submitted":
            return self._yield_futures(key, call, is_held=is_held)
        if is_held:
            result = self._compute_held(call, number)
        else:
            result = call.run()
        if number <= CALLS and (number > 1 or len(self._calls) < CALLS):
            self._add(key, _hash_result(call, result))
        return result

    def note_file(self, path: FilePath, flags: object) -> None:
        """Record that a line reads a file which an earlier run has left."""
        thread = threading.get_ident()
        if not self._since or thread in self._reading or not isinstance(flags, int):
            return
        if flags & (os.O_WRONLY | os.O_RDWR):
            return
        found = os.stat(path)
        is_left = self._since <= found.st_mtime < self._began
        if not is_left or not stat.S_ISREG(found.st_mode):
            return
        # Between the user's line and this one lies the hook.
        place = self._places.find_caller(3)
        if place is None or _is_importing(sys._getframe(2), self._places):
            return
        key = FILE, place
        with self._lock:
            number = self._counts[key] = self._counts.get(key, 0) + 1
        if number > CALLS:
            return
        self._reading.add(thread)
        try:
            self._add(key, _hash_file(path, found.st_size))
        finally:
            self._reading.discard(thread)

    def _yield_futures(self, key: Key, call: Call, *, is_held: bool) -> Iterator[Future[object]]:
        """Yield futures as they end, or in the given order if they are held, and record the number
        of each.
        """
        args, kwargs = call.args, call.kwargs
        given: Iterable[Future[object]] = args[0] if args else kwargs.pop("fs")  # type: ignore[assignment]
        futures = list(dict.fromkeys(given))
        numbers = {id(future): str(number) for number, future in enumerate(futures)}
        order: Iterable[Future[object]] = (
            futures if is_held else call.original(futures, *args[1:], **kwargs)  # type: ignore[assignment]
        )
        for future in order:
            if is_held:
                future.exception()  # waits until it has ended
            self._add(key, numbers.get(id(future)))
            yield future

    def _add(self, key: Key, fingerprint: Optional[str]) -> None:
        with self._lock:
            self._number += 1
            calls = self._calls.setdefault(key, [])
            calls.append((self._entries(), self._number, fingerprint))

    def _note_collection(self, phase: str, _: Dict[str, int]) -> None:
        """Remember which thread collects garbage: what a finalizer calls, as that of urllib3's pool
        does, has nothing to do with the line at which Python collects.
        """
        self._collector = threading.get_ident() if phase == "start" else None

    def to_json(self) -> List[Dict[str, object]]:
        """Return each function with its line and its calls: after how many entries, which call of
        all, its result; and whether an import statement of the line called it.
        """
        with self._lock:
            found: List[Dict[str, object]] = []
            for key, calls in self._calls.items():
                name, place = key
                noted = {"name": name, "place": place, "calls": calls}
                found.append({**noted, "importing": key in self._importing})
            return found

    def _compute_held(self, call: Call, number: int) -> object:
        """Return what a held call gives in every run, by its number."""
        if call.how == "clock":
            with self._lock:
                return self._held.read_clock(call.name)
        return _compute_constant(call, number)


def _is_seeded(call: Call) -> bool:
    """Return whether a generator is created with a seed, so that it is the same in every run."""
    return call.how == "seed" and (bool(call.kwargs) or call.args[1:2] not in ((), (None,)))


def list_late_modules() -> List[str]:
    """Return the modules of Python that have functions of the table and are not imported yet.

    A program that imports one takes a function from it at once (`from concurrent.futures import
    as_completed`). NumPy, TensorFlow and Keras are waited for by whoever traces.
    """
    found: Dict[str, None] = {}
    for row in table("makers"):
        for name in row["functions"]:
            words = name.split(".")[:-1]
            module = ".".join(word for word in words if not word[0].isupper())
            if words[0] not in LIBRARIES and module not in sys.modules:
                found[module] = None
    return list(found)


def _find_owner(name: str) -> Tuple[Owner, str]:
    """Return the module or class that has a function, and its name there; None if it is not
    imported yet.
    """
    *words, last = name.split(".")
    for end in range(len(words), 0, -1):
        owner: Owner = sys.modules.get(".".join(words[:end]))
        if owner is not None:
            for word in words[end:]:
                owner = getattr(owner, word, None)
            return owner, last
    return None, last


def _wrap(original: Function, name: str, how: str) -> Function:
    @wraps(original)
    def call_watched(*args: object, **kwargs: object) -> object:
        if not _current:
            return original(*args, **kwargs)
        return _current[-1].answer(Call(name, how, original, args, kwargs))

    setattr(call_watched, REPLACES, name)
    return call_watched


def _watch_files() -> None:
    """Let Python, from 3.8 on, tell of each file that is opened: once in a process, as no hook can be
    taken away.
    """
    if not _hooks and sys.version_info >= (3, 8):
        _hooks.append(_hear)
        sys.addaudithook(_hear)


def _hear(event: str, args: Tuple[object, ...]) -> None:
    # https://docs.python.org/3/library/functions.html#open; a number is a file that is open already
    if event != "open" or not _current or not isinstance(args[0], (str, bytes, os.PathLike)):
        return
    try:
        _current[-1].note_file(args[0], args[2])
    except Exception:  # what a hook raises would end the program's own `open`
        return


def _hash_file(path: FilePath, size: int) -> Optional[str]:
    if size > LARGEST:
        return None
    with open(path, "rb") as file:
        return _hash_bytes(file.read())


def _is_seeded_by_keras(frame: Optional[FrameType]) -> bool:
    """Return whether a seeding function was called by the function that seeds all."""
    for _ in range(3):  # a watcher of the seeding stands between
        if frame is None:
            return False
        if frame.f_code.co_name == SET_SEED:
            return True
        frame = frame.f_back
    return False


def _is_importing(frame: Optional[FrameType], places: Places) -> bool:
    """Return whether a module is being imported between a frame and the innermost one of the user's."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(IMPORTING):
            return True
        if places.find_name(file) is not None:
            return False
        frame = frame.f_back
    return False


def _compute_constant(call: Call, number: int) -> object:
    """Return the result that a held call, other than of a clock, has in every run, by its number."""
    if call.how == "bytes":
        return shake_128(str(number).encode()).digest(*call.args, **call.kwargs)  # type: ignore[arg-type]
    if call.how == "constant":
        return 1
    if call.how == "seed":
        return call.original(call.args[0], number)
    if call.how == "given":
        return call.original(1)
    if call.how == "nothing":
        return call.run()
    if call.how == "numpy":
        generator = sys.modules["numpy"].random
        get_state, set_state = generator.get_state, generator.set_state
    else:
        generator = random
        get_state, set_state = random.getstate, random.setstate
    # The generator continues from its own state: only this call is held.
    state = get_state()
    generator.seed(number)
    try:
        return call.run()
    finally:
        set_state(state)


def _hash_result(call: Call, result: object) -> Optional[str]:
    """Return the fingerprint of a call's result; for a generator, that of its state after the call."""
    if call.how == "numpy":
        return _hash_bytes(sys.modules["numpy"].random.get_state()[1].tobytes())
    if call.how == "random":
        return _hash_generator(random)
    if call.how == "seed":
        return _hash_generator(call.args[0])
    if call.how == "given":
        # What a call without a seed made of the generator shows in what is drawn later.
        return _hash_value([*call.args, *call.kwargs.values()])
    return _hash_value(result)


def _hash_generator(generator: Union[ModuleType, object]) -> str:
    state = generator.getstate()  # type: ignore[union-attr]
    return _hash_bytes(array("L", state[1]).tobytes())


def _hash_value(value: object) -> Optional[str]:
    """Return the fingerprint of a number, a text or an array, or of a tuple or list of these; None
    for anything else.
    """
    if isinstance(value, (tuple, list)):
        return _hash_bytes(repr([_hash_value(element) for element in value]).encode())
    if isinstance(value, (bool, int, float, str, bytes)) or hasattr(value, "dtype"):
        return str(tensors.hash_tensor(value)[0])
    return None


def _hash_bytes(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()
