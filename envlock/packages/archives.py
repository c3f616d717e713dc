"""Archives in a wheelhouse: builds of python-build-standalone, and Debian packages."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

from envlock.data.image_tables import StandaloneBuild, load_image_tables
from envlock.lock.models import DebianPackage
from envlock.lock.writer import replace_file
from envlock.packages.web.client import Client, make_refusal
from envlock.packages.web.web_errors import make_format_error, show_url
from envlock.runtime import strict_json
from envlock.runtime.errors import OutsideError

MIRROR = "UV_PYTHON_INSTALL_MIRROR"
"""uv's variable for a mirror of the archives.

Source: https://docs.astral.sh/uv/reference/environment/
"""
LARGEST = 4 * 1024 * 1024
"""Bytes of a list of digests; those of 2026 have a thousand lines of 160 characters."""


def fetch_python(file: str, sha256: str, folder: Path, environ: Mapping[str, str]) -> bool:
    """Download a build of python-build-standalone into a folder; return False if the folder has it
    already.

    Raises:
        OutsideError: it cannot be downloaded, is a different file, or cannot be written.
    """
    url = load_image_tables().standalone.make_url(file, environ.get(MIRROR))
    return _fetch(url, folder / file, sha256, None, f"or name a mirror in {MIRROR}")


def find_newest_python(python: str, machine: str, environ: Mapping[str, str]) -> StandaloneBuild:
    """Return the build of a Python in the newest release of python-build-standalone.

    Its digest comes from the release's SHA256SUMS. A mirror must have `latest-release.json` beside
    its releases.

    Raises:
        OutsideError: the release does not have it or cannot be reached, or its answer is malformed.
    """
    table = load_image_tables().standalone
    mirror = environ.get(MIRROR)
    client = Client()
    latest = f"{mirror.rstrip('/')}/latest-release.json" if mirror else table.latest
    release = _fetch_release(client, latest)
    # The digest is a placeholder until the list is read: the name of the file, by which it is looked
    # up there, comes from the row.
    row = {
        "python": python,
        "release": release,
        "machine": machine,
        "sha256": "0" * 64,
        "source": "latest",
    }
    # The stripped one first: without debug symbols it is smaller.
    builds = [StandaloneBuild.model_validate({**row, "stripped": each}) for each in (True, False)]
    url = table.make_url(builds[0].file, mirror).rpartition("/")[0] + "/SHA256SUMS"
    digests = _parse_digests(_fetch_text(client, url), url)
    for build in builds:
        if build.file in digests:
            return build.model_copy(update={"sha256": digests[build.file]})
    raise OutsideError(
        f"release {release} of python-build-standalone, the newest one, "
        f"has no Python {python} for {machine}",
        hint="update envlock, whose table may have it, "
        "or capture with a Python that is in the table",
    )


def _fetch_release(client: Client, url: str) -> str:
    """Return the name of the newest release, which is its date, such as 20261021."""
    # Only the name is used from the answer: no address in it is ever requested.
    try:
        document = strict_json.parse(_fetch_text(client, url))
    except ValueError as error:
        raise make_format_error(url, str(error)) from None
    tag = document.get("tag") if isinstance(document, dict) else None
    if not isinstance(tag, str) or re.fullmatch(r"[0-9]{8}", tag) is None:
        raise make_format_error(url, "its `tag` is not the day of a release")
    return tag


def _parse_digests(data: bytes, url: str) -> dict[str, str]:
    """Return the digests by file: `DIGEST  NAME` in each line, with unique names."""
    digests: dict[str, str] = {}
    for line in data.decode("ascii", "replace").splitlines():
        digest, _, name = line.partition("  ")
        if name in digests or re.fullmatch(r"[0-9a-f]{64}", digest) is None:
            raise make_format_error(url, "it is not a list of SHA-256 digests, with each file once")
        digests[name] = digest
    return digests


def _fetch_text(client: Client, url: str) -> bytes:
    answer = client.get(url, limit=LARGEST, only=[HTTPStatus.OK])
    if answer.status != HTTPStatus.OK:
        raise make_refusal(answer)
    return answer.body


def fetch_debian(package: DebianPackage, folder: Path) -> bool:
    """Download a Debian package into a folder; return False if the folder has it already.

    Raises:
        OutsideError: it cannot be downloaded, is a different file, or cannot be written.
    """
    hint = "or run `envlock build --pin` to lock what its archive has now"
    return _fetch(package.url, folder / package.file, package.sha256, package.size, hint)


def _fetch(url: str, target: Path, sha256: str, size: int | None, otherwise: str) -> bool:
    # A file is hashed when it goes into an image, so its presence is enough here. Unlike
    # `Path.exists`, this does not raise if the folder may not be read.
    if os.access(target, os.F_OK):
        return False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        download(Client(), url, target, sha256=sha256, size=size)
    except OSError as error:
        raise OutsideError(
            f"cannot write {target}: {error.strerror}",
            hint="name a writable folder with `--wheelhouse`",
        ) from None
    except OutsideError as error:
        hint = f"download {target.name} elsewhere and put it into {target.parent}, {otherwise}"
        raise OutsideError(f"cannot download {target.name}: {error.message}", hint=hint) from None
    return True


def download(
    client: Client, url: str, target: Path, *, sha256: str | None, size: int | None
) -> None:
    """Download a file, which appears only if it is the expected one.

    Raises:
        OutsideError: the server cannot be reached, refuses, or sends another file.
    """
    digest, received = hashlib.sha256(), 0
    wrong = f"{show_url(url)} is not the expected file:"
    with replace_file(target, "archive") as stream:

        def receive(chunk: bytes) -> None:
            nonlocal received
            digest.update(chunk)
            received += len(chunk)
            stream.write(chunk)
            if size is not None and received > size:
                raise OutsideError(f"{wrong} it has more than {size} bytes")

        answer = client.fetch(url, receive)
        if answer.status != HTTPStatus.OK:
            raise make_refusal(answer)
        if size not in (None, received):
            raise OutsideError(f"{wrong} it has {received} bytes, not {size}")
        if sha256 not in (None, digest.hexdigest()):
            raise OutsideError(f"{wrong} its sha256 is {digest.hexdigest()}, not {sha256}")
