"""Run a user's script or function under the tracer: a program for the user's interpreter.

It leaves a trace a run, `0.trace`, `1.trace` ..., and `answers.jsonl`, a line each of:

    {"unusable": sentence}                                     it cannot be run at all
    {"callbacks": reason}                                      this TensorFlow shows no operations; what the runs show
                                                               of themselves is in the traces, if
                                                                   the mode is `graph`
    {"run": 0, "end": "finished" or "failed", "seconds": ..., "message": ..., "traceback": ...}  how a run ended
    {"folder": folder}                                         where the files lie that places are in
    {"environment": versions, "determinism": bool or null, "suspects": ..., "datasets": ...}
"""

from __future__ import annotations

import importlib.abc
import json
import os
import random
import socket
import sys
import time
import traceback
from contextlib import ExitStack, contextmanager
from importlib import import_module

from envlock.guest.dataset_graphs import Datasets
from envlock.guest.tracing import private, temporary_names
from envlock.guest.tracing.line_values import LineValues
from envlock.guest.tracing.private import CallbacksMissing, find_blindness
from envlock.guest.tracing.runs import Observed, forget_previous_run, open_trace, perform
from envlock.guest.tracing.source_lines import Places
from envlock.guest.tracing.value_makers import Held, Makers, list_late_modules
from envlock.guest.training import contract, seed_setting
from envlock.guest.training.failures import describe_failure, format_traceback
from envlock.guest.training.repeat_program import read_versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import (
        Callable,
        Dict,
        Iterator,
        List,
        Mapping,
        Optional,
        Sequence,
        TextIO,
        TypedDict,
    )

    from envlock.guest.tracing.tracer import Tracer
    from envlock.guest.training.seed_setting import Action

    class Asked(TypedDict):
        """What is asked for.

        folder: where to write; script, module, function, args: what to run; runs: the numbers of
        the runs; seed: a number or null; mode: `graph` (the user's own) or `eager`; steps: how
        many, or null; generators: a seed for Python's and NumPy's generators before every run, or
        null; held: functions, each with a file and a line where it gives the same in every run;
        now: what the clocks showed before the first of these runs; since: when the first of all
        runs began, in seconds; keeps: the module is loaded
        once, and nothing is forgotten between runs; lines: the number of the entry until which
        statements are watched, or null; serial: one operation of a graph at a time;
        conditions: for the header of the trace.
        """

        folder: str
        script: str
        module: bool
        function: Optional[str]
        args: List[str]
        runs: List[int]
        seed: Optional[int]
        mode: str
        steps: Optional[int]
        generators: Optional[int]
        held: Sequence[Sequence[object]]
        now: Sequence[float]
        since: float
        keeps: bool
        lines: Optional[int]
        serial: bool
        conditions: Optional[Mapping[str, object]]


LINES = ".lines"
"""What the name of a file with the statements of a run ends with."""
DONE, RUN_OVER = b".", b"r"
"""The bytes that say that a request, or one of its runs, is over."""


def main() -> None:
    """Do what the JSON in `sys.argv[1]` asks for, then what each further line of the standard input
    does.

    After each run and each line a byte is written to where the lines come from, a socket. The
    user's program finds no input.
    """
    requests = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    lines = requests.makefile("r", encoding="utf-8")
    line = sys.argv.pop(1)
    while line:
        process_request(json.loads(line), lambda: requests.sendall(RUN_OVER))
        sys.stdout.flush()
        sys.stderr.flush()
        requests.sendall(DONE)
        line = lines.readline()
    os._exit(0)


def process_request(asked: Asked, report_run: Callable[[], None] = lambda: None) -> None:
    """Make the runs, and write the answers; the process goes on. `report_run` is called after each run."""
    if asked["serial"]:
        call_when_imported("tensorflow", _run_serially)
    script = asked["script"]
    if not asked["module"]:
        script = os.path.abspath(script)
    places = Places(contract.find_folder(script, module=asked["module"]))
    path = os.path.join(asked["folder"], "answers.jsonl")
    with open(path, "a", encoding="utf-8") as answers:
        _write_answer(answers, {"folder": places.folder})
        Runs(asked, script, places, answers, report_run).make()


def _write_answer(answers: TextIO, line: Mapping[str, object]) -> None:
    answers.write(json.dumps(line, default=_decode) + "\n")
    answers.flush()


