"""The inputs of an operation that is computed again: integers from a counter, converted to what its
kernel accepts.

They depend neither on a random number generator nor on a mathematical library, as in the battery,
nor on data of the program.
"""

from __future__ import annotations

from envlock.guest import battery
from envlock.guest.operations.inventory import count_bytes, count_values
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Dict, List, Optional, TypedDict, Union

    from numpy import generic
    from numpy.typing import NDArray
    from tensorflow.core.framework.op_def_pb2 import OpDef

    from envlock.guest.operations.inventory import Input, Operation

    Array = NDArray[generic]

    class Index(TypedDict):
        of: str
        below: Union[int, str]
        sorted: bool


LEAST, MOST = 1, 8
"""The limits of integers that are not an index: without zero, because a kernel may divide by them."""
SMALL = 2.0**-8
"""The smallest of numbers that must be positive."""
_TABLE = table("replay")
_POSITIVE = frozenset(_TABLE["positive"])
_INDEX: Dict[object, Index] = {}
"""The limits of an index, by operation and name of the input."""
for _row in _TABLE["index"]:
    _INDEX.update(((_kind, _row["input"]), _row) for _kind in _row["operations"])


def list_arguments(definition: OpDef, operation: Operation) -> List[str]:
    """Return the name of each input's argument."""
    names: List[str] = []
    for argument in definition.input_arg:
        number_attr = argument.number_attr
        count = int(operation["attributes"][number_attr]) if number_attr else 1  # type: ignore[arg-type]
        names += [argument.name] * count
    return names


def count_all_bytes(inputs: List[Input]) -> int:
    """Return the number of bytes of all inputs."""
    return sum(map(count_bytes, inputs))


def make_arrays(
    np: ModuleType, tf: ModuleType, operation: Operation, arguments: List[str]
) -> List[Array]:
    """Return the inputs as arrays, which are always the same."""
    by_name = dict(zip(arguments, operation["inputs"]))
    arrays = []
    for number, (name, described) in enumerate(zip(arguments, operation["inputs"]), 1):
        row = _INDEX.get((operation["type"], name))
        is_positive = operation["type"] in _POSITIVE or name in _POSITIVE
        if "values" in described:
            array = np.array(described["values"])
        elif "int" in described["dtype"]:
            array = _make_integers(np, described, number, row, by_name)
        else:
            array = _make_numbers(np, described, number, is_positive=is_positive)
        dtype = tf.as_dtype(described["dtype"]).as_numpy_dtype
        arrays.append(array.astype(dtype).reshape(tuple(described["shape"])))
    return arrays


def _make_numbers(np: ModuleType, described: Input, salt: int, *, is_positive: bool) -> Array:
    count = count_values(described["shape"])
    numbers = battery.make_numbers(np, count, salt)
    made: Array = numbers
    if described["dtype"] == "bool":
        made = numbers >= 0
    elif "complex" in described["dtype"]:
        # Another salt, so that the parts are not copies of each other or of another input.
        made = numbers + 1j * battery.make_numbers(np, count, salt + 100).astype(np.float64)
    elif is_positive:
        made = np.abs(numbers) + np.float32(SMALL)
    return made


def _make_integers(
    np: ModuleType, described: Input, salt: int, row: Optional[Index], by_name: Dict[str, Input]
) -> Array:
    least, below = (LEAST, MOST) if row is None else (0, _find_limit(row, described, by_name))
    numbers = battery.make_numbers(np, count_values(described["shape"]), salt)
    # 0 to 2**23 - 1, exactly: the numbers are multiples of 2**-23 from -1 on.
    whole = ((numbers + np.float32(1)) * np.float32(1 << 22)).astype(np.int64)
    made: Array = least + whole % max(below - least, 1)
    return np.sort(made) if row is not None and row["sorted"] else made


def _find_limit(row: Index, described: Input, by_name: Dict[str, Input]) -> int:
    """Return the number below which an index must be; replay.toml explains the words of `below`."""
    other = by_name[row["of"]]
    values = other.get("values")
    below = row["below"]
    if below == "value":
        if not values:
            return 1
        return int(values[0])
    if below == "axis":
        axis = by_name["axis"].get("values", [0])[0]
        return other["shape"][int(axis)]
    if below == "least":
        sizes = [int(value) for value in values] if values is not None else other["shape"]
        # The last dimension of the index says how many dimensions it points into.
        depth = len(sizes)
        if described["shape"] and described["shape"][-1] <= len(sizes):
            depth = described["shape"][-1]
        return min(sizes[:depth] or [1])
    return other["shape"][int(below)]
