"""The program that runs a user's script or function under the tracer, in the user's interpreter.

It leaves a trace a run, `0.trace`, `1.trace` ..., and `answers.jsonl`, a line each of:

    {"unusable": sentence}                                     it cannot be run at all
    {"callbacks": reason}                                      this TensorFlow shows no operations; what the runs show
                                                               of themselves is in the traces, if the mode is `graph`
    {"run": 0, "end": "finished" or "failed", "message": ..., "traceback": ...}  how a run ended
    {"folder": folder}                                         where the files lie that places are in
    {"environment": versions, "determinism": bool or null, "suspects": ..., "datasets": ...}
"""

from __future__ import annotations

import importlib.abc
import json
import os
import socket
import sys
import traceback
from contextlib import ExitStack

from envlock.guest.datasets import Datasets
from envlock.guest.tracing import names, private
from envlock.guest.tracing.makers import Makers
from envlock.guest.tracing.private import CallbacksMissing, blindness
from envlock.guest.tracing.runs import Observed, as_new, perform, traced
from envlock.guest.tracing.source_lines import Places
from envlock.guest.training import contract, seeds
from envlock.guest.training.failures import described, traceback_of
from envlock.guest.training.repeat_program import environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional

    Asked = Dict[str, Any]


def main() -> None:
    """Do what the JSON in `sys.argv[1]` asks for, then what each further line of the standard input does.

    After each a byte is written to where the lines come from, a socket. The user's program finds no input.

    folder: where to write; script, module, function, args: what to run; runs: the numbers of the runs; seed: a number
    or null; mode: `graph` (the user's own) or `eager`; steps: how many, or null; generators: a seed for Python's and
    NumPy's generators before every run, or null; held: a function, a file and a line that give the same in every run,
    or null; serial: one operation of a graph at a time.
    """
    asked = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    lines = asked.makefile("r", encoding="utf-8")
    line = sys.argv.pop(1)
    while line:
        work(json.loads(line))
        sys.stdout.flush()
        sys.stderr.flush()
        asked.sendall(b".")
        line = lines.readline()
    os._exit(0)


def work(asked: Asked) -> None:
    """Do it, and stay alive."""
    if asked["serial"]:
        when_imported("tensorflow", _serial)
    script = asked["script"] if asked["module"] else os.path.abspath(asked["script"])
    places = Places(contract.folder_of(script, module=asked["module"]))
    datasets = Datasets(places)
    found: Dict[str, Any] = {}
    blind: Optional[str] = None
    with open(os.path.join(asked["folder"], "answers.jsonl"), "a", encoding="utf-8") as answers:

        def answer(line: Dict[str, Any]) -> None:
            answers.write(json.dumps(line, default=_text) + "\n")
            answers.flush()

        answer({"folder": places.folder})
        kept = list(sys.path)
        for number in asked["runs"]:
            try:
                observed = _run(asked, number, script, places, datasets)
            except contract.Misuse as error:
                answer({"unusable": str(error)})
                break
            except CallbacksMissing as error:
                blind = str(error)
                break
            except BaseException as error:
                sys.path[:] = kept
                traceback.print_exc()  # into the log of what the script said
                failure = {
                    "end": "failed",
                    "message": described(error),
                    "traceback": traceback_of(error),
                }
                answer({"run": number, **failure})
                if not os.path.exists(
                    trace_of(asked, number)
                ):  # it has shown nothing, and the next will not either
                    break
                continue
            answer({"run": number, "end": "finished", **observed.threads})
            found, blind = observed.suspects, observed.blind
        blind = blind or blindness(sys.modules.get("tensorflow"))
        if blind is not None:
            answer({"callbacks": blind})
        answer(
            {"environment": environment(), "determinism": private.determinism(), "suspects": found}
        )
        answer({"datasets": datasets.to_json()})


def _run(asked: Asked, number: int, script: str, places: Places, datasets: Datasets) -> Observed:
    """Run once under the tracer.

    Raises:
        Misuse: it cannot be run so.
        CallbacksMissing: this TensorFlow has no operation callbacks.
        BaseException: whatever the user's code raises.
    """
    as_new(script, module=asked["module"])
    _generators(asked["generators"])
    if asked["seed"] is not None:
        seeds.seed_all(asked["seed"])
    kept = list(sys.path)
    path = trace_of(asked, number)
    with ExitStack() as stack:
        tracers: List[Any] = []

        def entries() -> int:
            return tracers[0].entries if tracers else 0

        calls = stack.enter_context(seeds.watched(entries))
        makers = Makers(places, entries, asked["held"])
        stack.enter_context(makers.watched())
        stack.enter_context(names.watched())

        def begin(tf: Any) -> None:
            arguments = {"mode": asked["mode"], "limit": asked["steps"], "datasets": datasets}
            arguments.update(counts=asked["function"] is None, conditions=asked["conditions"])
            tracers.append(stack.enter_context(traced(tf, path, places, **arguments)))

        if asked["function"] is None:
            when_imported("tensorflow", begin)
        call = contract.load(script, asked["function"], asked["args"], module=asked["module"])
        if asked["function"] is not None:
            begin(_tensorflow())
            _generators(asked["generators"])
            if asked["seed"] is not None:
                seeds.seed_all(asked["seed"])
        perform(lambda: call(asked["seed"]), lambda: tracers[0] if tracers else None)
    sys.path[:] = kept
    if not tracers:
        raise contract.Misuse(os.path.basename(script) + " does not import TensorFlow")
    return Observed(tracers[0], calls, makers)


def trace_of(asked: Asked, number: int) -> str:
    """Return the file of a run's trace."""
    return os.path.join(asked["folder"], "{}.trace".format(number))


def _serial(tf: Any) -> None:
    """Let graphs run one operation at a time, whatever the program asks for later."""
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads = lambda threads: None


def _tensorflow() -> Any:
    try:
        import importlib

        return importlib.import_module("tensorflow")
    except ImportError as error:
        raise contract.Misuse("TensorFlow cannot be imported: " + str(error)) from None


def _generators(seed: Optional[int]) -> None:
    """Set the seeds of the generators outside of TensorFlow, to see whether they are what differs."""
    if seed is None:
        return
    import random

    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def when_imported(name: str, action: Callable[[Any], None]) -> None:
    """Call `action` with a module when it is there, now or right after its first import."""
    if name in sys.modules:
        action(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Watch(name, action))


class _Watch(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, action: Callable[[Any], None]) -> None:
        self._name = name
        self._action: Optional[Callable[[Any], None]] = action

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Return the module's own spec, with the action after its execution."""
        action = self._action
        if name != self._name or action is None:
            return None
        self._action = None
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            execute = spec.loader.exec_module

            def execute_and_act(module: Any) -> None:
                execute(module)
                action(module)

            spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
