"""Digests of arrays, and the files in which a run stores them for the next run."""

from __future__ import annotations

import json
import os
from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Union

    Records = Dict[str, Any]
    """JSON values by name; each integration documents its own."""

    Path = Union[str, "os.PathLike[str]"]


def compute_digest(array: object) -> str:
    """Return the SHA-256 of an array's type, shape and bytes, computed as for the results of the
    canary.

    Raises:
        TypeError: it contains objects, whose bytes are addresses.
    """
    # An optional package: pytest loads this in environments without it.
    import numpy

    # Tensors of TensorFlow and other libraries convert themselves.
    convert = getattr(array, "numpy", None)
    if convert is not None:
        array = convert()
    found = numpy.asarray(array, order="C")
    if found.dtype.hasobject:
        raise TypeError("an array of objects has no bits to compare: convert it to numbers first")
    head = f"{found.dtype.str}{list(found.shape)}".encode("ascii")
    return sha256(head + found.tobytes()).hexdigest()


def read_records(path: Path) -> Records:
    """Return the content of a file of records; empty if the file does not exist.

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


def write_records(path: Path, records: Records) -> None:
    """Replace a file of records atomically: a run that is killed leaves either the old file or the
    new one.
    """
    draft = f"{os.fspath(path)}.{os.getpid()}"
    try:
        with open(draft, "w", encoding="utf-8") as stream:
            json.dump(records, stream, indent=2, sort_keys=True, ensure_ascii=False)
            stream.write("\n")
            # On the disk before it is renamed, so that a power cut leaves no empty file.
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, path)
    except BaseException:
        if os.path.exists(draft):
            os.remove(draft)
        raise
