"""What a tensor holds, as a fingerprint of 64 bits of its bytes, and how its type and shape are
written.

Small tensors are hashed by BLAKE2. That would be most of what tracing costs for large ones, so they
have two CRC-32s: of their first and second half, which take a quarter of the time, and very large
ones of two sums: a fifth of that.
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
"""What a trace's header calls this fingerprint."""
HANDLES = (20, 21)
"""The numbers of the types resource and variant, which hold no value of their own."""
LARGE = 1 << 14
"""Bytes from which on a tensor is not hashed by BLAKE2."""
VERY_LARGE = 1 << 17
"""Bytes from which on the words of a tensor are summed first."""
STRIDES = (2039, 2029)
"""Primes: two words that change places leave both sums alike only 33 MB (or a multiple) apart."""
MOST_SPECS = 10_000
"""Specs that are kept at a time."""

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
    """Return the CRC-32 of the sum, modulo 2**64, of the rows of `stride` words, and of the bytes
    left over.
    """
    words = flat[: len(flat) // 8 * 8].view("u8")
    whole = len(words) // stride * stride
    total = words[:whole].reshape(-1, stride).sum(axis=0)
    total[: len(words) - whole] += words[whole:]
    return crc32(flat[len(words) * 8 :].tobytes(), crc32(total.view("u1").data))


def _hash_bytes(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def hash_tensor(tensor: Tensor) -> Fingerprint:
    """Return the fingerprint and the spec of an eager tensor.

    No fingerprint for a handle or what cannot be read.

    A tensor never changes, so its fingerprint is kept at the tensor itself.
    """
    known: Optional[Fingerprint] = getattr(tensor, "_envlock_print", None)
    if known is not None:
        return known
    try:
        if tensor._datatype_enum() in HANDLES:
            return None, tensor.dtype.name + "[]"
        array = tensor._numpy()
    except AttributeError:  # no eager tensor: a variable, which changes, or a value of Python's own
        return _hash_value(tensor)
    except Exception:  # TensorFlow's own errors: a device that is gone, a parallel tensor
        return None, tensor.dtype.name + "[*]"
    # TensorFlow gives the one string of a scalar as it is, not as an array.
    if isinstance(array, (bytes, str)):
        found = _hash_text(array, "string[]")
    else:
        found = _hash_any_array(array)
    tensor._envlock_print = found
    return found


def hash_element(tf: ModuleType, tensor: Tensor) -> Fingerprint:
    """Return the same of an element of a pipeline, where a variant holds a value: sparse and ragged
    rows.
    """
    found = hash_tensor(tensor)
    if found[0] is not None or tensor.dtype != tf.variant:
        return found
    try:
        words = tf.raw_ops.SerializeTensor(tensor=tensor).numpy()
    except Exception:  # what this TensorFlow cannot write down
        return found
    tensor._envlock_print = found = _hash_bytes(words), found[1]
    return found


def _hash_value(value: Tensor) -> Fingerprint:
    """Return the same of a value that is no eager tensor: a number, a list, an array, a composite
    tensor.
    """
    try:
        content = value
        if hasattr(value, "numpy"):
            content = value.numpy()
        array = import_numpy().asarray(content)
    except Exception:
        return None, type(value).__name__ + "[*]"
    return _hash_any_array(array)


def _hash_any_array(array: Array) -> Fingerprint:
    if array.dtype.hasobject:
        return _hash_text(array.tolist(), _get_spec(array))
    return hash_array(array), _get_spec(array)


def _hash_text(value: object, text_spec: str) -> Fingerprint:
    """Return the fingerprint of a text, or a list of objects, by its words.

    Names of a run's own are left out.
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
    name = array.dtype.name
    if array.dtype.hasobject:
        name = "string"
    _specs[key] = format_spec(name, array.shape)
    return _specs[key]
