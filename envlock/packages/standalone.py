"""Where the builds of python-build-standalone are."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from envlock.packages.indexes.download import download
from envlock.runtime.errors import OutsideError
from envlock.web.client import Client

RELEASES = "https://github.com/astral-sh/python-build-standalone/releases/download"
MIRROR = "UV_PYTHON_INSTALL_MIRROR"
"""uv's variable for another place of the same archives. Source: https://docs.astral.sh/uv/reference/environment/"""


def fetch(file: str, sha256: str, folder: Path, environ: Mapping[str, str]) -> bool:
    """Download an archive into a folder, unless it is there; return whether it was downloaded.

    Raises:
        OutsideError: it cannot be had, or is another one.
        UsageError: it cannot be written.
    """
    target = folder / file
    if os.access(target, os.F_OK):  # unlike `Path.exists`, says no where it may not look
        return False
    release = re.findall(r"\+(\d{8})-", file)[0]
    url = f"{environ.get(MIRROR, RELEASES).rstrip('/')}/{release}/{quote(file)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        download(Client(), url, target, sha256=sha256, size=None)
    except OSError as error:
        raise OutsideError(
            f"cannot write {target}: {error.strerror}", hint="name a writable folder with `--wheelhouse`"
        ) from None
    except OutsideError as error:
        hint = f"download {file} elsewhere and put it into {folder}, or name a mirror in {MIRROR}"
        raise OutsideError(f"cannot download {file}: {error.message}", hint=hint) from None
    return True
