"""What a tensor holds, as a fingerprint of 64 bits of its bytes, and how its type and shape are written.

Small ones are hashed by BLAKE2. That would be most of what tracing costs for large ones, so they have two CRC-32s: of
their first and second half, which take a quarter of the time, and very large ones of two sums: a fifth of that.
"""

from __future__ import annotations

from hashlib import blake2b
from zlib import crc32

from envlock.guest.tracing import names
from envlock.guest.tracing.trace_writer import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Tuple

    Print = Tuple[Optional[int], str]

NAME = "blake2b-64, crc32-2, sums-2039-2029"
"""What a trace's header calls this fingerprint."""
HANDLES = (20, 21)
"""The numbers of the types resource and variant, which hold no value of their own."""
LARGE = 1 << 14  # bytes
VERY_LARGE = 1 << 17  # bytes
STRIDES = (2039, 2029)
"""Primes: two words that change places leave both sums alike only 33 MB (or a multiple) apart."""

_specs: Dict[Any, str] = {}


def of_array(array: Any) -> int:
    """Return the fingerprint of a numpy array of numbers: of its bytes in C order."""
    if array.nbytes < LARGE:
        data: Any = array.tobytes()
    else:
        flat = array.ravel().view("u1")  # a copy only where it is not in C order
        if len(flat) >= VERY_LARGE:
            return _sum(flat, STRIDES[0]) << 32 | _sum(flat, STRIDES[1])
        half = len(flat) // 2
        return crc32(flat[:half].data) << 32 | crc32(flat[half:].data)
    return _digest(data)


def _sum(flat: Any, stride: int) -> int:
    """Return the CRC-32 of the sum, modulo 2**64, of the rows of `stride` words, and of the bytes left over."""
    words = flat[: len(flat) // 8 * 8].view("u8")
    whole = len(words) // stride * stride
    total = words[:whole].reshape(-1, stride).sum(axis=0)
    total[: len(words) - whole] += words[whole:]
    return crc32(flat[len(words) * 8 :].tobytes(), crc32(total.view("u1").data))


def _digest(data: Any) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def of_tensor(tensor: Any) -> Print:
    """Return the fingerprint and the spec of an eager tensor; no fingerprint for a handle or what cannot be read.

    A tensor never changes, so what is found is kept at the tensor itself.
    """
    known = getattr(tensor, "_envlock_print", None)
    if known is not None:
        return known  # type: ignore[no-any-return]
    try:
        if tensor._datatype_enum() in HANDLES:
            return None, tensor.dtype.name + "[]"
        array = tensor._numpy()
    except AttributeError:  # no eager tensor: a variable, which changes, or a value of Python's own
        return _converted(tensor)
    except Exception:  # TensorFlow's own errors: a device that is gone, a parallel tensor
        return None, tensor.dtype.name + "[*]"
    found = _of_text(array, "string[]") if isinstance(array, (bytes, str)) else _of_array(array)
    tensor._envlock_print = found
    return found


def of_element(tf: Any, tensor: Any) -> Print:
    """Return the same of an element of a pipeline, where a variant holds a value: sparse and ragged rows."""
    found = of_tensor(tensor)
    if found[0] is not None or tensor.dtype != tf.variant:
        return found
    try:
        words = tf.raw_ops.SerializeTensor(tensor=tensor).numpy()
    except Exception:  # what this TensorFlow cannot write down
        return found
    tensor._envlock_print = found = _digest(words), found[1]
    return found


def _converted(value: Any) -> Print:
    """Return them of a value that is no eager tensor: a number, a list, an array, a composite tensor."""
    try:
        from numpy import asarray

        array = asarray(value.numpy() if hasattr(value, "numpy") else value)
    except Exception:
        return None, type(value).__name__ + "[*]"
    return _of_array(array)


def _of_array(array: Any) -> Print:
    return (
        _of_text(array.tolist(), _spec(array))
        if array.dtype.hasobject
        else (of_array(array), _spec(array))
    )


def _of_text(value: Any, spec_: str) -> Print:
    """Return the fingerprint of a text, or a list of objects, by its words; names of a run's own are left out."""
    words = repr(value).encode("utf-8", "surrogatepass")
    steady = names.plain(words)
    return _digest(steady), spec_ if steady is words else spec_ + names.MARK


def _spec(array: Any) -> str:
    key = (array.dtype, array.shape)
    found = _specs.get(key)
    if found is None:
        if len(_specs) > 10_000:
            _specs.clear()
        found = _specs[key] = spec(
            array.dtype.name if not array.dtype.hasobject else "string", array.shape
        )
    return found
