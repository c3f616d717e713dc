"""What the wheelhouse holds beside wheels: builds of python-build-standalone, and Debian packages."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from envlock.lock.models import DebianPackage
from envlock.packages.indexes.download import download
from envlock.runtime.errors import OutsideError
from envlock.web.client import Client

RELEASES = "https://github.com/astral-sh/python-build-standalone/releases/download"
MIRROR = "UV_PYTHON_INSTALL_MIRROR"
"""uv's variable for another place of the same archives. Source: https://docs.astral.sh/uv/reference/environment/"""


def fetch_python(file: str, sha256: str, folder: Path, environ: Mapping[str, str]) -> bool:
    """Download a build of python-build-standalone into a folder, unless it is there; return whether it was downloaded.

    Raises:
        OutsideError: it cannot be had, is another one, or cannot be written.
    """
    release = re.findall(r"\+(\d{8})-", file)[0]
    url = f"{environ.get(MIRROR, RELEASES).rstrip('/')}/{release}/{quote(file)}"
    return _fetch(url, folder / file, sha256, None, f"or name a mirror in {MIRROR}")


def fetch_debian(package: DebianPackage, folder: Path) -> bool:
    """Download a Debian package into a folder, unless it is there; return whether it was downloaded.

    Raises:
        OutsideError: it cannot be had, is another one, or cannot be written.
    """
    hint = "or run `envlock build --pin` to lock what its archive has now"
    return _fetch(package.url, folder / package.file, package.sha256, package.size, hint)


def _fetch(url: str, target: Path, sha256: str, size: int | None, otherwise: str) -> bool:
    if os.access(target, os.F_OK):  # unlike `Path.exists`, says no where it may not look
        return False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        download(Client(), url, target, sha256=sha256, size=size)
    except OSError as error:
        raise OutsideError(
            f"cannot write {target}: {error.strerror}", hint="name a writable folder with `--wheelhouse`"
        ) from None
    except OutsideError as error:
        hint = f"download {target.name} elsewhere and put it into {target.parent}, {otherwise}"
        raise OutsideError(f"cannot download {target.name}: {error.message}", hint=hint) from None
    return True
