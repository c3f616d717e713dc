"""Digests of arrays, and the files in which a run leaves them for the next one."""

from __future__ import annotations

import json
import os
from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Union

    Path = Union[str, "os.PathLike[str]"]


def digest_of(array: Any) -> str:
    """Return the SHA-256 of an array's type, shape and bytes, as the canary digests its results.

    Raises:
        TypeError: it holds objects, whose bytes are addresses.
    """
    import numpy

    found = numpy.asarray(array.numpy() if hasattr(array, "numpy") else array, order="C")
    if found.dtype.hasobject:
        raise TypeError("an array of objects has no bits to compare: convert it to numbers first")
    return sha256(
        f"{found.dtype.str}{list(found.shape)}".encode("ascii") + found.tobytes()
    ).hexdigest()


def read_records(path: Path) -> Dict[str, Any]:
    """Return what a file of records holds: nothing where there is no such file.

    Raises:
        ValueError: it is not such a file.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(
            f"{os.fspath(path)} is not valid JSON ({error}): restore or delete it"
        ) from None
    if not isinstance(found, dict):
        raise ValueError(f"{os.fspath(path)} holds no JSON object: restore or delete it")
    return found


def write_records(path: Path, records: Dict[str, Any]) -> None:
    """Replace a file of records at once: a run that is killed leaves the old one or the new one."""
    draft = f"{os.fspath(path)}.{os.getpid()}"
    try:
        with open(draft, "w", encoding="utf-8") as stream:
            json.dump(records, stream, indent=2, sort_keys=True, ensure_ascii=False)
            stream.write("\n")
        os.replace(draft, path)
    except BaseException:
        if os.path.exists(draft):
            os.remove(draft)
        raise
