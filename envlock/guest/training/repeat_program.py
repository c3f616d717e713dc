"""The program that runs a user's script or function several times and writes down what it computes."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback

from envlock.guest.training import contract, seeds, store
from envlock.guest.training.failures import described, traceback_of
from envlock.runtime import recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, NoReturn, Optional

PACKAGES = ("tensorflow", "keras", "numpy", "jax", "torch")


def main() -> None:
    """Do what the JSON in `sys.argv[1]` asks for.

    folder: where to write; script, module, function, args: what to run; runs: the numbers of the runs; seed: a number
    or null; limit: how many bytes of arrays to keep.
    """
    asked = json.loads(sys.argv.pop(1))
    _end_with_parent()
    log = store.Log(asked["folder"])
    kept = store.Store(asked["folder"], asked["limit"])
    try:
        if asked["seed"] is not None:
            seeds.seed_all(asked["seed"])
        call = contract.load(
            asked["script"], asked["function"], asked["args"], module=asked["module"]
        )
    except contract.Misuse as error:
        log.write({"unusable": str(error)})
        _leave()
    recorded = False
    for number in asked["runs"]:
        recorded = _run(number, call, asked["seed"], kept, log) or recorded
        if not recorded:
            break  # nothing can be compared, and a run may take hours
    log.write({"environment": environment()})
    _leave()


def _run(
    number: int, call: contract.Call, seed: Optional[int], kept: store.Store, log: store.Log
) -> bool:
    """Run once, and write down how it ended; return whether there is a point in going on: it recorded, or failed."""
    recorder = store.Recorder(number, kept, log)
    start = time.monotonic()
    try:
        run_once(call, seed, recorder.take)
    except contract.Misuse as error:
        log.write({"unusable": str(error)})
        _leave()
    except BaseException as error:
        traceback.print_exc()  # into the log of what the script said
        log.write(
            {
                "run": number,
                "end": "failed",
                "message": described(error),
                "traceback": traceback_of(error),
            }
        )
        useful = True
    else:
        useful = recorder.step >= 0
        log.write({"run": number, "end": "finished", "seconds": round(time.monotonic() - start, 3)})
    kept.next_run()
    return useful


def run_once(call: contract.Call, seed: Optional[int], taker: Callable[..., None]) -> None:
    """Set the seeds, run, and give every step that comes to `taker(step, values)`.

    Raises:
        Misuse: the function cannot be called so.
        BaseException: whatever the user's code raises.
    """
    if seed is not None:
        seeds.seed_all(seed)
    recording.listen(taker)
    try:
        result = call(seed)
        if contract.is_model(result):
            from envlock.guest.training import keras_fit

            keras_fit.train(*result, taker=taker)
        elif result is not None:
            for number, step in enumerate(contract.steps(result)):
                taker(number, step)
    finally:
        recording.listen(None)


def environment() -> Dict[str, Any]:
    """Return the versions of what computed."""
    versions = {"python": "{}.{}.{}".format(*sys.version_info[:3])}
    for name in PACKAGES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            versions[name] = version
    return versions


def _end_with_parent() -> None:
    """Let Linux end this process when envlock is killed: hours of training that nobody waits for are a nuisance."""
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):  # another system
        return
    prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL


def _leave() -> NoReturn:
    """End at once: what TensorFlow's threads and the script's own atexit functions do now is of no interest."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
