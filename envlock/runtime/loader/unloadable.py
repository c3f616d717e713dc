"""Which installed modules cannot be imported because a shared library is missing."""

from __future__ import annotations

import os

from envlock.runtime.loader.elf import find_exports
from envlock.runtime.loader.search import DEFAULT, Found, Loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Set, Tuple

    from envlock.runtime.host import Host

SITES = ("site-packages", "dist-packages")

DRIVER = ("libcuda.so", "libnvcuvid.so", "libnvidia-")
"""The driver's libraries, which no image has: NVIDIA's container runtime mounts those of the machine.
https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/"""


def find_unloadable(host: Host) -> Dict[str, List[str]]:
    """Return the packages with an extension module that cannot be loaded, by their folder or module; each with
    the libraries that the module, or what it needs, does not find.

    A library of any installed package counts as found: Python code often loads it before the module.

    Raises:
        OSError: /proc/self/maps exists and cannot be read.
    """
    sites = [entry for entry in host.path if entry.endswith(SITES)]
    search = _Search(host, sites)
    found: Dict[str, Set[str]] = {}
    for site, paths in search.libraries.items():
        for path in paths:
            missing = search.find_missing(path) if _is_module(path) else set()
            if missing:
                top = os.path.relpath(path, site).split(os.sep)[0].partition(".")[0]
                found.setdefault(top, set()).update(missing)
    return {top: sorted(found[top]) for top in sorted(found)}


class _Search:
    """The libraries of the installed packages, and where the loader finds what they need."""

    def __init__(self, host: Host, sites: List[str]) -> None:
        self._loader = Loader(host, sites)
        self.libraries = {site: _walk(site) for site in sites}
        self._installed = {
            os.path.basename(path): path for paths in self.libraries.values() for path in paths
        }
        self._needs: Dict[str, Tuple[List[str], List[str]]] = {}

    def find_missing(self, path: str) -> Set[str]:
        """Return what a library, or one of the installed ones that it needs, does not find."""
        missing: Set[str] = set()
        seen, queue = {path}, [path]
        for each in queue:
            absent, installed = self._look_up(each)
            missing.update(absent)
            queue += [need for need in installed if need not in seen]
            seen.update(installed)
        return missing

    def _look_up(self, path: str) -> Tuple[List[str], List[str]]:
        """Return the needs of one library that are nowhere, and the paths of those that packages have."""
        if path not in self._needs:
            absent: List[str] = []
            installed: List[str] = []
            self._needs[path] = absent, installed
            try:
                elf = self._loader.read(path)
            except (OSError, ValueError):  # damaged, or of another machine
                return self._needs[path]
            caller = Found(path, path, DEFAULT, elf)
            for need in elf.needed:
                if need in self._installed:
                    installed.append(self._installed[need])
                elif self._loader.load(need, caller).file is None and not need.startswith(DRIVER):
                    absent.append(need)
        return self._needs[path]


def _walk(site: str) -> List[str]:
    """Return the shared libraries in a folder of packages."""
    paths = []
    for folder, _, names in os.walk(site):
        libraries = [name for name in names if name.endswith(".so") or ".so." in name]
        paths += [os.path.join(folder, name) for name in libraries]
    return sorted(paths)


def _is_module(path: str) -> bool:
    """Return whether Python can import a library: it exports the module's function of initialization."""
    name = os.path.basename(path).partition(".")[0]
    try:
        return bool(find_exports(path, [f"PyInit_{name}"]))
    except (OSError, ValueError):
        return False
