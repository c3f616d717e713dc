"""The functions that a program has TensorFlow make graphs of: their graphs, and what XLA compiled of
them.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from threading import get_ident

from envlock.guest.programs.graph_reading import read_captures, read_definitions
from envlock.guest.tracing import private
from envlock.guest.tracing.tracer import Enough
from envlock.guest.training.failures import describe_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Dict, Iterator, List, Mapping, Protocol, Sequence, Set, Union

    Entry = Dict[str, Union[str, List[str]]]

    from envlock.guest.programs.graph_reading import Concrete
    from envlock.guest.programs.keras_phases import Phases

    class Function(Protocol):
        def get_concrete_function(self, *args: object, **kwargs: object) -> Concrete: ...


DUMPED = "after_optimizations.txt"
"""How the name of a file ends in which XLA writes a compiled module, on a processor and on a GPU."""


class Functions:
    """Notes each function that is called from outside of a graph, once for each graph that it has."""

    def __init__(self, tf: ModuleType, phases: Phases, dumps: str, seconds: float) -> None:
        """Take XLA's modules from the folder `dumps`; raise `Enough` at the first call after `seconds`."""
        self._tf = tf
        self._phases = phases
        self._dumps = dumps
        self._end = time.monotonic() + seconds
        self._thread = get_ident()
        self._seen: Set[str] = set()
        self._known: Dict[int, Entry] = {}
        self._kept: List[object] = []
        self.called: List[Entry] = []
        self.definitions: Dict[str, object] = {}
        """The bodies of all functions, by the name that TensorFlow gave them."""
        self.is_cut = False
        """Whether the time was up before the program ended."""

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Note the calls of all functions, also of those that exist already."""
        # The class has no public name, but what it makes is public.
        kind = type(self._tf.function(lambda: None))
        original = kind.__call__

        def call(function: Function, *args: object, **kwargs: object) -> object:
            if not self._is_outermost():
                return original(function, *args, **kwargs)
            if time.monotonic() > self._end:
                self.is_cut = True
                raise Enough
            result = original(function, *args, **kwargs)
            self._note(function, args, kwargs)
            return result

        kind.__call__ = call
        try:
            yield
        finally:
            kind.__call__ = original

    def _is_outermost(self) -> bool:
        tf = self._tf
        if get_ident() != self._thread or not tf.executing_eagerly():
            return False
        return not tf.config.functions_run_eagerly()

    def _note(
        self, function: Function, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> None:
        """Note the graph that a call has used, and what XLA has compiled for it."""
        modules = self._list_new_modules()
        name = self._phases.current or str(getattr(function, "__name__", "function"))
        try:
            # It was traced by the call: this looks it up.
            concrete = function.get_concrete_function(*args, **kwargs)
            graph = private.decode_kind(concrete.name)
        except Exception as error:
            self.called.append(
                {"name": name, "modules": modules, "failed": describe_failure(error)}
            )
            return
        entry = self._known.get(id(concrete))
        if entry is None or entry["name"] != name:
            entry = {"name": name, "graph": graph, "modules": []}
            entry["captures"] = read_captures(concrete)
            self._known[id(concrete)] = entry
            self._kept.append(concrete)  # or another one could get its id
            self.called.append(entry)
            read_definitions(graph, self.definitions)
        entry["modules"] = [*entry["modules"], *modules]

    def _list_new_modules(self) -> List[str]:
        """Return the names of the files of modules that XLA has compiled since this was asked last."""
        try:
            names = set(os.listdir(self._dumps))
        except OSError:  # XLA makes the folder with the first module
            return []
        new = sorted(name for name in names - self._seen if name.endswith(DUMPED))
        self._seen |= names
        return new
