"""Run a user's function and record the graphs that it runs: a program for the user's interpreter.

It leaves `program.json`, either {"unusable": sentence}, {"failed": sentence} or

    {"tensorflow": version, "switches": {name: value}, "files": [paths of the user's code],
        "functions": [{"name": ..., "graph": ..., "modules": [names of files], "failed": ...}],
        "definitions": {name: body}, "eager": {name: [operations]}, "cut": whether the time was up}

XLA writes what it compiles into the folder `hlo` beside it, as XLA_FLAGS asks it to.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from importlib import import_module

from envlock.guest.programs.called_functions import Functions
from envlock.guest.programs.eager_operations import EagerOperations
from envlock.guest.programs.keras_phases import Phases, train_model
from envlock.guest.tracing import private
from envlock.guest.tracing.tracer import Enough
from envlock.guest.training import contract, seed_setting
from envlock.guest.training.failures import describe_failure
from envlock.runtime import recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Dict, List, Optional, TypedDict

    class Asked(TypedDict):
        script: str
        module: bool
        function: Optional[str]
        args: List[str]
        folder: str
        steps: int
        seconds: float


SEED = 7


def main() -> None:
    """Run what the JSON in `sys.argv[1]` names, and write `program.json` into its folder."""
    asked: Asked = json.loads(sys.argv.pop(1))
    answer: Dict[str, object]
    try:
        answer = _record(asked)
    except (contract.Misuse, private.CallbacksMissing) as error:
        answer = {"unusable": str(error)}
    except BaseException as error:
        traceback.print_exc()
        answer = {"failed": describe_failure(error)}
    with open(os.path.join(asked["folder"], "program.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file)
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the atexit functions of the user's program and of TensorFlow.
    os._exit(0)


def _record(asked: Asked) -> Dict[str, object]:
    """Run the function for some steps, and return what was seen.

    Raises:
        Misuse: it cannot be run so.
        CallbacksMissing: this TensorFlow has no operation callbacks.
        BaseException: whatever the user's code raises.
    """
    seed_setting.set_all_seeds(SEED)
    call = contract.load(asked["script"], asked["function"], asked["args"], module=asked["module"])
    try:
        tf = import_module("tensorflow")
    except ImportError as error:
        raise contract.Misuse("TensorFlow cannot be imported: " + str(error)) from None
    # Again: importing the script can have drawn numbers.
    seed_setting.set_all_seeds(SEED)
    phases = Phases(asked["steps"])
    dumps = os.path.join(asked["folder"], "hlo")
    functions = Functions(tf, phases, dumps, asked["seconds"])
    eager = EagerOperations(phases)
    private.add_callback(eager.observe)
    try:
        with functions.watch(), phases.watch():
            _perform(call, asked["steps"])
    except Enough:
        pass
    finally:
        private.remove_callback(eager.observe)
    if not eager.operations and not functions.called:
        # Only now: trying starts the runtime, after which a program can no longer choose threads.
        private.check_callbacks(tf)
    return {
        "tensorflow": tf.__version__,
        "switches": _read_switches(tf),
        "files": _list_files(contract.find_folder(asked["script"], module=asked["module"])),
        "functions": functions.called,
        "definitions": functions.definitions,
        "eager": eager.operations,
        "cut": functions.is_cut,
    }


def _perform(call: Callable[[Optional[int]], object], steps: int) -> None:
    """Call, and take steps until there were enough.

    Raises:
        Enough: there were.
        BaseException: whatever the user's code raises.
    """

    def take(step: Optional[int], values: object) -> None:
        """Ignore what the program records: that is not a part of the program."""

    recording.listen(take)
    try:
        result = call(SEED)
        if result is None:
            return
        if contract.is_model(result):
            train_model(*result, steps=steps)  # type: ignore[misc]
            return
        for number, _ in enumerate(contract.iterate_steps(result), 1):
            if number >= steps:
                return
    finally:
        recording.listen(None)


def _read_switches(tf: ModuleType) -> Dict[str, object]:
    """Return what decides how a graph is rewritten before it runs: Grappler's options, and XLA's."""
    switches: Dict[str, object] = {}
    for name, value in sorted(tf.config.optimizer.get_experimental_options().items()):
        switches[f"grappler.{name}"] = str(value)
    switches["jit"] = str(tf.config.optimizer.get_jit())
    switches["determinism"] = str(private.read_determinism())
    return switches


def _list_files(folder: str) -> List[str]:
    """Return the files of the user's code that the program has imported, below a folder."""
    inside = os.path.realpath(folder) + os.sep
    found = set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not file.endswith(".py"):
            continue
        path = os.path.realpath(file)
        if path.startswith(inside) and "-packages" + os.sep not in path:
            found.add(path)
    return sorted(found)
