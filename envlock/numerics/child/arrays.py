"""A user's value as an array, and an array as bytes with a name that says what they are."""

from __future__ import annotations

import hashlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Tuple


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
        raise ValueError(f"`{name}` holds no numbers, but objects: {', '.join(kinds)}")
    return numpy.frombuffer(b"".join(len(item).to_bytes(8, "little") + item for item in each), dtype="V1")


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
