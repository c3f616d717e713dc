"""Where Python and NumPy made values that can differ from run to run: which function, in which line, with what result.

The functions of the table `makers` are replaced while a run lasts. A module that a program has imported can hold one of
them for longer: it then asks the original.
"""

from __future__ import annotations

import random
import sys
import threading
from array import array
from contextlib import contextmanager
from functools import wraps
from hashlib import blake2b, shake_128

from envlock.guest.tracing import tensors
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

    from envlock.guest.tracing.source_lines import Places

    Place = Tuple[str, int, str]
    Key = Tuple[str, Place]

CALLS = 200
"""How many calls of one line are kept, and how many lines."""
DIRECT = ("clock", "constant")
"""Noted only where the user's own line asks: libraries measure durations, and name files by their process."""
START = 1_700_000_000_000
"""Milliseconds: what a clock that is held begins with."""
_current: List[Makers] = []


class Makers:
    """The calls of one run."""

    def __init__(
        self, places: Places, entries: Callable[[], int], held: Optional[Sequence[Any]] = None
    ) -> None:
        """`entries` tells how far the run's own trace is; `held`: function, file and line that always give the same."""
        self._places = places
        self._entries = entries
        self._held = None if held is None else tuple(held)
        self._lock = threading.Lock()
        self._calls: Dict[Key, List[Tuple[int, int, Optional[str]]]] = {}
        self._number = 0
        self._counts: Dict[Key, int] = {}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch what is called inside."""
        undo = []
        for row in table("makers"):
            for name in row["functions"]:
                owner, last = _owner(name)
                original = getattr(owner, last, None)
                if original is not None:
                    undo.append((owner, last, original))
                    setattr(owner, last, _watching(original, row["name"] or name, row["hold"]))
        _current.append(self)
        try:
            yield
        finally:
            _current.remove(self)
            for owner, last, original in reversed(undo):
                setattr(owner, last, original)

    def called(self, name: str, how: str, original: Any, args: Any, kwargs: Any) -> Any:
        """Return what a call gives, or what it always gives where that line is held, and note it."""
        place = self._places.here(3, libraries=how not in DIRECT)
        if place is None or (how == "seed" and (kwargs or args[1:2] not in ((), (None,)))):
            return original(*args, **kwargs)
        key = name, place
        with self._lock:
            number = self._counts[key] = self._counts.get(key, 0) + 1
        held = self._held == (name, place[0], place[1])
        if how == "submitted":
            return self._completed(key, original, args, kwargs, held=held)
        result = (
            _held(how, name, original, args, kwargs, number) if held else original(*args, **kwargs)
        )
        if number <= CALLS and (number > 1 or len(self._calls) < CALLS):
            self._note(key, _print(how, result, args))
        return result

    def _completed(
        self, key: Key, original: Any, args: Any, kwargs: Any, *, held: bool
    ) -> Iterator[Any]:
        """Yield futures as they end, or as they were given, and note which one each is."""
        futures = list(dict.fromkeys(args[0] if args else kwargs.pop("fs")))
        numbers = {id(each): str(number) for number, each in enumerate(futures)}
        for each in futures if held else original(futures, *args[1:], **kwargs):
            if held:
                each.exception()  # it has ended then
            self._note(key, numbers.get(id(each)))
            yield each

    def _note(self, key: Key, print_: Optional[str]) -> None:
        with self._lock:
            self._number += 1
            self._calls.setdefault(key, []).append((self._entries(), self._number, print_))

    def to_json(self) -> List[Dict[str, Any]]:
        """Return each function with its line and its calls: after how many entries, which call of all, what it gave."""
        with self._lock:
            return [
                {"name": name, "place": place, "calls": calls}
                for (name, place), calls in self._calls.items()
            ]


def _owner(name: str) -> Tuple[Any, str]:
    """Return the module or class that has a function, and its name there; None where nobody has imported it yet."""
    *words, last = name.split(".")
    for end in range(len(words), 0, -1):
        owner: Any = sys.modules.get(".".join(words[:end]))
        if owner is not None:
            for word in words[end:]:
                owner = getattr(owner, word, None)
            return owner, last
    return None, last


def _watching(original: Any, name: str, how: str) -> Any:
    @wraps(original)
    def watching(*args: Any, **kwargs: Any) -> Any:
        if not _current:
            return original(*args, **kwargs)
        return _current[-1].called(name, how, original, args, kwargs)

    return watching


def _held(how: str, name: str, original: Any, args: Any, kwargs: Any, number: int) -> Any:
    """Return what a call gives in every run, by its number."""
    if how == "clock":  # by a second a call in the end, so that a loop that waits for a time ends
        now = START + number + max(number - CALLS, 0) * 1_000
        return now * 1_000_000 if name.endswith("_ns") else now / 1_000
    if how == "bytes":
        return shake_128(str(number).encode()).digest(*args, **kwargs)
    if how == "constant":
        return 1
    if how == "seed":
        return original(args[0], number)
    if how == "nothing":
        return original(*args, **kwargs)
    owner = sys.modules["numpy"].random if how == "numpy" else random
    get, put = (
        (owner.get_state, owner.set_state) if how == "numpy" else (owner.getstate, owner.setstate)
    )
    kept = get()
    owner.seed(number)
    try:
        return original(*args, **kwargs)
    finally:
        put(kept)


def _print(how: str, result: Any, args: Any) -> Optional[str]:
    """Return the fingerprint of what a call gave; of a generator, the state that it is in then."""
    if how == "numpy":
        return _digest(sys.modules["numpy"].random.get_state()[1].tobytes())
    if how in ("random", "seed"):
        state = (random if how == "random" else args[0]).getstate()
        return _digest(array("L", state[1]).tobytes())
    return _of_value(result)


def _of_value(value: Any) -> Optional[str]:
    """Return the fingerprint of a number, a text or an array, or of a tuple or list of them; None of anything else."""
    if isinstance(value, (tuple, list)):
        return _digest(repr([_of_value(each) for each in value]).encode())
    if isinstance(value, (bool, int, float, str, bytes)) or hasattr(value, "dtype"):
        return str(tensors.of_tensor(value)[0])
    return None


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()
