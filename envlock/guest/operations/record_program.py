"""Run a user's function eagerly and record its operations: a program for the user's interpreter.

It leaves `operations.json`, either {"unusable": sentence}, {"failed": sentence, "traceback": ...}
or

    {"operations": [...], "distinct": number, "left_out": {reason: {type: number}}, "cut": whether
        the time was up}
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from importlib import import_module

from envlock.guest.operations.inventory import Inventory
from envlock.guest.tracing import private, runs
from envlock.guest.tracing.tracer import Enough
from envlock.guest.training import contract, seed_setting
from envlock.guest.training.failures import describe_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, TypedDict

    class Asked(TypedDict):
        script: str
        module: bool
        function: Optional[str]
        args: List[str]
        folder: str
        steps: Optional[int]
        seconds: float


SEED = 7  # any number: initial weights and batches have to be the same in two recordings


def main() -> None:
    """Run the function that the JSON in `sys.argv[1]` names, and write `operations.json` into its
    folder.
    """
    asked: Asked = json.loads(sys.argv.pop(1))
    answer: Dict[str, object]
    try:
        answer = _record(asked)
    except (contract.Misuse, private.CallbacksMissing) as error:
        answer = {"unusable": str(error)}
    except BaseException as error:
        traceback.print_exc()
        answer = {"failed": describe_failure(error)}
    with open(os.path.join(asked["folder"], "operations.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file)
    sys.stdout.flush()
    sys.stderr.flush()
    # Without the atexit functions of the user's program and of TensorFlow.
    os._exit(0)


def _record(asked: Asked) -> Dict[str, object]:
    """Run the function with every graph expanded into operations, and return these.

    Raises:
        Misuse: it cannot be run in this way.
        CallbacksMissing: this TensorFlow has no operation callbacks.
        BaseException: any exception of the user's code.
    """
    seed_setting.set_all_seeds(SEED)
    call = contract.load(asked["script"], asked["function"], asked["args"], module=asked["module"])
    try:
        tf = import_module("tensorflow")
    except ImportError as error:
        raise contract.Misuse("TensorFlow cannot be imported: " + str(error)) from None
    # Again: importing the script can have used random numbers.
    seed_setting.set_all_seeds(SEED)
    inventory = Inventory(tf, asked["steps"], asked["seconds"])
    private.add_callback(inventory.observe)
    try:
        tf.config.run_functions_eagerly(True)
        with runs.count_batches(inventory):
            runs.perform(lambda: call(SEED), lambda: inventory)
    except Enough:
        pass
    finally:
        private.remove_callback(inventory.observe)
    if not inventory.distinct:
        # Only now: the check starts the runtime, after which a program can no longer set its
        # threads.
        private.check_callbacks(tf)
    return {
        "operations": inventory.operations,
        "distinct": inventory.distinct,
        "left_out": inventory.left_out,
        "cut": inventory.is_cut,
    }
