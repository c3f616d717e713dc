"""Zip and tar archives that others wrote: the only door through which envlock reads one.

The modules of the standard library raise some ten unrelated exceptions on a damaged archive, and
read a table of contents of any length into memory. Here it is one exception, and one limit.
"""

from __future__ import annotations

import errno
import io
import struct
import tarfile
import zipfile
import zlib
from contextlib import contextmanager
from zipfile import BadZipFile, ZipFile

from envlock.runtime.errors import EnvlockError

try:
    from lzma import LZMAError
except ImportError:  # a Python that was built without it reads no such archive either
    LZMAError = zlib.error  # type: ignore[misc,assignment]
# `zipfile` of Python 3.14 also reads Zstandard.
ZstdError: Type[Exception] = getattr(getattr(zipfile, "zstd", None), "ZstdError", zlib.error)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Iterator, Optional, Type, Union

CONTENTS = 8 * 1024 * 1024
"""Bytes of a zip file's table of contents.

`zipfile` creates an object for each of its entries, which has 46 bytes or more; TensorFlow's wheel
has 1.8 MB.
"""
DAMAGE = (
    BadZipFile,
    tarfile.TarError,
    LZMAError,
    ZstdError,
    zlib.error,
    struct.error,
    EOFError,
    ArithmeticError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""What reading a damaged archive raises, besides OSError: by its decompressors, and by headers that
contradict each other.
"""


class DamagedArchiveError(ValueError):
    """An archive is damaged, or needs a feature that this Python does not have."""


@contextmanager
def open_zip(source: Union[str, io.RawIOBase], contents: int = CONTENTS) -> Iterator[ZipFile]:
    """Yield a zip file, opened for reading.

    Args:
        source: its path, or an unbuffered stream.
        contents: the bytes that its table of contents may have.

    Raises:
        DamagedArchiveError: it is damaged; also if the block finds that out.
        OSError: it cannot be read.
    """
    with reading(), _Reader(_open(source)) as reader:
        reader.limit = contents
        with ZipFile(reader) as archive:
            reader.limit = None
            yield archive


def _open(source: Union[str, io.RawIOBase]) -> io.RawIOBase:
    if isinstance(source, str):
        return open(source, "rb", 0)
    return source


@contextmanager
def open_tar(source: Union[str, IO[bytes]], mode: str = "r:*") -> Iterator[tarfile.TarFile]:
    """Yield a tar archive, opened for reading.

    Raises:
        DamagedArchiveError: it is damaged; also if the block finds that out.
        OSError: it cannot be read.
    """
    with reading(), _open_tar(source, mode) as archive:
        yield archive


def _open_tar(source: Union[str, IO[bytes]], mode: str) -> tarfile.TarFile:
    if isinstance(source, str):
        return tarfile.open(source, mode)  # type: ignore[call-overload,no-any-return]
    return tarfile.open(fileobj=source, mode=mode)  # type: ignore[call-overload,no-any-return]


@contextmanager
def reading() -> Iterator[None]:
    """Turn what a damaged archive makes the block raise into DamagedArchiveError.

    An error of the disk passes: it has a number. The decompressors raise an OSError without one,
    and a place outside of the file is an invalid argument.
    """
    try:
        yield
    except (EnvlockError, DamagedArchiveError):
        raise
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):
            raise
        raise DamagedArchiveError(str(error) or "its data is damaged") from None
    except DAMAGE as error:
        raise DamagedArchiveError(str(error) or "it is truncated") from None


class _Reader(io.BufferedReader):
    """A file of which no more than `limit` bytes are read in one call.

    `zipfile` reads the table of contents in one call, whatever size the file gives for it.
    """

    limit: Optional[int] = None

    def read(self, size: Optional[int] = -1) -> bytes:
        if self.limit is not None and size is not None and size > self.limit:
            raise BadZipFile(f"its table of contents is larger than {self.limit:,} bytes")
        return super().read(size)
