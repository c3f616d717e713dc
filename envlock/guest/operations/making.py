"""The inputs of an operation that is computed again: integers of a counter, made into what its kernel accepts.

Neither a random generator nor a mathematical library has a part in them, as in the battery; no data of the program has.
"""

from __future__ import annotations

from envlock.guest import battery
from envlock.guest.operations.inventory import size
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

    Noted = Dict[str, Any]

LEAST, MOST = 1, 8  # of integers that are no index: no zero, as they may divide
SMALL = 2.0**-8  # what positive numbers are at least
_TABLE = table("replay")
_INDEX = {(kind, row["input"]): row for row in _TABLE["index"] for kind in row["operations"]}
_POSITIVE = frozenset(_TABLE["positive"])


def names(definition: Any, noted: Noted) -> List[str]:
    """Return the name of each input's argument."""
    found: List[str] = []
    for each in definition.input_arg:
        found += [each.name] * (noted["attributes"][each.number_attr] if each.number_attr else 1)
    return found


def arrays(np: Any, tf: Any, noted: Noted, arguments: List[str]) -> List[Any]:
    """Return the inputs as arrays, always the same."""
    by_name = dict(zip(arguments, noted["inputs"]))
    return [
        _array(np, tf, noted["type"], name, each, by_name, salt)
        for salt, (name, each) in enumerate(zip(arguments, noted["inputs"]), 1)
    ]


def bytes_of(noted: Noted) -> int:
    """Return how many bytes an input has."""
    count = 1
    for each in noted["shape"]:
        count *= each
    return count * size(noted["dtype"])


def all_bytes(inputs: List[Noted]) -> int:
    """Return how many bytes all inputs have."""
    return sum(map(bytes_of, inputs))


def _array(
    np: Any, tf: Any, kind: str, name: str, noted: Noted, by_name: Dict[str, Noted], salt: int
) -> Any:
    dtype, shape = tf.as_dtype(noted["dtype"]).as_numpy_dtype, tuple(noted["shape"])
    if "values" in noted:
        return np.array(noted["values"]).astype(dtype).reshape(shape)
    row = _INDEX.get((kind, name))
    count = bytes_of(noted) // size(noted["dtype"])
    numbers = battery.make_numbers(np, count, salt)
    if noted["dtype"] == "bool":
        made = numbers >= 0
    elif "int" in noted["dtype"]:
        least, below = (LEAST, MOST) if row is None else (0, _below(row, noted, by_name))
        whole = ((numbers + np.float32(1)) * np.float32(1 << 22)).astype(
            np.int64
        )  # 0 to 2**23 - 1, exactly
        made = least + whole % max(below - least, 1)
        if row is not None and row["sorted"]:
            made = np.sort(made)
    elif "complex" in noted["dtype"]:
        made = numbers + 1j * battery.make_numbers(np, count, salt + 100).astype(np.float64)
    elif kind in _POSITIVE or name in _POSITIVE:
        made = np.abs(numbers) + np.float32(SMALL)
    else:
        made = numbers
    return made.astype(dtype).reshape(shape)


def _below(row: Noted, noted: Noted, by_name: Dict[str, Noted]) -> int:
    """Return the limit of an index."""
    other = by_name[row["of"]]
    values: Optional[List[int]] = other.get("values")
    below = row["below"]
    if below == "value":
        return values[0] if values else 1
    if below == "axis":
        axis = by_name["axis"].get("values", [0])[0]
        return int(other["shape"][axis])
    if below == "least":
        sizes = other["shape"] if values is None else values
        deep = (
            noted["shape"][-1]
            if noted["shape"] and noted["shape"][-1] <= len(sizes)
            else len(sizes)
        )
        return int(min(sizes[:deep] or [1]))
    return int(other["shape"][below])
