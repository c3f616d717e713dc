"""Run a user's script or function several times and record its results: a program for the user's
interpreter.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import traceback

from envlock.guest.training import contract, seed_setting, store
from envlock.guest.training.failures import describe_failure, format_traceback
from envlock.guest.training.resumption import Resumption
from envlock.runtime import own_variables, recording
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, List, Mapping, NoReturn, Optional, TypedDict

    class Asked(TypedDict):
        folder: str
        script: str
        module: bool
        function: Optional[str]
        args: List[str]
        runs: List[int]
        seed: Optional[int]
        limit: int


RESUMPTION = Resumption()
"""Of this process."""
PACKAGES = ("tensorflow", "keras", "numpy", "jax", "torch")


def main() -> None:
    """Do what the JSON in `sys.argv[1]` requests.

    folder: where to write; script, module, function, args: what to run; runs: the numbers of the
    runs; seed: a number or null; limit: how many bytes of arrays to keep.
    """
    asked: Asked = json.loads(sys.argv.pop(1))
    log = store.Log(asked["folder"])
    arrays = store.Store(asked["folder"], asked["limit"])
    at_start = dict(os.environ)
    RESUMPTION.watch()
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
        if _run(call, asked["seed"], recorder, at_start):
            is_useful = True
        arrays.end_run()
        # Nothing can be compared where the first run has recorded nothing, and a run may take hours.
        if not is_useful or list_changed_variables(at_start):
            break
    log.write({"environment": {**read_versions(), **read_machine()}})
    _leave()


def list_changed_variables(at_start: Mapping[str, str]) -> List[str]:
    """Return the variables of determinism that a program has changed which asks envlock to verify.

    A library that sets one as it is imported does so for the rest of the process: the next run
    would find it set on its first line, and be refused for what the first run was allowed.
    """
    if not _has_verified():
        return []
    ours = {*own_variables.settled, *own_variables.get_additions(os.environ)}
    names = [row["name"] for row in table("environ") if row["name"] not in ours]
    return [name for name in names if os.environ.get(name) != at_start.get(name)]


def _has_verified() -> bool:
    # A program that does not ask has not loaded them.
    assertion = sys.modules.get("envlock.runtime.assertion")
    activation = sys.modules.get("envlock.runtime.activation")
    return bool(
        (assertion is not None and assertion.has_matched())
        or (activation is not None and activation.is_active())
    )


def _run(
    call: contract.Call,
    seed: Optional[int],
    recorder: store.Recorder,
    at_start: Mapping[str, str],
) -> bool:
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
        traceback.print_exc()  # into the log of the script's output
        failure = {
            "run": recorder.run,
            "end": "failed",
            "message": describe_failure(error),
            "traceback": format_traceback(error),
        }
        recorder.log.write(failure)
        return True
    seconds = round(time.monotonic() - start, 3)
    line: Dict[str, object] = {"run": recorder.run, "end": "finished", "seconds": seconds}
    changed = list_changed_variables(at_start)
    if changed:
        line["changed"] = changed
    lost = RESUMPTION.take()
    if lost:
        line["lost"] = lost
    recorder.log.write(line)
    return recorder.step >= 0


def run_once(call: contract.Call, seed: Optional[int], taker: Callable[..., None]) -> None:
    """Set the seeds, run, and pass every step to `taker(step, values)`.

    Raises:
        Misuse: the function cannot be called in this way.
        BaseException: any exception of the user's code.
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


def read_machine() -> Dict[str, str]:
    """Return what computed beside the versions: processor, threads, and devices that are no processor."""
    found = {"processor": _read_processor(), "processors": str(len(os.sched_getaffinity(0)))}
    tensorflow = sys.modules.get("tensorflow")
    config = getattr(tensorflow, "config", None)
    if config is not None and hasattr(config, "threading"):
        threading = config.threading
        for kind in ("intra", "inter"):
            threads = getattr(threading, f"get_{kind}_op_parallelism_threads")()
            # TensorFlow has 0 where it decides itself.
            found[f"{kind}-op threads"] = str(threads or "as TensorFlow chooses")
        devices = config.list_physical_devices()
        others = [device.name for device in devices if device.device_type != "CPU"]
        if others:
            found["devices"] = ", ".join(others)
    threads = os.environ.get("OMP_NUM_THREADS")
    if threads:
        found["OMP_NUM_THREADS"] = threads
    return found


def _read_processor() -> str:
    """Return the model of the processor, as Linux calls it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def read_versions() -> Dict[str, str]:
    """Return the versions of Python and of the packages that computed."""
    versions = {"python": "{}.{}.{}".format(*sys.version_info[:3])}
    for name in PACKAGES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            versions[name] = version
    return versions


def _leave() -> NoReturn:
    """Exit at once, without TensorFlow's threads and the script's own atexit functions."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
