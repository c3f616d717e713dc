"""Make the runs of a user's script or function under the tracer: what `envlock diverge` compares.

Each leaves a trace, `0.trace`, `1.trace` ...; of all runs the log has

    {"folder": folder}                                         where the files lie that places are in
    {"callbacks": reason}                                      why this TensorFlow shows no operations
    {"environment": versions, "determinism": bool or null, "suspects": ...}
    {"datasets": graphs}
"""

from __future__ import annotations

import importlib.abc
import os
import sys
from contextlib import ExitStack, contextmanager

from envlock.guest.dataset_graphs import Datasets
from envlock.guest.tracing import private, temporary_names
from envlock.guest.tracing.line_values import LineValues
from envlock.guest.tracing.private import CallbacksMissing, find_blindness
from envlock.guest.tracing.runs import Observed, forget_previous_run, open_trace, perform
from envlock.guest.tracing.source_lines import Places
from envlock.guest.tracing.value_makers import Held, Makers, list_late_modules
from envlock.guest.training import contract, seed_setting, store
from envlock.guest.training.run_values import read_versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence

    from envlock.guest.tracing.tracer import Tracer
    from envlock.guest.training.seed_setting import Action

LINES = ".lines"
"""What the name of a file with the statements of a run ends with."""


class Traces:
    """The traced runs of one request.

    mode: `graph` (the user's own) or `eager`; steps: how many, or null; seed, generators: a seed
    for all generators, or those of Python and NumPy, before every run, or null; held: functions,
    each with a file and a line where it gives the same in every run; now: what the clocks showed
    before the first of these runs; since: when the first of all runs began, in seconds; keeps: the
    module is loaded once, and nothing is forgotten between runs; lines: the number of the entry
    until which statements are watched, or null; serial: one operation of a graph at a time;
    conditions: for the header of the trace.
    """

    def __init__(self, asked: Mapping[str, Any], log: store.Log) -> None:
        """Write where the program lies."""
        self.asked = asked
        self.program = contract.Program(asked)
        if asked["serial"]:
            call_when_imported("tensorflow", _run_serially)
        script, module = self.program.script, self.program.module
        self.places = Places(contract.find_folder(script, module=module))
        log.write({"folder": self.places.folder})
        self.kept: Optional[contract.Call] = None
        """What runs the program, where it is loaded once for all runs."""
        self.datasets = Datasets(self.places)
        self.suspects: Dict[str, object] = {}
        self.blind: Optional[str] = None
        """Why no operation is seen."""

    def run(self, number: int) -> Mapping[str, object]:
        """Make a run, and return what is known besides its trace.

        Raises:
            Misuse: it cannot be run so.
            CallbacksMissing: this TensorFlow has no operation callbacks.
            BaseException: whatever the user's code raises.
        """
        import_path = list(sys.path)
        try:
            observed = self._trace(self._name_trace(number))
        except CallbacksMissing as error:
            self.blind = str(error)
            raise
        finally:
            sys.path[:] = import_path
        self.suspects, self.blind = observed.suspects, observed.blind
        return observed.threads

    def can_go_on(self, number: int, *, has_failed: bool) -> bool:
        """Return whether another run can show something: not where a failed one has shown nothing."""
        return not has_failed or os.path.exists(self._name_trace(number))

    def describe_runs(self) -> Iterator[Mapping[str, object]]:
        """Yield what is known of all runs."""
        blind = self.blind or find_blindness(sys.modules.get("tensorflow"))
        if blind is not None:
            yield {"callbacks": blind}
        yield {
            "environment": read_versions(),
            "determinism": private.read_determinism(),
            "suspects": self.suspects,
        }
        yield {"datasets": self.datasets.to_json()}

    def _name_trace(self, number: int) -> str:
        return os.path.join(self.asked["folder"], "{}.trace".format(number))

    def _trace(self, path: str) -> Observed:
        """Run once under the tracer; the trace goes into the file `path`.

        Raises:
            Misuse: it cannot be run so.
            CallbacksMissing: this TensorFlow has no operation callbacks.
            BaseException: whatever the user's code raises.
        """
        asked = self.asked
        is_function = self.program.function is not None
        if not asked["keeps"]:
            forget_previous_run(self.program.script, module=self.program.module)
        self.program.set_seeds()
        tracers: List[Tracer] = []

        def count_entries() -> int:
            return tracers[0].entries if tracers else 0

        with ExitStack() as stack:
            held = Held(asked["held"], asked["now"])
            makers = Makers(self.places, count_entries, held, asked["since"])
            stack.enter_context(makers.watch())
            # Outermost, as it looks at who calls `random.seed`.
            calls = stack.enter_context(seed_setting.watch_seeding(count_entries))
            call_when_imported("numpy", makers.watch_module)
            stack.enter_context(_watch_imports(makers.watch_module))
            stack.enter_context(temporary_names.watch_names())

            def begin(tf: ModuleType) -> None:
                makers.watch_module(tf)
                tracing = open_trace(
                    tf,
                    path,
                    self.datasets,
                    mode=asked["mode"],
                    limit=asked["steps"],
                    conditions=asked["conditions"],
                )
                tracers.append(stack.enter_context(tracing))

            stack.enter_context(self._watch_lines(path, count_entries))
            # A script is traced from its import of TensorFlow on; a function only when its module is imported.
            if not is_function:
                call_when_imported("tensorflow", begin)
            call = self._load()
            if is_function:
                begin(private.import_tensorflow())
                # Again: importing the module can have drawn numbers.
                self.program.set_seeds()
            perform(call, lambda: next(iter(tracers), None))
        if not tracers:
            name = os.path.basename(self.program.script)
            raise contract.Misuse(name + " does not import TensorFlow")
        return Observed(tracers[0], calls, makers)

    @contextmanager
    def _watch_lines(self, path: str, entries: Callable[[], int]) -> Iterator[None]:
        """Watch the statements that run inside, where that is asked for, and write them beside the trace."""
        until = self.asked["lines"]
        if until is None:
            yield
            return
        lines = LineValues(self.places, entries, until)
        try:
            with lines.watch():
                # To see each of its calls would double the time that its import takes.
                if "tensorflow" not in sys.modules:
                    resume = lines.resume
                    sys.meta_path.insert(0, _Watch("tensorflow", resume, before=lines.suspend))
                yield
        finally:
            lines.write(path + LINES)

    def _load(self) -> contract.Call:
        """Return what runs the program, loaded again unless it is to be kept.

        Raises:
            Misuse: it cannot be imported, or there is no such function.
        """
        if self.kept is not None:
            return self.kept
        call = self.program.load()
        if self.asked["keeps"]:
            self.kept = call
        return call


