"""The results of the runs on the disk: every array once, under its digest, and a log of the values
of each run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys

from envlock.guest.late_numpy import import_numpy
from envlock.guest.training.contract import flatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Dict, List, Mapping, Optional, Set, Tuple

    from numpy import generic
    from numpy.typing import NDArray

    Array = NDArray[generic]

LOG = "runs.jsonl"
ARRAYS = "arrays"


class Store:
    """A folder with arrays, each under its digest.

    Up to `limit` bytes all arrays are stored. After that, only digests are stored, and the arrays
    of each run's last step.
    """

    def __init__(self, folder: str, limit: int) -> None:
        self.folder = os.path.join(folder, ARRAYS)
        os.makedirs(self.folder, exist_ok=True)
        self.left = limit
        for entry in os.scandir(self.folder):
            self.left -= entry.stat().st_size
        self.passing: List[str] = []

    def keep(self, array: Array, digest: str) -> None:
        """Write an array unless it is stored already."""
        path = os.path.join(self.folder, digest)
        if os.path.exists(path):
            return
        if array.nbytes > self.left:
            self.passing.append(path)
        else:
            self.left -= array.nbytes
        # Renamed when it is complete: a run can be killed while it writes.
        part = f"{path}.{os.getpid()}"
        with open(part, "wb") as file:
            file.write(get_bytes(array))
        os.rename(part, path)

    def start_step(self) -> None:
        """Remove the arrays that were stored only until the next step."""
        for path in self.passing:
            os.unlink(path)
        self.passing = []

    def end_run(self) -> None:
        """Keep the arrays of the last step of a run that has ended."""
        self.passing = []


class Log:
    """The log, written a line at a time."""

    def __init__(self, folder: str) -> None:
        path = os.path.join(folder, LOG)
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, line: Mapping[str, object]) -> None:
        """Append one line."""
        data = (json.dumps(line, default=_decode) + "\n").encode("ascii")
        # A signal can interrupt a write; a full disk raises.
        while data:
            data = data[os.write(self.file, data) :]


def _decode(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value)


class Recorder:
    """Receives the values of one run, and writes them."""

    def __init__(self, run: int, store: Store, log: Log) -> None:
        self.run = run
        self.store = store
        self.log = log
        self.step = -1
        self.names: Dict[int, Set[str]] = {}
        """The quantities of each step."""

    def take(self, step: Optional[int], values: Mapping[str, object]) -> None:
        """Write the values of a step; see `envlock.record`."""
        quantities = flatten(values)
        number = self._find_step(step, set(quantities))
        repeated = self.names.get(number, set()) & set(quantities)
        if repeated:
            raise ValueError(f"`{min(repeated)}` was already recorded at step {number}")
        if number != self.step:
            self.store.start_step()
        line: Dict[str, object] = {}
        for name, value in quantities.items():
            array = make_array(value, name)
            kind, shape, sha256 = compute_digest(array)
            self.store.keep(array, sha256)
            line[name] = [kind, shape, sha256]
        self.step = number
        self.names.setdefault(number, set()).update(quantities)
        self.log.write({"run": self.run, "step": number, "values": line})

    def _find_step(self, step: Optional[int], names: Set[str]) -> int:
        """Return the number of the step: if not given, that of the last step, until a name is
        repeated.
        """
        if step is not None:
            number = int(step)
            if number < 0:
                raise ValueError(f"step {number} is below 0")
            return number
        last = max(self.step, 0)
        if names & self.names.get(last, set()):
            return last + 1
        return last


def make_array(value: object, name: str) -> Array:
    """Return the numbers of a value as a numpy array in C order and this machine's byte order.

    Raises:
        ValueError: it has no numbers, or they cannot be read.
    """
    numpy = import_numpy()
    try:
        if hasattr(value, "detach"):  # torch, whose tensors with a gradient refuse numpy()
            value = value.detach().cpu()
        reader = getattr(value, "numpy", None)
        if callable(reader):
            value = reader()
        array: Array = numpy.asarray(value, order="C")
    except Exception as error:
        reason = str(error).strip().partition("\n")[0][:200]
        raise ValueError(f"`{name}` cannot be read: {type(error).__name__}: {reason}") from None
    if array.dtype.hasobject:
        return _join_strings(numpy, array, name)
    if array.dtype.isnative:
        return array
    return array.astype(array.dtype.newbyteorder("="))


def _join_strings(numpy: ModuleType, array: Array, name: str) -> Array:
    """Return TensorFlow's strings, which are objects, as one array of their lengths and bytes."""
    items = []
    for item in array.reshape(-1).tolist():
        if isinstance(item, str):
            item = item.encode()
        items.append(item)
    if not all(isinstance(item, bytes) for item in items):
        kinds = sorted({type(item).__name__ for item in items})
        raise ValueError(f"`{name}` holds objects, not numbers: {', '.join(kinds)}")
    joined = b"".join(len(item).to_bytes(8, "little") + item for item in items)
    strings: Array = numpy.frombuffer(joined, dtype="V1")
    return strings


def get_bytes(array: Array) -> memoryview:
    """Return the bytes of an array in C order, without a copy."""
    if not array.size:
        return memoryview(b"")
    return array.reshape(-1).view("u1").data


def compute_digest(array: Array) -> Tuple[str, Tuple[int, ...], str]:
    """Return type, shape, and the SHA-256 of these and the bytes: equal if every bit is equal."""
    kind, shape = str(array.dtype.name), tuple(array.shape)
    header = f"{kind} {','.join(map(str, shape))} {sys.byteorder}\n"
    sha256 = hashlib.sha256(header.encode("ascii"))
    sha256.update(get_bytes(array))
    return kind, shape, sha256.hexdigest()
