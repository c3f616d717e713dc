"""Run a user's function once, and note the graphs that it runs: what `envlock upgrade` compares.

The line on the end of the run has

    "tensorflow": version, "switches": {name: value},
    "functions": [{"name": ..., "graph": ..., "modules": [names of files], "failed": ...}],
    "definitions": {name: body}, "eager": {name: [operations]}, "cut": whether the time was up

XLA writes what it compiles into the folder `hlo` beside the log, as XLA_FLAGS asks it to.
"""

from __future__ import annotations

import os

from envlock.guest.programs.called_functions import Functions
from envlock.guest.programs.eager_operations import EagerOperations
from envlock.guest.programs.keras_phases import Phases, train_model
from envlock.guest.session import SingleRun
from envlock.guest.tracing import private, runs
from envlock.guest.tracing.run_traces import Traces
from envlock.guest.tracing.tracer import Enough
from envlock.guest.training import contract

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Dict, Iterable, Mapping, Optional

    from envlock.guest.training.store import Log


class Graphs(SingleRun):
    """Notes graphs for `steps` steps, and those of calls that begin within `seconds` seconds."""

    def run(self, number: int) -> Mapping[str, object]:
        """Run the function for some steps, and return what was seen.

        Raises:
            Misuse: it cannot be run so, or this TensorFlow does not show its operations.
            BaseException: whatever the user's code raises.
        """
        steps: int = self.asked["steps"]
        tf, call = runs.load_function(self.program)
        phases = Phases(steps)
        dumps = os.path.join(self.asked["folder"], "hlo")
        functions = Functions(tf, phases, dumps, self.asked["seconds"])
        eager = EagerOperations(phases)

        def ignore(step: Optional[int], values: object) -> None:
            """Ignore what the program records: that is not a part of the program."""

        def train(result: object) -> None:
            train_model(*result, steps=steps)  # type: ignore[misc]

        def end_step(number: int) -> None:
            if number + 1 >= steps:
                raise Enough

        with runs.watch_operations(eager.observe), functions.watch(), phases.watch():
            contract.perform(call, ignore, train, end_step)
        if not eager.operations and not functions.called:
            runs.need_callbacks(tf)
        return {
            "tensorflow": tf.__version__,
            "switches": _read_switches(tf),
            "functions": functions.called,
            "definitions": functions.definitions,
            "eager": eager.operations,
            "cut": functions.is_cut,
        }


class Both:
    """Makes the two runs that `envlock upgrade` compares: notes the graphs of run 0, by itself; and of
    run 1, eagerly, its operations and values. `eagerly` says what else is other in that.
    """

    def __init__(self, asked: Mapping[str, Any], log: Log) -> None:
        """Take what is asked for."""
        self._observers = Graphs(asked, log), Traces({**asked, **asked["eagerly"]}, log)

    def run(self, number: int) -> Mapping[str, object]:
        """Make a run, and return what was seen.

        Raises:
            Misuse: it cannot be run so, or this TensorFlow does not show its operations.
            BaseException: whatever the user's code raises.
        """
        return self._observers[number].run(number)

    def can_go_on(self, number: int, *, has_failed: bool) -> bool:
        """Return whether the program can also be run eagerly."""
        return not has_failed

    def describe_runs(self) -> Iterable[Mapping[str, object]]:
        """Return what is known of all runs."""
        return self._observers[1].describe_runs()


def _read_switches(tf: ModuleType) -> Dict[str, object]:
    """Return what decides how a graph is rewritten before it runs: Grappler's options, and XLA's."""
    switches: Dict[str, object] = {}
    for name, value in sorted(tf.config.optimizer.get_experimental_options().items()):
        switches[f"grappler.{name}"] = str(value)
    switches["jit"] = str(tf.config.optimizer.get_jit())
    switches["determinism"] = str(private.read_determinism())
    return switches
