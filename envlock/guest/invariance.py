"""The program that measures whether a model's result for a sample depends on its batch.

The first row of the inputs is the sample. It is computed in batches of other sizes, at other places
in a batch, and with other rows; only the result for the sample is digested. Needs TensorFlow and
NumPy.
"""

from __future__ import annotations

import json
import os
import sys

from envlock.guest.training import contract, seed_setting
from envlock.guest.training.failures import describe_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Tuple


def main() -> None:
    """Do what the JSON in `sys.argv[1]` requests, and answer with a line for each batch.

    mark: the beginning of an answer; model: the path of a saved model, or null; script, module,
    function: what returns a model otherwise; inputs: a file with arrays, or null; sizes: batch
    sizes by mode; seed: that of generated inputs.
    """
    asked = json.loads(sys.argv.pop(1))
    answers = os.dup(1)  # output of the model's own code goes to stderr
    os.dup2(2, 1)

    def answer(**values: Any) -> None:
        line = f"{asked['mark']}{json.dumps(values)}\n"
        os.write(answers, line.encode("utf-8"))

    try:
        seed_setting.set_all_seeds(asked["seed"])
        found, given = None, None
        if asked["model"] is None:
            found, given = call_function(asked)
        # Only now: the user's program may have variables to set before it imports TensorFlow.
        from envlock.guest import model_batches

        if asked["model"] is not None:
            found = model_batches.load_model(asked["model"])
        subject = model_batches.make_subject(asked, found, given)
    except contract.Misuse as error:
        answer(unusable=str(error))
        return
    answer(environment=describe_environment(), keras=subject.model is not None, rows=subject.most)
    for mode, sizes in asked["sizes"].items():
        if mode not in subject.calls:
            continue
        try:
            model_batches.measure_mode(subject, mode, sizes, answer)
        except Exception as error:
            answer(mode=mode, failed=describe_failure(error))


def call_function(asked: Dict[str, Any]) -> Tuple[Any, Any]:
    """Return the model or function that the user's function returns, and the inputs beside it; None without any.

    Raises:
        Misuse: there is no such function, it cannot be called, or the user's function failed.
    """
    call = contract.load(asked["script"], asked["function"], [], module=asked["module"])
    try:
        found = call(asked["seed"])
    except contract.Misuse:
        raise
    except Exception as error:
        raise contract.Misuse(f"{asked['function']} failed: {describe_failure(error)}") from error
    given = None
    if isinstance(found, tuple) and len(found) == 2:
        found, given = found
    if not callable(found):
        raise contract.Misuse(f"{type(found).__name__} is not a model: it cannot be called")
    return found, given


def describe_environment() -> Dict[str, str]:
    """Return the versions of the software that computes."""
    versions = {}
    for name in ("tensorflow", "keras", "numpy"):
        module = sys.modules.get(name)
        version = getattr(module, "__version__", None)
        if isinstance(version, str):
            versions[name] = version
    return versions
