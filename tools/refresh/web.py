"""Answers of sources: bounded, and kept for a run that is started again."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tarfile
import time
import zipfile
import zlib
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

from envlock.packages.indexes.index_settings import Index
from envlock.packages.indexes.page import IndexFile, list_index_files
from envlock.packages.indexes.ranges import NoRanges, open_remote_file
from envlock.packages.public_index import PUBLIC_INDEX
from envlock.runtime.errors import OutsideError
from envlock.web.client import Client, make_refusal
from envlock.web.limits import Limits

MIRROR = "ENVLOCK_REFRESH_MIRROR"
"""The address of a server that has the sources below their host names: recorded answers."""
FRESH = 12 * 3600
"""Seconds for which a kept answer counts; the content of a wheel never changes."""
SECONDS = 900
LARGEST = 64 * 1024 * 1024


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
        self._client = Client(limits=limits or Limits(answer=60, attempts=3))
        self._end = time.monotonic() + SECONDS

    def get(self, url: str) -> str:
        """Return a text.

        Raises:
            OutsideError: the source cannot be reached, refuses, or does not send text; or the time for all sources is up.
        """
        asked = self._translate(url)
        kept = self._folder / hashlib.sha256(asked.encode()).hexdigest()
        if kept.exists() and time.time() - kept.stat().st_mtime < FRESH:
            return kept.read_text(encoding="utf-8")
        self._check_time()
        answer = self._client.get(asked, limit=LARGEST)
        if answer.status != HTTPStatus.OK:
            raise make_refusal(answer)
        return self._keep(kept, answer.body, url)

    def list_wheels(self, project: str) -> dict[Version, list[IndexFile]]:
        """Return the wheels of a project by version.

        Raises:
            OutsideError: the index cannot be reached or refuses, or has none.
        """
        self._check_time()
        found: dict[Version, list[IndexFile]] = {}
        for file in list_index_files(self._client, Index(self._index), project):
            try:
                version = parse_wheel_filename(file.name)[1]
            except InvalidWheelFilename:
                continue
            found.setdefault(version, []).append(file)
        if not found:
            raise OutsideError(f"the index has no wheel of {project}", hint="ask again later")
        return found

    def read_member(self, wheel: IndexFile, suffix: str) -> str:
        """Return the file of a wheel whose path ends with `suffix`.

        Raises:
            OutsideError: the server does not answer, or sends no wheel with one such file.
        """
        kept = self._keep_at(wheel, suffix)
        if kept.exists():
            return kept.read_text(encoding="utf-8")
        self._check_time()
        try:
            with zipfile.ZipFile(open_remote_file(self._client, wheel.url)) as archive:
                (name,) = [each for each in archive.namelist() if each.endswith(suffix)]
                body = archive.read(name)
        except (zipfile.BadZipFile, ValueError, NoRanges, EOFError) as error:
            raise OutsideError(
                f"{wheel.name} has no single readable {suffix}", hint="ask again later"
            ) from error
        return self._keep(kept, body, wheel.name)

    def read_source(self, project: str, suffix: str) -> tuple[str, str]:
        """Return the newest release of a project, and the file of its source whose path ends with `suffix`.

        Raises:
            OutsideError: the index does not answer, or sends no source with one such file.
        """
        self._check_time()
        sources = {}
        for file in list_index_files(self._client, Index(self._index), project):
            with contextlib.suppress(InvalidSdistFilename):
                sources[parse_sdist_filename(file.name)[1]] = file
        if not sources:
            raise OutsideError(f"the index has no source of {project}", hint="ask again later")
        version = max(sources, key=lambda each: (not each.is_prerelease, each))
        source = sources[version]
        kept = self._keep_at(source, suffix)
        if kept.exists():
            return str(version), kept.read_text(encoding="utf-8")
        answer = self._client.get(source.url, limit=LARGEST)
        if answer.status != HTTPStatus.OK:
            raise make_refusal(answer)
        try:
            with tarfile.open(fileobj=io.BytesIO(answer.body)) as archive:
                (member,) = [
                    each for each in archive if each.isreg() and each.name.endswith(suffix)
                ]
                stream = archive.extractfile(member)
                assert stream is not None  # it is a regular file
                body = stream.read(LARGEST)
        except (tarfile.TarError, ValueError, OSError, EOFError, zlib.error) as error:
            raise OutsideError(
                f"{source.name} has no single readable {suffix}", hint="ask again later"
            ) from error
        if source.sha256 not in (None, hashlib.sha256(answer.body).hexdigest()):
            raise OutsideError(f"{source.name} is not what the index lists", hint="ask again later")
        return str(version), self._keep(kept, body, source.name)

    def _keep_at(self, file: IndexFile, suffix: str) -> Path:
        name = f"{file.sha256 or file.url} {suffix}"
        return self._folder / hashlib.sha256(name.encode()).hexdigest()

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

    def _keep(self, place: Path, body: bytes, name: str) -> str:
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError:
            raise OutsideError(f"{name} is not text", hint="ask again later") from None
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = place.with_suffix(f".{os.getpid()}")
        draft.write_text(text, encoding="utf-8", newline="")
        draft.replace(place)
        return text
