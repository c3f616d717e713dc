"""Answers of sources: bounded, and what was found in them kept for a run that is started again."""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import os
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from envlock.packages.archives import download
from envlock.packages.public_index import PUBLIC_INDEX
from envlock.packages.web.client import Client, make_refusal
from envlock.packages.web.limits import Limits
from envlock.runtime.errors import OutsideError
from refresh.index import LARGEST, IndexFile, RemoteFile, list_files

MIRROR = "ENVLOCK_REFRESH_MIRROR"
"""The address of a server that has the sources below their host names: recorded answers."""
FRESH = 12 * 3600
"""Seconds for which a kept answer counts; the content of a wheel never changes."""
SECONDS = 1800
LARGEST_WHEEL = 2 * 1024**3
UNREADABLE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    ValueError,
    EOFError,
    OSError,
)
"""What is raised for bytes that are not what they should be; UnicodeDecodeError is a ValueError."""


class Web:
    """Asks sources.

    Args:
        folder: where answers are kept.
        mirror: where to ask instead.
        index: the package index.
        limits: those of one answer.
    """

    def __init__(
        self,
        folder: Path,
        mirror: str | None = None,
        limits: Limits | None = None,
        index: str = PUBLIC_INDEX,
    ) -> None:
        self._index = index
        self._folder = folder
        self._mirror = mirror
        self._client = Client(
            limits=limits or Limits(answer=60, attempts=3, body=900, largest=LARGEST_WHEEL)
        )
        self._end = time.monotonic() + SECONDS

    def get(self, url: str, read: Callable[[bytes], str] = bytes.decode) -> str:
        """Return a text, or what `read` finds in the answer.

        Raises:
            OutsideError: the source cannot be reached, refuses, or sends something else; or the time for all sources is up.
        """
        asked = self._translate(url)
        key = f"{asked} {read.__qualname__}"
        return self._find(key, url, lambda: read(self._download(asked)), FRESH)

    def list_wheels(self, project: str) -> dict[Version, list[IndexFile]]:
        """Return the wheels of a project by version.

        Raises:
            OutsideError: the index cannot be reached or refuses, or has none.
        """
        self._check_time()
        found: dict[Version, list[IndexFile]] = {}
        for file in list_files(self._client, self._index, project):
            try:
                version = parse_wheel_filename(file.name)[1]
            except InvalidWheelFilename:
                continue
            found.setdefault(version, []).append(file)
        if not found:
            raise OutsideError(f"the index has no wheel of {project}", hint="ask again later")
        return found

    def read_member(self, wheel: IndexFile, suffix: str) -> str:
        """Return the file of a wheel whose path ends with `suffix`, of which only that is fetched.

        Raises:
            OutsideError: the server does not answer, or sends no wheel with one such file.
        """

        def read() -> str:
            with zipfile.ZipFile(RemoteFile(self._client, wheel.url)) as archive:
                (name,) = [each for each in archive.namelist() if each.endswith(suffix)]
                return archive.read(name).decode()

        return self._find(f"{wheel.sha256 or wheel.url} {suffix}", wheel.name, read)

    def examine(self, wheel: IndexFile, read: Callable[[Path], str]) -> str:
        """Return what `read` finds in a wheel, which is fetched as a whole, and then removed.

        Raises:
            OutsideError: the server does not answer, or sends something else.
        """

        def fetch() -> str:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._folder / wheel.name
            try:
                download(self._client, wheel.url, file, sha256=wheel.sha256, size=wheel.size)
                return read(file)
            finally:
                file.unlink(missing_ok=True)

        key = f"{wheel.sha256 or wheel.url} {read.__qualname__}"
        return self._find(key, wheel.name, fetch)

    def read_source(self, project: str, suffix: str) -> tuple[str, str]:
        """Return the newest release of a project, and the file of its source whose path ends with `suffix`.

        Raises:
            OutsideError: the index does not answer, or sends no source with one such file.
        """
        self._check_time()
        sources = {}
        for file in list_files(self._client, self._index, project):
            with contextlib.suppress(InvalidSdistFilename):
                sources[parse_sdist_filename(file.name)[1]] = file
        if not sources:
            raise OutsideError(f"the index has no source of {project}", hint="ask again later")
        version = max(sources, key=lambda each: (not each.is_prerelease, each))
        source = sources[version]

        def read() -> str:
            body = self._download(source.url)
            if source.sha256 not in (None, hashlib.sha256(body).hexdigest()):
                raise ValueError("it is not what the index lists")
            (text,) = unpack(body, lambda name: name.endswith(suffix)).values()
            return text

        key = f"{source.sha256 or source.url} {suffix}"
        return str(version), self._find(key, source.name, read)

    def _find(self, key: str, name: str, read: Callable[[], str], seconds: float = math.inf) -> str:
        """Return what was found earlier, at most so long ago, or what is read now."""
        place = self._folder / hashlib.sha256(key.encode()).hexdigest()
        if place.exists() and time.time() - place.stat().st_mtime < seconds:
            return place.read_text(encoding="utf-8")
        self._check_time()
        try:
            text = read()
        except UNREADABLE as error:
            raise OutsideError(
                f"{name} is not what was asked for ({error})", hint="ask again later"
            ) from error
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = place.with_suffix(f".{os.getpid()}")
        draft.write_text(text, encoding="utf-8", newline="")
        draft.replace(place)
        return text

    def _download(self, url: str) -> bytes:
        answer = self._client.get(url, limit=LARGEST)
        if answer.status != HTTPStatus.OK:
            raise make_refusal(answer)
        return answer.body

    def _translate(self, url: str) -> str:
        if self._mirror is None:
            return url
        parts = urlsplit(url)
        return f"{self._mirror.rstrip('/')}/{parts.netloc}{parts.path}"

    def _check_time(self) -> None:
        if time.monotonic() > self._end:
            raise OutsideError(
                f"the {SECONDS} seconds for all sources are over",
                hint="run it again: it goes on from here",
            )


def unpack(body: bytes, is_wanted: Callable[[str], bool]) -> dict[str, str]:
    """Return the texts of a tar.gz by path, of the files that are wanted.

    Raises:
        tarfile.TarError, ValueError, OSError, EOFError, zlib.error: the archive is damaged, or a file does not have text.
    """
    found = {}
    with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as archive:
        for member in archive:
            if member.isreg() and is_wanted(member.name):
                stream = archive.extractfile(member)
                assert stream is not None  # it is a regular file
                found[member.name] = stream.read(LARGEST).decode()
    return found
