"""The fingerprint of a tensor, 64 bits computed from its bytes, and the notation of its type and
shape.

Small tensors are hashed with BLAKE2. For large ones that would be most of the cost of tracing, so
two CRC-32s are used: of their first and second half, in a quarter of the time, and for very large
ones of two sums, in a fifth of that.
"""

from __future__ import annotations

from hashlib import blake2b
from zlib import crc32

from envlock.guest.late_numpy import import_numpy
from envlock.guest.tracing.temporary_names import MARK, replace_names
from envlock.guest.tracing.trace_writer import format_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Dict, Optional, Tuple

    from numpy import generic, uint8
    from numpy.typing import NDArray
    from tensorflow import Tensor

    Array = NDArray[generic]
    Fingerprint = Tuple[Optional[int], str]

NAME = "blake2b-64, crc32-2, sums-2039-2029"
"""The name of this fingerprint in a trace's header."""
HANDLES = (20, 21)
"""The numbers of the types resource and variant, which have no value of their own."""
LARGE = 1 << 14
"""Bytes from which on a tensor is not hashed with BLAKE2."""
VERY_LARGE = 1 << 17
"""Bytes from which on the words of a tensor are summed first."""
STRIDES = (2039, 2029)
"""Primes: two words that are swapped leave both sums unchanged only if they are 33 MB (or a
multiple) apart.
"""
MOST_SPECS = 10_000
"""Specs that are remembered."""

_specs: Dict[object, str] = {}


def hash_array(array: Array) -> int:
    """Return the fingerprint of a numpy array of numbers: of its bytes in C order."""
    if array.nbytes < LARGE:
        return _hash_bytes(array.tobytes())
    flat: NDArray[uint8] = array.ravel().view("u1")  # a copy only where it is not in C order
    if len(flat) >= VERY_LARGE:
        return _sum_and_hash(flat, STRIDES[0]) << 32 | _sum_and_hash(flat, STRIDES[1])
    half = len(flat) // 2
    return crc32(flat[:half].data) << 32 | crc32(flat[half:].data)


def _sum_and_hash(flat: NDArray[uint8], stride: int) -> int:
    """Return the CRC-32 of the sum, modulo 2**64, of the rows of `stride` words, and of the
    remaining bytes.
    """
    words = flat[: len(flat) // 8 * 8].view("u8")
    whole = len(words) // stride * stride
    total = words[:whole].reshape(-1, stride).sum(axis=0)
    total[: len(words) - whole] += words[whole:]
    return crc32(flat[len(words) * 8 :].tobytes(), crc32(total.view("u1").data))


def _hash_bytes(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def hash_tensor(tensor: Tensor) -> Fingerprint:
    """Return the fingerprint and the spec of an eager tensor; no fingerprint for a handle, or a
    value that cannot be read.

    A tensor never changes, so its fingerprint is stored on the tensor itself.
    """
    known: Optional[Fingerprint] = getattr(tensor, "_envlock_print", None)
    if known is not None:
        return known
    try:
        if tensor._datatype_enum() in HANDLES:
            return None, tensor.dtype.name + "[]"
        array = tensor._numpy()
    except AttributeError:  # not an eager tensor: a variable, which changes, or a value of Python
        return _hash_value(tensor)
    except Exception:  # TensorFlow's own errors: a device that no longer exists, a parallel tensor
        return None, tensor.dtype.name + "[*]"
    # TensorFlow returns the single string of a scalar itself, not an array.
    if isinstance(array, (bytes, str)):
        found = _hash_text(array, "string[]")
    else:
        found = _hash_any_array(array)
    tensor._envlock_print = found
    return found


def hash_element(tf: ModuleType, tensor: Tensor) -> Fingerprint:
    """Return the same for an element of a pipeline, in which a variant has a value: sparse and
    ragged rows.
    """
    found = hash_tensor(tensor)
    if found[0] is not None or tensor.dtype != tf.variant:
        return found
    try:
        words = tf.raw_ops.SerializeTensor(tensor=tensor).numpy()
    except Exception:  # a value that this TensorFlow cannot serialize
        return found
    tensor._envlock_print = found = _hash_bytes(words), found[1]
    return found


def _hash_value(value: Tensor) -> Fingerprint:
    """Return the same for a value that is not an eager tensor: a number, a list, an array, a
    composite tensor.
    """
    try:
        content = value.numpy() if hasattr(value, "numpy") else value
        array = import_numpy().asarray(content)
    except Exception:
        return None, type(value).__name__ + "[*]"
    return _hash_any_array(array)


def _hash_any_array(array: Array) -> Fingerprint:
    if array.dtype.hasobject:
        return _hash_text(array.tolist(), _get_spec(array))
    return hash_array(array), _get_spec(array)


def _hash_text(value: object, text_spec: str) -> Fingerprint:
    """Return the fingerprint of a text, or of a list of objects through its words; names that
    differ in every run are left out.
    """
    words = repr(value).encode("utf-8", "surrogatepass")
    steady = replace_names(words)
    if steady is not words:
        text_spec += MARK
    return _hash_bytes(steady), text_spec


def _get_spec(array: Array) -> str:
    key = (array.dtype, array.shape)
    known = _specs.get(key)
    if known is not None:
        return known
    if len(_specs) > MOST_SPECS:
        _specs.clear()
    name = "string" if array.dtype.hasobject else array.dtype.name
    _specs[key] = format_spec(name, array.shape)
    return _specs[key]