def _run_serially(tf: ModuleType) -> None:
    """Let graphs run one operation at a time, whatever the program asks for later."""
    threading = tf.config.threading
    threading.set_inter_op_parallelism_threads(1)
    threading.set_inter_op_parallelism_threads = lambda threads: None


def call_when_imported(name: str, action: Action) -> None:
    """Call `action` with a module when it is there, now or right after its first import."""
    if name in sys.modules:
        action(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Watch(name, action))


@contextmanager
def _watch_imports(action: Action) -> Iterator[None]:
    """Call `action` with each module of Python's that has a watched function, when it is imported
    inside.
    """
    watches = [_Watch(name, action) for name in list_late_modules()]
    sys.meta_path[:0] = watches
    try:
        yield
    finally:
        for watch in watches:
            if watch in sys.meta_path:  # the program may have changed the list
                sys.meta_path.remove(watch)


class _Watch(importlib.abc.MetaPathFinder):
    def __init__(
        self, name: str, action: Action, before: Callable[[], None] = lambda: None
    ) -> None:
        self._name = name
        self._action: Optional[Action] = action
        self._before = before

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        """Return the module's own spec, with the action after its execution."""
        action = self._action
        if name != self._name or action is None:
            return None
        self._action = None
        self._before()
        return seed_setting.make_spec(name, action)
