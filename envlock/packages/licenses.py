"""The licence that a wheel declares in its METADATA.

Source: https://packaging.python.org/en/latest/specifications/core-metadata/
"""

from __future__ import annotations

import re
import zipfile
import zlib
from email.parser import BytesHeaderParser
from email.policy import compat32
from pathlib import Path
from typing import NamedTuple

from envlock.runtime.errors import OutsideError

LARGEST = 4 * 1024 * 1024
"""Bytes of a METADATA, which contains a README; the largest among TensorFlow's dependencies has 0.1
MB.
"""
LONGEST = 200
"""Characters of a licence's name: some packages put the whole text of the licence into the field."""
_CLASSIFIER = "License :: "
_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")


class License(NamedTuple):
    """The licence that a package declares: an SPDX expression (PEP 639), names of its own, or
    nothing.
    """

    expression: str | None = None
    names: tuple[str, ...] = ()


def read_license(wheel: Path) -> License:
    """Return the licence that a wheel declares.

    Raises:
        OutsideError: it cannot be read.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = [info for info in archive.infolist() if _METADATA.fullmatch(info.filename)]
            if len(found) != 1 or found[0].file_size > LARGEST:
                return License()
            with archive.open(found[0]) as stream:
                return parse(stream.read(LARGEST))
    except (
        OSError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise OutsideError(
            f"cannot read the wheel {wheel}: {error}",
            hint="remove it and run `envlock vendor` again",
        ) from None


def parse(metadata: bytes) -> License:
    """Return the licence that a METADATA declares."""
    fields = BytesHeaderParser(policy=compat32).parsebytes(metadata)
    expression = _parse_name(str(fields.get("License-Expression") or ""))
    if expression is not None:
        return License(expression=expression)
    candidates = [str(fields.get("License") or "")]
    for field in fields.get_all("Classifier") or ():
        classifier = str(field)
        name = classifier.rpartition(" :: ")[2]
        # "OSI Approved" alone is a group of classifiers, not a licence.
        if classifier.startswith(_CLASSIFIER) and name != "OSI Approved":
            candidates.append(name)
    names = set()
    for candidate in candidates:
        parsed = _parse_name(candidate)
        # Old tools wrote "UNKNOWN" into an empty field.
        if parsed is not None and parsed != "UNKNOWN":
            names.add(parsed)
    return License(names=tuple(sorted(names)))


def _parse_name(text: str) -> str | None:
    """Return a text that can be the name of a licence; None if it is empty or too long."""
    name = text.strip()
    if not name or len(name) > LONGEST or not name.isprintable():
        return None
    return name
