"""The licence that a wheel declares in its METADATA: https://packaging.python.org/en/latest/specifications/core-metadata/."""

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
"""Bytes of a METADATA, which holds a README; the largest of TensorFlow's dependencies has 0.1 MB."""
LONGEST = 200
"""Characters of a licence's name: some packages put the whole text into the field."""
_CLASSIFIER = "License :: "
_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")


class License(NamedTuple):
    """What a package declares: an SPDX expression (PEP 639), or names of its own; or nothing."""

    expression: str | None = None
    names: tuple[str, ...] = ()


def declared(wheel: Path) -> License:
    """Return what a wheel declares.

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
    """Return what a METADATA declares."""
    fields = BytesHeaderParser(policy=compat32).parsebytes(metadata)
    expression = _line(str(fields.get("License-Expression") or ""))
    if expression is not None:
        return License(expression=expression)
    classifiers = [str(text) for text in fields.get_all("Classifier") or ()]
    names = {text.rpartition(" :: ")[2] for text in classifiers if text.startswith(_CLASSIFIER)} - {
        "OSI Approved"
    }
    lines = [_line(name) or "UNKNOWN" for name in (str(fields.get("License") or ""), *names)]
    return License(names=tuple(sorted({*lines} - {"UNKNOWN"})))


def _line(text: str) -> str | None:
    """Return a text that is a line and no more, else None."""
    text = text.strip()
    return text if text and len(text) <= LONGEST and text.isprintable() else None
