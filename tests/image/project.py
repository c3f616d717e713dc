"""A user's folder, and the command line in it, where the registries' names lead to the bed's."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envlock.lock.document import load
from tests.image.bed import registry
from tests.image.bed.session import ROOT, Bed
from tests.locks import encode


def log_in(bed: Bed, folder: Path, *hosts: str) -> Path:
    """Return a folder of Docker's configuration with a login to the bed's registry, under these names."""
    shutil.copytree(bed.engine.environ["DOCKER_CONFIG"], folder)
    file = folder / "config.json"
    config = json.loads(file.read_bytes())
    key = base64.b64encode(f"{registry.USER}:{registry.KEY}".encode()).decode()
    file.write_text(json.dumps({**config, "auths": {host: {"auth": key} for host in hosts}}), encoding="utf-8")
    return folder


class Project:
    """A folder with a lock and a wheelhouse, and the command line there, where nvcr.io is the bed's registry.

    `environ` are further variables for it, such as those of podman.
    """

    def __init__(self, bed: Bed, folder: Path, lock: dict[str, Any], environ: Mapping[str, str] | None = None) -> None:
        self.bed = bed
        self.folder = folder
        self.environ = dict(environ or {})
        folder.mkdir(parents=True, exist_ok=True)
        self.write(lock)

    def write(self, lock: dict[str, Any]) -> None:
        (self.folder / "envlock.lock").write_bytes(encode(lock))

    def __call__(self, *args: str, umask: int = 0o022, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        names = ("PATH", "HOME", "LANG", "CI")
        plain = {name: value for name, value in os.environ.items() if name in names}
        return subprocess.run(
            [*self.bed.engine.enter, "env", "-C", self.folder, sys.executable, "-m", "envlock", *args],
            env={**plain, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1", **self.bed.engine.environ, **self.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            umask=umask,
            check=False,
        )

    @property
    def image(self) -> dict[str, Any]:
        lock = load(self.folder / "envlock.lock")
        assert lock.image is not None
        return lock.image.model_dump()
