"""How far arrays are from each other, pair by pair, read in parts: memory does not grow with their size.

    main(): asked for {"folders": [...], "parts": BYTES, "jobs": [{"kind": "float32", "digests": [...]}]}
            prints a line of JSON for each job, and {"read": BYTES} now and then; {"failed": "numpy"} where that is
            not, and {"failed": "damaged"} for arrays that are not of one size

Of two values that are both NaN the distance is 0, of a NaN and a number it is infinite.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

BLOCK = 1 << 17
"""Values (of all arrays together) that are compared at once: they fit into a processor's cache."""


def main() -> None:
    """Answer what is asked for in `sys.argv[1]`."""
    asked = json.loads(sys.argv.pop(1))
    try:
        import numpy  # noqa: F401
    except ImportError:
        print(json.dumps({"failed": "numpy"}))
        return
    for job in asked["jobs"]:
        found = [_path(digest, asked["folders"]) for digest in job["digests"]]
        paths = [path for path in found if path is not None]
        answer: Dict[str, Any] = {"kept": len(paths) == len(found)}
        if len({os.path.getsize(path) for path in paths}) > 1:  # one that is cut off
            answer = {"failed": "damaged"}
        elif answer["kept"]:
            answer["distances"] = distances(job["kind"], paths, asked["parts"], _tell)
        print(json.dumps(answer), flush=True)


def _tell(amount: int) -> None:
    print(json.dumps({"read": amount}), flush=True)


def _path(digest: str, folders: List[str]) -> Optional[str]:
    """Return the file of an array; None where it was not kept."""
    places = [os.path.join(folder, digest) for folder in folders]
    return next((place for place in places if os.path.isfile(place)), None)


def distances(
    kind: str, paths: List[str], parts: int, tell: Callable[[int], None] = lambda _: None
) -> Optional[Dict[str, Any]]:
    """Return the matrices of the arrays of one kind in files; None where its values are no numbers.

    sum: of the absolute differences; max: the largest; norm: the largest, in units of the kind's epsilon at the
    largest magnitude of both arrays (None for whole numbers).
    """
    import numpy as np

    reader = _reader(kind)
    if reader is None:
        return None
    stored, wide, epsilon = reader
    number = len(paths)
    total, largest = np.zeros((number, number)), np.zeros((number, number))
    magnitude = np.zeros(number)
    with np.errstate(all="ignore"):
        for rows in _rows(paths, stored, wide, parts, tell):
            magnitude = np.maximum(
                magnitude, np.max(np.where(np.isfinite(rows), np.abs(rows), 0), axis=1, initial=0)
            )
            _add(rows, total, largest)
        scale = epsilon * np.maximum(magnitude[:, None], magnitude[None, :]) if epsilon else None
        norm = (
            None
            if scale is None
            else np.where(largest == 0, 0.0, largest / np.where(scale == 0, 1.0, scale))
        )
    found = {"sum": total, "max": largest, "norm": norm}
    return {
        name: None if matrix is None else (matrix + matrix.T).tolist()
        for name, matrix in found.items()
    }


def _reader(kind: str) -> Optional[Tuple[Any, Any, float]]:
    """Return how values of a kind are stored, in what they are subtracted, and their epsilon; None: no numbers."""
    import numpy as np

    if kind == "bfloat16":  # which is the upper half of a float32
        return np.dtype("V2"), np.dtype("f8"), 2.0**-7
    try:
        stored = np.dtype(kind)
    except TypeError:  # float8 and others, which are not numpy's own
        return None
    if stored.kind == "c":
        return stored, np.dtype("c16"), float(np.finfo(stored).eps)
    if stored.kind == "f":
        wide = np.dtype("f8") if stored.itemsize <= 8 else stored
        return stored, wide, float(np.finfo(stored).eps)
    if stored.kind in "biu":
        return stored, np.dtype("f8") if stored.itemsize < 8 else np.dtype(np.longdouble), 0.0
    return None


def _rows(
    paths: List[str], stored: Any, wide: Any, parts: int, tell: Callable[[int], None]
) -> Iterator[Any]:
    """Yield the values of all arrays side by side, a row an array, a block at a time."""
    import numpy as np

    size = os.path.getsize(paths[0]) // stored.itemsize
    part = max(1, min(size, parts // (len(paths) * stored.itemsize)))
    width = max(256, BLOCK // len(paths))
    rows = np.empty((len(paths), width), wide)
    for start in range(0, size, part):
        read = [np.fromfile(path, stored, part, offset=start * stored.itemsize) for path in paths]
        length = len(read[0])
        for at in range(0, length, width):
            block = rows[:, : min(width, length - at)]
            for row, values in zip(block, read):
                row[:] = _numbers(values[at : at + width])
            yield block
        tell(length * stored.itemsize * len(paths))


def _numbers(values: Any) -> Any:
    """Return values as numpy knows them: a bfloat16, which it does not, as a float32."""
    if values.dtype.kind != "V":
        return values
    return (values.view("u2").astype("u4") << 16).view("f4")


def _add(rows: Any, total: Any, largest: Any) -> None:
    """Add a block to the upper triangles of the sums, and to those of the largest differences."""
    import numpy as np

    finite = bool(np.isfinite(rows).all())
    for n in range(len(rows) - 1):
        apart = np.abs(rows[n + 1 :] - rows[n])
        if not finite:
            _judge(apart, rows[n + 1 :], rows[n])
        total[n, n + 1 :] += apart.sum(axis=1)
        np.maximum(largest[n, n + 1 :], apart.max(axis=1, initial=0), out=largest[n, n + 1 :])


def _judge(apart: Any, rows: Any, row: Any) -> None:
    """Put right what subtraction says of values that are not finite."""
    import numpy as np

    alike = (rows == row) | (np.isnan(rows) & np.isnan(row))
    apart[alike] = 0.0
    apart[np.isnan(apart)] = np.inf
