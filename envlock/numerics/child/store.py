"""What the runs compute, on the disk: every array once, under its digest, and a log of which run had which.

The log, `runs.jsonl`, has one JSON value a line, each written whole, so that what a process computed before it died
can be read:

    {"run": 0, "step": 3, "values": {"loss": ["float32", [], DIGEST]}}
    {"run": 0, "end": "finished", "seconds": 1.25}          or "failed" with a message
    {"environment": {"python": "3.11.7", "tensorflow": "2.21.0"}}
    {"unusable": MESSAGE}                                    the script or function cannot be run at all
"""

from __future__ import annotations

import json
import os

from envlock.numerics.child import arrays
from envlock.numerics.child.contract import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Set

LOG = "runs.jsonl"
ARRAYS = "arrays"


class Store:
    """A folder with arrays, each under its digest.

    Up to `limit` bytes all are kept. Of what comes then only the digests are, and the arrays of each run's last step.
    """

    def __init__(self, folder: str, limit: int) -> None:
        self.folder = os.path.join(folder, ARRAYS)
        os.makedirs(self.folder, exist_ok=True)
        self.left = limit - sum(entry.stat().st_size for entry in os.scandir(self.folder))
        self.passing: List[str] = []

    def keep(self, array: Any, digest: str) -> None:
        """Write an array, unless it is there."""
        path = os.path.join(self.folder, digest)
        if os.path.exists(path):
            return
        if array.nbytes > self.left:
            self.passing.append(path)
        else:
            self.left -= array.nbytes
        part = f"{path}.{os.getpid()}"
        with open(part, "wb") as file:
            file.write(arrays.raw(array))
        os.rename(part, path)

    def next_step(self) -> None:
        """Forget the arrays that are kept only as long as no later step has come."""
        for path in self.passing:
            os.unlink(path)
        self.passing = []

    def next_run(self) -> None:
        """Keep what the run that is over had at its last step."""
        self.passing = []


class Log:
    """The log, written a line at a time."""

    def __init__(self, folder: str) -> None:
        self.file = os.open(os.path.join(folder, LOG), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, line: Mapping[str, Any]) -> None:
        """Append one line."""
        data = (json.dumps(line) + "\n").encode("ascii")
        while data:  # a full disk raises, and a signal cuts it short
            data = data[os.write(self.file, data) :]


class Recorder:
    """Takes what one run shows, and writes it down."""

    def __init__(self, run: int, store: Store, log: Log) -> None:
        self.run = run
        self.store = store
        self.log = log
        self.step = -1
        self.seen: Dict[int, Set[str]] = {}

    def take(self, step: Optional[int], values: Mapping[str, Any]) -> None:
        """Write down the values of a step; see `envlock.record`."""
        quantities = named(values)
        at = self._step(step, set(quantities))
        again = self.seen.get(at, set()) & set(quantities)
        if again:
            raise ValueError(f"`{min(again)}` was recorded at step {at} before")
        if at != self.step:
            self.store.next_step()
        line: Dict[str, Any] = {}
        for name, value in quantities.items():
            array = arrays.as_array(value, name)
            kind, shape, digest = arrays.digest(array)
            self.store.keep(array, digest)
            line[name] = [kind, shape, digest]
        self.step = at
        self.seen.setdefault(at, set()).update(quantities)
        self.log.write({"run": self.run, "step": at, "values": line})

    def _step(self, step: Optional[int], names: Set[str]) -> int:
        """Return the step that is meant: without a number the last one, until a name comes again."""
        if step is not None:
            number = int(step)
            if number < 0:
                raise ValueError(f"step {number} is below 0")
            return number
        last = max(self.step, 0)
        return last + 1 if names & self.seen.get(last, set()) else last
