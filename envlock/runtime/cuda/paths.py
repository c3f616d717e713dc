"""Paths as they go into a lock: the same on every machine that has the same environment, and naming nobody."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional

    from envlock.runtime.host import Host

_SYSTEM_PREFIXES = ("/", "/usr")  # a system Python: only its site folders are the environment, not all of /usr
_SYSTEM = ("/usr/", "/lib/", "/lib64/", "/opt/nvidia/")
_LOCAL = "/usr/local/"


class PortablePaths:
    """Rewrites paths of one process: `{prefix}/...` inside the environment, as it is below a folder of the system.

    Any other folder may name its user, or depend on HOME or the working folder: of it `{elsewhere}/NAME` is left.
    """

    def __init__(self, host: Host, prefix: Optional[str] = None) -> None:
        """Prepare.

        Args:
            host: gives the import path and the root.
            prefix: folder of the environment; `sys.prefix` when not given.
        """
        self._prefix = os.path.realpath(sys.prefix if prefix is None else prefix)
        self._root = host.root.rstrip("/")
        self._real: Dict[str, str] = {}
        self._site: List[str] = [os.path.realpath(folder) for folder in host.path if folder]

    def inside(self, path: str) -> bool:
        """Return whether a real path belongs to the environment."""
        if self._prefix not in _SYSTEM_PREFIXES:
            return path.startswith(self._prefix + "/")
        return path.startswith("/usr/") and any(path.startswith(folder + "/") for folder in self._site)

    def canonical(self, path: str) -> str:
        """Return the one path that stands for a file: links followed, unless that leads out of the environment.

        Installers may link files from a cache (`uv --link-mode symlink`); the cache's path says nothing.
        """
        folder, name = os.path.split(path)
        if folder not in self._real:
            self._real[folder] = os.path.realpath(folder)  # eleven calls of lstat, and many files share a folder
        here = os.path.join(self._real[folder], name)
        real = os.path.realpath(here) if os.path.islink(here) else here
        return here if self.inside(here) and not self.inside(real) else real

    def text(self, path: str) -> str:
        """Return how a canonical path is written down."""
        if self.inside(path):
            base = "" if self._prefix == "/" else self._prefix
            return "{prefix}" + path[len(base) :]
        if self._root and path.startswith(self._root + "/"):
            path = path[len(self._root) :]
        return path if _is_system(path) else "{elsewhere}/" + path.rpartition("/")[2]


def _is_system(path: str) -> bool:
    """Return whether a path lies where packages of the system and NVIDIA's installers put files."""
    if path.startswith(_LOCAL):
        first = path[len(_LOCAL) :].partition("/")[0]
        return first in ("lib", "lib64", "bin") or not first.replace("cuda", "", 1).strip("-.0123456789")
    return path.startswith(_SYSTEM)
