"""The program that runs a user's function eagerly and notes its operations, in the user's interpreter.

It leaves `operations.json`, either {"unusable": sentence}, {"failed": sentence, "traceback": ...} or

    {"operations": [...], "distinct": number, "left_out": {reason: {type: number}}, "cut": whether the time was up}
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
from envlock.guest.training import contract, seeds
from envlock.guest.training.failures import described

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

SEED = 7


def main() -> None:
    """Do what the JSON in `sys.argv[1]` asks for: script, module, function, args; folder, steps, seconds."""
    asked = json.loads(sys.argv.pop(1))
    try:
        answer = _recorded(asked)
    except (contract.Misuse, private.CallbacksMissing) as error:
        answer = {"unusable": str(error)}
    except BaseException as error:
        traceback.print_exc()
        answer = {"failed": described(error)}
    with open(os.path.join(asked["folder"], "operations.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _recorded(asked: Dict[str, Any]) -> Dict[str, Any]:
    """Run the function with every graph taken apart, and return what was noted.

    Raises:
        Misuse: it cannot be run so.
        CallbacksMissing: this TensorFlow has no operation callbacks.
        BaseException: whatever the user's code raises.
    """
    seeds.seed_all(SEED)
    call = contract.load(asked["script"], asked["function"], asked["args"], module=asked["module"])
    try:
        tf = import_module("tensorflow")
    except ImportError as error:
        raise contract.Misuse("TensorFlow cannot be imported: " + str(error)) from None
    seeds.seed_all(SEED)
    found: Any = Inventory(tf, asked["steps"], asked["seconds"])
    private.add(found.seen)
    try:
        tf.config.run_functions_eagerly(True)
        with runs.counted_batches(found):
            runs.perform(lambda: call(SEED), lambda: found)
    except Enough:
        pass
    finally:
        private.remove(found.seen)
    if (
        not found.distinct
    ):  # only now: trying starts the runtime, after which a program can no longer choose threads
        private.probe(tf)
    return {
        "operations": found.noted,
        "distinct": found.distinct,
        "left_out": found.left_out,
        "cut": found.cut,
    }
