"""What a tensor holds, as a fingerprint: 64 bits of BLAKE2 over its bytes, and how its type and shape are written."""

from __future__ import annotations

from hashlib import blake2b

from envlock.divergence.inside.trace_writer import spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Tuple

    Print = Tuple[Optional[int], str]

NAME = "blake2b-64"
"""What a trace's header calls this fingerprint."""
HANDLES = ("resource", "variant")
_COPY = 1 << 14  # bytes; below it a copy is faster than a view

_specs: Dict[Any, str] = {}


def of_array(array: Any) -> int:
    """Return the fingerprint of a numpy array: of its bytes in C order; of text and objects, of their words."""
    if array.dtype.hasobject:
        data: Any = repr(array.tolist()).encode("utf-8", "surrogatepass")
    elif array.nbytes < _COPY or not array.flags.c_contiguous:
        data = array.tobytes()
    else:
        data = array.reshape(-1).view("u1").data
    return _digest(data)


def _digest(data: Any) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")


def of_tensor(tensor: Any) -> Print:
    """Return the fingerprint and the spec of an eager tensor; no fingerprint for a handle or what cannot be read.

    A tensor never changes, so what is found is kept at the tensor itself.
    """
    known = getattr(tensor, "_envlock_print", None)
    if known is not None:
        return known  # type: ignore[no-any-return]
    found = _look(tensor)
    if found[0] is not None and hasattr(tensor, "_numpy"):  # not of a variable, which changes
        tensor._envlock_print = found
    return found


def _look(tensor: Any) -> Print:
    name = getattr(getattr(tensor, "dtype", None), "name", "")
    if name in HANDLES:
        return None, name + "[]"
    try:
        array = tensor._numpy()
    except AttributeError:
        return _converted(tensor)
    except Exception:  # TensorFlow's own errors: a device that is gone, a parallel tensor
        return None, name + "[*]"
    if isinstance(array, (bytes, str)):  # a single text
        return _digest(repr(array).encode("utf-8", "surrogatepass")), name + "[]"
    return of_array(array), _spec(array)


def _converted(value: Any) -> Print:
    """Return them of a value that is no eager tensor: a number, a list, an array, a composite tensor."""
    try:
        from numpy import asarray

        array = asarray(value.numpy() if hasattr(value, "numpy") else value)
    except Exception:
        return None, type(value).__name__ + "[*]"
    return of_array(array), _spec(array)


def _spec(array: Any) -> str:
    key = (array.dtype, array.shape)
    found = _specs.get(key)
    if found is None:
        if len(_specs) > 10_000:
            _specs.clear()
        found = _specs[key] = spec(array.dtype.name if not array.dtype.hasobject else "string", array.shape)
    return found
