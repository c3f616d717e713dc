"""Record the values of the runs of a user's script or function, which is loaded once: what `envlock
repeat` compares.
"""

from __future__ import annotations

import os
import platform
import sys

from envlock.guest.training import contract, store
from envlock.guest.training.resumption import Resumption
from envlock.runtime import own_variables
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping


PACKAGES = ("tensorflow", "keras", "numpy", "jax", "torch")


class Values:
    """Writes the values of each run into its folder; `limit` is how many bytes of arrays to keep."""

    def __init__(self, asked: Mapping[str, Any], log: store.Log) -> None:
        """Load the program, so that what it does at its import is not a part of the first run.

        Raises:
            Misuse: there is no such program, or it cannot be imported.
        """
        self._log = log
        self._arrays = store.Store(asked["folder"], asked["limit"])
        self._at_start = dict(os.environ)
        self._resumption = Resumption()
        self._resumption.watch()
        self._program = contract.Program(asked)
        self._program.set_seeds()
        self._call = self._program.load()
        self._is_useful = False

    def run(self, number: int) -> Dict[str, object]:
        """Make a run, and return which variables it changed, and what it went on without.

        Raises:
            Misuse: the function cannot be called in this way.
            BaseException: any exception of the user's code.
        """
        recorder = store.Recorder(number, self._arrays, self._log)
        self._program.set_seeds()
        try:
            contract.perform(self._call, recorder.take)
        finally:
            self._arrays.end_run()
        if recorder.step >= 0:
            self._is_useful = True
        seen = {
            "changed": list_changed_variables(self._at_start),
            "lost": self._resumption.take(),
        }
        return {name: found for name, found in seen.items() if found}

    def can_go_on(self, number: int, *, has_failed: bool) -> bool:
        """Return whether another run can be compared, and begins as the first one did.

        Nothing can be compared where no run has recorded anything, and a run may take hours. One that
        has failed ends the series: the next would fail as well, or say less than why.
        """
        return self._is_useful and not has_failed and not list_changed_variables(self._at_start)

    def describe_runs(self) -> Iterator[Mapping[str, object]]:
        """Yield what computed."""
        yield {"environment": {**read_versions(), **read_machine()}}


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