class Runs:
    """The runs of one request."""

    def __init__(
        self,
        asked: Asked,
        script: str,
        places: Places,
        answers: TextIO,
        report_run: Callable[[], None],
    ) -> None:
        self.asked = asked
        self.script = script
        self.places = places
        self.answers = answers
        self.report_run = report_run
        self.kept: Optional[contract.Call] = None
        """What runs the program, where it is loaded once for all runs."""
        self.datasets = Datasets(places)
        self.suspects: Dict[str, object] = {}
        self.blind: Optional[str] = None
        """Why no operation is seen."""

    def make(self) -> None:
        """Make all runs, and write how each ended, and what is known of all."""
        for number in self.asked["runs"]:
            can_go_on = self._make_one(number)
            self.report_run()
            if not can_go_on:
                break
        blind = self.blind or find_blindness(sys.modules.get("tensorflow"))
        if blind is not None:
            _write_answer(self.answers, {"callbacks": blind})
        environment = {
            "environment": read_versions(),
            "determinism": private.read_determinism(),
            "suspects": self.suspects,
        }
        _write_answer(self.answers, environment)
        _write_answer(self.answers, {"datasets": self.datasets.to_json()})

    def _make_one(self, number: int) -> bool:
        """Make a run, and write how it ended; return whether the next one can show something."""
        path = os.path.join(self.asked["folder"], "{}.trace".format(number))
        import_path = list(sys.path)
        begun = time.monotonic()
        try:
            observed = self._run(path)
        except contract.Misuse as error:
            _write_answer(self.answers, {"unusable": str(error)})
            return False
        except CallbacksMissing as error:
            self.blind = str(error)
            return False
        except BaseException as error:
            sys.path[:] = import_path
            traceback.print_exc()  # into the log of what the script said
            failure = {
                "run": number,
                "end": "failed",
                "message": describe_failure(error),
                "traceback": format_traceback(error),
            }
            _write_answer(self.answers, failure)
            # Where it has shown nothing, the next one will not either.
            return os.path.exists(path)
        seconds = round(time.monotonic() - begun, 3)
        end = {"run": number, "end": "finished", "seconds": seconds, **observed.threads}
        _write_answer(self.answers, end)
        self.suspects, self.blind = observed.suspects, observed.blind
        return True

    def _run(self, path: str) -> Observed:
        """Run once under the tracer; the trace goes into the file `path`.

        Raises:
            Misuse: it cannot be run so.
            CallbacksMissing: this TensorFlow has no operation callbacks.
            BaseException: whatever the user's code raises.
        """
        asked = self.asked
        if not asked["keeps"]:
            forget_previous_run(self.script, module=asked["module"])
        self._set_seeds()
        import_path = list(sys.path)
        tracers: List[Tracer] = []

        def count_entries() -> int:
            if not tracers:
                return 0
            return tracers[0].entries

        def get_tracer() -> Optional[Tracer]:
            if not tracers:
                return None
            return tracers[0]

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
                    counts=asked["function"] is None,
                    conditions=asked["conditions"],
                )
                tracers.append(stack.enter_context(tracing))

            stack.enter_context(self._watch_lines(path, count_entries))
            # A script is traced from its import of TensorFlow on; a function only when its module is imported.
            if asked["function"] is None:
                call_when_imported("tensorflow", begin)
            call = self._load()
            if asked["function"] is not None:
                begin(_import_tensorflow())
                # Again: importing the module can have drawn numbers.
                self._set_seeds()
            perform(lambda: call(asked["seed"]), get_tracer)
        sys.path[:] = import_path
        if not tracers:
            raise contract.Misuse(os.path.basename(self.script) + " does not import TensorFlow")
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
        asked = self.asked
        if self.kept is not None:
            return self.kept
        call = contract.load(self.script, asked["function"], asked["args"], module=asked["module"])
        if asked["keeps"]:
            self.kept = call
        return call

    def _set_seeds(self) -> None:
        """Set the seeds that are asked for."""
        _set_generators(self.asked["generators"])
        if self.asked["seed"] is not None:
            seed_setting.set_all_seeds(self.asked["seed"])


def _run_serially(tf: ModuleType) -> None:
    """Let graphs run one operation at a time, whatever the program asks for later."""
    threading = tf.config.threading
    threading.set_inter_op_parallelism_threads(1)
    threading.set_inter_op_parallelism_threads = lambda threads: None


def _import_tensorflow() -> ModuleType:
    try:
        return import_module("tensorflow")
    except ImportError as error:
        raise contract.Misuse("TensorFlow cannot be imported: " + str(error)) from None


def _set_generators(seed: Optional[int]) -> None:
    """Set the seeds of the generators outside of TensorFlow, to find out whether they are what
    differs.
    """
    if seed is None:
        return
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


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


def _decode(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value)
