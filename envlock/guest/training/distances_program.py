"""The distances of arrays, pair by pair, read in parts: memory does not grow with their size.

    main() reads from stdin {"folders": [...], "parts": BYTES, "jobs": [{"kind": "float32", "digests": [...]}]}
    and prints a line of JSON for each job, {"read": BYTES} now and then, {"failed": "numpy"} without
    NumPy, and {"failed": "damaged"} for arrays of different sizes

Of two values that are both NaN the distance is 0, of a NaN and a number it is infinite.
"""

from __future__ import annotations

import json
import os
import sys

try:
    import numpy as np
except ImportError:
    # `main` reports it: a traceback of this module would say less.
    np = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterator, List, Optional, TypedDict

    from numpy import dtype, float64, generic
    from numpy.typing import NDArray

    Array = NDArray[generic]
    Rows = List[List[float]]

    class Distances(TypedDict):
        sum: Rows
        max: Rows
        norm: Optional[Rows]

    class Job(TypedDict):
        kind: str
        digests: List[str]

    class Asked(TypedDict):
        folders: List[str]
        parts: int
        jobs: List[Job]


BLOCK = 1 << 17
"""Values (of all arrays together) that are compared at once: they fit into a processor's cache."""
LEAST_WIDTH = 256
"""Values of one array that are compared at once, however many arrays there are."""


class Reader:
    """How the values of a type are read: how they are stored, the type in which they are
    subtracted, and their epsilon.
    """

    __slots__ = ("epsilon", "stored", "wide")

    def __init__(self, stored: dtype[generic], wide: dtype[generic], epsilon: float) -> None:
        self.stored = stored
        self.wide = wide
        self.epsilon = epsilon
        """0 for integers."""


def main() -> None:
    """Do what stdin requests: the digests of many steps are too long for an argument."""
    asked: Asked = json.load(sys.stdin)
    if np is None:
        print(json.dumps({"failed": "numpy"}))
        return
    for job in asked["jobs"]:
        print(json.dumps(_answer(job, asked)), flush=True)


def _answer(job: Job, asked: Asked) -> Dict[str, object]:
    paths = []
    for digest in job["digests"]:
        path = _find_array(digest, asked["folders"])
        if path is not None:
            paths.append(path)
    if len(set(map(os.path.getsize, paths))) > 1:  # one is truncated
        return {"failed": "damaged"}
    if len(paths) < len(job["digests"]):
        return {"kept": False}
    return {"kept": True, "distances": compute_distances(job["kind"], paths, asked["parts"], _tell)}


def _tell(amount: int) -> None:
    print(json.dumps({"read": amount}), flush=True)


def _find_array(digest: str, folders: List[str]) -> Optional[str]:
    """Return the file of an array; None if it was not stored."""
    for folder in folders:
        path = os.path.join(folder, digest)
        if os.path.isfile(path):
            return path
    return None


def _ignore(amount: int) -> None:
    """Do not report how much was read."""


def compute_distances(
    kind: str, paths: List[str], parts: int, tell: Callable[[int], None] = _ignore
) -> Optional[Distances]:
    """Return the matrices of the arrays of one kind in files; None if its values are not numbers.

    sum: the sum of the absolute differences; max: the largest difference; norm: the largest, in
    units of the type's epsilon at the largest magnitude of both arrays (None for integers).
    """
    reader = _make_reader(kind)
    if reader is None:
        return None
    count = len(paths)
    total, largest = np.zeros((count, count)), np.zeros((count, count))
    magnitude = np.zeros(count)
    matrices: Distances
    with np.errstate(all="ignore"):
        for rows in _read_rows(paths, reader, parts, tell):
            finite = np.where(np.isfinite(rows), np.abs(rows), 0)
            magnitude = np.maximum(magnitude, np.max(finite, axis=1, initial=0))
            _add(rows, total, largest)
        matrices = {"sum": _mirror(total), "max": _mirror(largest), "norm": None}
        if reader.epsilon:
            scale = reader.epsilon * np.maximum(magnitude[:, None], magnitude[None, :])
            # If nothing differs the distance is 0, whatever the magnitude.
            norm = np.where(largest == 0, 0.0, largest / np.where(scale == 0, 1.0, scale))
            matrices["norm"] = _mirror(norm)
    return matrices


def _mirror(triangle: NDArray[float64]) -> Rows:
    """Return a full matrix from one in which only the upper triangle is filled."""
    rows: Rows = (triangle + triangle.T).tolist()
    return rows


def _make_reader(kind: str) -> Optional[Reader]:
    """Return the reader for a type of values; None if they are not numbers."""
    if kind == "bfloat16":  # it is the upper half of a float32
        return Reader(np.dtype("V2"), np.dtype("f8"), 2.0**-7)
    try:
        stored = np.dtype(kind)
    except TypeError:  # float8 and others, which numpy itself does not have
        return None
    wide: dtype[generic] = np.dtype("f8")
    if stored.kind == "c":
        return Reader(stored, np.dtype("c16"), float(np.finfo(stored).eps))
    if stored.kind == "f":
        if stored.itemsize > wide.itemsize:
            wide = stored
        return Reader(stored, wide, float(np.finfo(stored).eps))
    if stored.kind in "biu":
        # A float64 cannot represent every integer of eight bytes.
        if stored.itemsize >= wide.itemsize:
            wide = np.dtype(np.longdouble)
        return Reader(stored, wide, 0.0)
    return None


def _read_rows(
    paths: List[str], reader: Reader, parts: int, tell: Callable[[int], None]
) -> Iterator[Array]:
    """Yield the values of all arrays side by side, a row for each array, one block at a time."""
    item = reader.stored.itemsize
    size = os.path.getsize(paths[0]) // item
    part = max(1, min(size, parts // (len(paths) * item)))
    width = max(LEAST_WIDTH, BLOCK // len(paths))
    rows = np.empty((len(paths), width), reader.wide)
    for start in range(0, size, part):
        read = [np.fromfile(path, reader.stored, part, offset=start * item) for path in paths]
        length = len(read[0])
        for at in range(0, length, width):
            block = rows[:, : min(width, length - at)]
            for row, values in zip(block, read):
                row[:] = _decode(values[at : at + width])
            yield block
        tell(length * item * len(paths))


def _decode(values: Array) -> Array:
    """Return values in a type that numpy has: bfloat16, which it does not have, becomes float32."""
    if values.dtype.kind != "V":
        return values
    return (values.view("u2").astype("u4") << 16).view("f4")


def _add(rows: Array, total: NDArray[float64], largest: NDArray[float64]) -> None:
    """Add a block to the upper triangles of the sums, and to those of the largest differences."""
    finite = bool(np.isfinite(rows).all())
    for n in range(len(rows) - 1):
        apart = np.abs(rows[n + 1 :] - rows[n])
        if not finite:
            _fix_differences(apart, rows[n + 1 :], rows[n])
        total[n, n + 1 :] += apart.sum(axis=1)
        np.maximum(largest[n, n + 1 :], apart.max(axis=1, initial=0), out=largest[n, n + 1 :])


def _fix_differences(apart: NDArray[float64], rows: Array, row: Array) -> None:
    """Correct the differences of values that are not finite, for which subtraction does not give
    the distance.
    """
    alike = (rows == row) | (np.isnan(rows) & np.isnan(row))
    apart[alike] = 0.0
    apart[np.isnan(apart)] = np.inf
