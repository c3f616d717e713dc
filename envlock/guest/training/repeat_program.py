"""Run a user's script or function several times and write down what it computes: a program for his
interpreter.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback

from envlock.guest.training import contract, seed_setting, store
from envlock.guest.training.failures import describe_failure, format_traceback
from envlock.runtime import recording

try:
    import ctypes
except ImportError:  # a Python that was built without it
    ctypes = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, List, NoReturn, Optional, TypedDict

    class Asked(TypedDict):
        folder: str
        script: str
        module: bool
        function: Optional[str]
        args: List[str]
        runs: List[int]
        seed: Optional[int]
        limit: int


PACKAGES = ("tensorflow", "keras", "numpy", "jax", "torch")


def main() -> None:
    """Do what the JSON in `sys.argv[1]` asks for.

    folder: where to write; script, module, function, args: what to run; runs: the numbers of the
    runs; seed: a number or null; limit: how many bytes of arrays to keep.
    """
    asked: Asked = json.loads(sys.argv.pop(1))
    _end_with_parent()
    log = store.Log(asked["folder"])
    arrays = store.Store(asked["folder"], asked["limit"])
    try:
        if asked["seed"] is not None:
            seed_setting.set_all_seeds(asked["seed"])
        call = contract.load(
            asked["script"], asked["function"], asked["args"], module=asked["module"]
        )
    except contract.Misuse as error:
        log.write({"unusable": str(error)})
        _leave()
    is_useful = False
    for number in asked["runs"]:
        recorder = store.Recorder(number, arrays, log)
        if _run(call, asked["seed"], recorder):
            is_useful = True
        arrays.end_run()
        # Nothing can be compared where the first run has recorded nothing, and a run may take hours.
        if not is_useful:
            break
    log.write({"environment": read_versions()})
    _leave()


def _run(call: contract.Call, seed: Optional[int], recorder: store.Recorder) -> bool:
    """Run once, and write down how it ended; return whether there is a point in going on: it
    recorded, or failed.
    """
    start = time.monotonic()
    try:
        run_once(call, seed, recorder.take)
    except contract.Misuse as error:
        recorder.log.write({"unusable": str(error)})
        _leave()
    except BaseException as error:
        traceback.print_exc()  # into the log of what the script said
        failure = {
            "run": recorder.run,
            "end": "failed",
            "message": describe_failure(error),
            "traceback": format_traceback(error),
        }
        recorder.log.write(failure)
        return True
    seconds = round(time.monotonic() - start, 3)
    recorder.log.write({"run": recorder.run, "end": "finished", "seconds": seconds})
    return recorder.step >= 0


def run_once(call: contract.Call, seed: Optional[int], taker: Callable[..., None]) -> None:
    """Set the seeds, run, and give every step that comes to `taker(step, values)`.

    Raises:
        Misuse: the function cannot be called so.
        BaseException: whatever the user's code raises.
    """
    if seed is not None:
        seed_setting.set_all_seeds(seed)
    recording.listen(taker)
    try:
        result = call(seed)
        if contract.is_model(result):
            contract.train_model(result, taker)
        elif result is not None:
            for number, step in enumerate(contract.iterate_steps(result)):
                taker(number, step)
    finally:
        recording.listen(None)


def read_versions() -> Dict[str, str]:
    """Return the versions of Python and of the packages that computed."""
    versions = {"python": "{}.{}.{}".format(*sys.version_info[:3])}
    for name in PACKAGES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            versions[name] = version
    return versions


def _end_with_parent() -> None:
    """Let Linux end this process when envlock is killed: nobody waits for its hours of training
    then.
    """
    if ctypes is None:
        return
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):  # another system
        return
    prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL


def _leave() -> NoReturn:
    """End at once: what TensorFlow's threads and the script's own atexit functions do now is of no
    interest.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
