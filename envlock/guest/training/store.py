"""What the runs compute, on the disk: every array once, under its digest, and a log of which run had which."""

from __future__ import annotations

import hashlib
import json
import os
import sys

from envlock.guest.training.contract import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

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
            file.write(raw(array))
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
        self.file = os.open(
            os.path.join(folder, LOG), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644
        )

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
            raise ValueError(f"`{min(again)}` was already recorded at step {at}")
        if at != self.step:
            self.store.next_step()
        line: Dict[str, Any] = {}
        for name, value in quantities.items():
            array = as_array(value, name)
            kind, shape, sha256 = digest(array)
            self.store.keep(array, sha256)
            line[name] = [kind, shape, sha256]
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


def as_array(value: Any, name: str) -> Any:
    """Return the numbers of a value as a numpy array in C order and this machine's byte order.

    Raises:
        ValueError: there are none in it, or they cannot be read.
    """
    import numpy

    try:
        if hasattr(value, "detach"):  # torch, where a tensor with a gradient refuses numpy()
            value = value.detach().cpu()
        reader = getattr(value, "numpy", None)
        array = numpy.asarray(reader() if callable(reader) else value, order="C")
    except Exception as error:
        reason = str(error).strip().partition("\n")[0][:200]
        raise ValueError(f"`{name}` cannot be read: {type(error).__name__}: {reason}") from None
    if array.dtype.hasobject:
        return _of_strings(array, name)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _of_strings(array: Any, name: str) -> Any:
    """Return the strings of TensorFlow, which come as objects, as one array of their lengths and bytes."""
    import numpy

    each = [item.encode() if isinstance(item, str) else item for item in array.reshape(-1).tolist()]
    if not all(isinstance(item, bytes) for item in each):
        kinds = sorted({type(item).__name__ for item in each})
        raise ValueError(f"`{name}` holds objects, not numbers: {', '.join(kinds)}")
    return numpy.frombuffer(
        b"".join(len(item).to_bytes(8, "little") + item for item in each), dtype="V1"
    )


def raw(array: Any) -> memoryview:
    """Return the bytes of an array in C order, without a copy."""
    return memoryview(array.reshape(-1).view("u1")) if array.size else memoryview(b"")


def digest(array: Any) -> Tuple[str, Tuple[int, ...], str]:
    """Return kind, shape, and the SHA-256 over both and the bytes: equal where every bit is."""
    kind, shape = str(array.dtype.name), tuple(array.shape)
    header = f"{kind} {','.join(map(str, shape))} {sys.byteorder}\n"
    found = hashlib.sha256(header.encode("ascii"))
    found.update(raw(array))
    return kind, shape, found.hexdigest()
