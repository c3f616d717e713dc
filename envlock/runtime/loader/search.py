"""Which file glibc's dynamic loader would load for a soname, found without loading anything.

The order is that of `_dl_map_object` in glibc's `elf/dl-load.c` (ld.so(8) describes it in words): a
library of that name that the process has already loaded; RPATH of the caller and of the libraries
that loaded it, only if the caller has no RUNPATH; LD_LIBRARY_PATH as it was at the start of the
process; RUNPATH of the caller; `/etc/ld.so.cache`; the built-in folders. In each folder the
`glibc-hwcaps` subfolders that the CPU can use come first. A file of another word size or processor
is skipped; a damaged one ends the search with an error (`open_verify`), so that a good one in a
later folder is never found.

Not modelled: set-uid programs, LD_AUDIT, `dlmopen` namespaces, a `--library-path` given to ld.so,
GLIBC_TUNABLES that hide CPU features, and the `tls/` and platform folders that glibc searched
before 2.37.
"""

from __future__ import annotations

import os

from envlock.runtime.host import Host, read_bytes
from envlock.runtime.loader.elf import Elf, OtherMachineError, read_elf
from envlock.runtime.loader.ld_cache import (
    MULTIARCH,
    LdCache,
    find_default_folders,
    get_machine,
    list_hwcaps,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Optional, Tuple


LOADED, PRELOADED, RPATH, LIBRARY_PATH = "loaded", "LD_PRELOAD", "RPATH", "LD_LIBRARY_PATH"
RUNPATH, CACHE, DEFAULT, NOT_FOUND = "RUNPATH", "ld.so.cache", "default", "not found"


class Found:
    """The result for one soname.

    Attributes:
        soname: the requested name.
        file: path as the loader would open it on this machine, or None.
        resolved_by: why that file: one of the constants of this module.
        elf: its headers; None if there is no file, or a damaged one.
        problem: a sentence if the loader would fail with this file, else None.
    """

    __slots__ = ("elf", "file", "loader", "problem", "resolved_by", "soname")

    def __init__(
        self,
        soname: str,
        file: Optional[str] = None,
        resolved_by: str = NOT_FOUND,
        elf: Optional[Elf] = None,
        problem: Optional[str] = None,
    ) -> None:
        self.soname = soname
        self.file = file
        self.resolved_by = resolved_by
        self.elf = elf
        self.problem = problem
        # The library that loaded it, for the chain of RPATHs.
        self.loader: Optional[Found] = None


def parse_mapped_files(maps: str) -> List[str]:
    """Return the files in the text of `/proc/<pid>/maps`, each once, in the order of addresses."""
    deleted = " (deleted)"
    files: Dict[str, None] = {}
    for line in maps.splitlines():
        start = line.find("/")
        if start > 0 and ".so" in line:
            path = line[start:]
            if path.endswith(deleted):
                path = path[: -len(deleted)]
            files[path] = None
    return list(files)


def get_stem(soname: str) -> str:
    """Return the start of a library's name: `libcudnn` of `libcudnn.so.9`."""
    return soname.partition(".so")[0]


class Loader:
    """The dynamic loader as one process sees it: its variables at the start, the libraries that it
    has mapped, and the machine's folders.

    A library counts as loaded once it was requested, as in the process itself, so the order of
    requests matters.
    """

    def __init__(self, host: Host, environment: Iterable[str] = ()) -> None:
        """Prepare a search.

        Args:
            host: the machine; reads /proc/self/{environ,maps,exe}, /proc/cpuinfo and /etc/ld.so.*.
            environment: folders of the Python environment, which `host.root` does not move.

        Raises:
            OSError: /proc/self/maps exists and cannot be read.
        """
        self._host = host
        self._environment = tuple(os.path.realpath(folder) for folder in environment)
        self.machine = get_machine(host)
        self._elfs: Dict[str, Elf] = {}
        self._folders: Dict[str, Tuple[str, ...]] = {}
        self._expanded: Dict[Tuple[str, Optional[str]], Dict[str, None]] = {}
        self._loaded: Dict[str, Found] = {}
        self._hwcaps: Optional[Tuple[str, ...]] = None
        self._cache: Optional[LdCache] = None
        self._defaults: Optional[List[str]] = None
        self._exe: Optional[Elf] = None
        self._exe_read = False
        self.mapped = parse_mapped_files(host.read("/proc/self/maps", 1 << 26) or "")
        self._mapped_names = [(os.path.basename(path), path) for path in self.mapped]
        start = host.start_environ()
        self._library_path = start.get("LD_LIBRARY_PATH", "").replace(";", ":")
        self._preload: Optional[List[str]] = None

    def locate(self, path: str) -> str:
        """Return where this process finds a path of the loader; it differs if `host.root` is not
        `/`.
        """
        if self._host.root == "/" or path.startswith(self._host.root.rstrip("/") + "/"):
            return path
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if any(real.startswith(folder + "/") for folder in self._environment):
            return path
        return self._host.system(path)

    def read(self, path: str) -> Elf:
        """Return the headers of a library, which are read once.

        Raises:
            OtherMachineError, ValueError, OSError: as `read_elf`.
        """
        elf = self._elfs.get(path)
        if elf is None:
            elf = read_elf(self.locate(path), self.machine)
            elf.path = path
            self._elfs[path] = elf
        return elf

    def load(self, soname: str, caller: Found) -> Found:
        """Return the file that `dlopen(soname)` in `caller` would load, and remember it as loaded."""
        loaded = self._loaded.get(soname)
        if loaded is not None:
            return loaded
        found = self._find(soname, caller)
        found.loader = caller
        if found.file is not None:
            self._loaded[soname] = found
            if found.elf is not None and found.elf.soname:
                self._loaded.setdefault(found.elf.soname, found)
        return found

    def open(self, soname: str, caller: Found, prefixes: Tuple[str, ...]) -> Found:
        """Return `load`, and load the libraries that it needs, breadth first, as `dlopen` does.

        Only needed libraries whose names begin with one of `prefixes` are followed. If one is not
        found or is damaged, the whole `dlopen` fails: `problem` says so, and none of these
        libraries counts as loaded.
        """
        loaded = self._loaded.get(soname)
        if loaded is not None:
            return loaded
        before = dict(self._loaded)
        top = self.load(soname, caller)
        queue = [top]
        for library in queue:
            if library.elf is None:
                continue
            for need in library.elf.needed:
                if not need.startswith(prefixes) or need in self._loaded:
                    continue
                found = self.load(need, library)
                queue.append(found)
                if found.file is None or found.problem is not None:
                    top.problem = f"{need}, which it needs: {found.problem or 'not found'}"
                    self._loaded = before
                    return top
        return top

    def _find(self, soname: str, caller: Found) -> Found:
        searched = self._search(soname, caller)
        preloaded = self._find_preloaded(soname)
        if preloaded is not None:
            return self._take(soname, preloaded, PRELOADED)
        mapped = self._find_mapped(soname)
        if mapped is None:
            return searched
        if searched.file is not None and self._is_same_file(mapped, searched.file):
            # The search finds the very file that the process has already loaded, so it is recorded
            # as the reason.
            return searched
        return self._take(soname, mapped, LOADED)

    def _take(self, soname: str, path: str, resolved_by: str) -> Found:
        try:
            return Found(soname, path, resolved_by, self.read(path))
        except (OSError, ValueError) as error:
            return Found(soname, path, resolved_by, problem=str(error))

    def _is_same_file(self, one: str, other: str) -> bool:
        try:
            return os.path.samefile(self.locate(one), self.locate(other))
        except OSError:
            return False

    def _find_mapped(self, soname: str) -> Optional[str]:
        """Return the mapped file with that DT_SONAME, as `_dl_name_match_p` finds it."""
        prefix = get_stem(soname)
        for name, path in self._mapped_names:
            if name.startswith(prefix) and self._get_soname(path) == soname:
                return path
        return None

    def _get_soname(self, path: str) -> Optional[str]:
        try:
            return self.read(path).soname
        except (OSError, ValueError):  # it was replaced after it was mapped, or is not a library
            return None

    def _find_preloaded(self, soname: str) -> Optional[str]:
        for name in self._list_preloads():
            if "/" in name and self._get_soname(name) == soname:
                return name
            # A name without a folder is searched for as a dependency of the program.
            if name == soname:
                found = self._search(name, Found(name))
                if found.file is not None:
                    return found.file
        return None

    def _list_preloads(self) -> List[str]:
        if self._preload is None:
            variable = self._host.start_environ().get("LD_PRELOAD", "")
            names = variable.replace(":", " ").split()
            try:
                text = self._host.read("/etc/ld.so.preload") or ""
            except OSError:  # the loader works without it, too
                text = ""
            for line in text.splitlines():
                names += line.partition("#")[0].replace(":", " ").split()
            self._preload = names
        return self._preload

    def _search(self, soname: str, caller: Found) -> Found:
        """Search in the order that the module's docstring gives."""
        elf = caller.elf
        found = self._search_rpaths(soname, caller) if elf is None or not elf.has_runpath else None
        if found is None:
            exe = self._read_executable()
            program = os.path.dirname(exe.path) if exe is not None else None
            folders = self.expand(self._library_path, program)
            found = self._search_folders(soname, folders, LIBRARY_PATH)
        if found is None and elf is not None:
            folders = self.expand(elf.runpath, os.path.dirname(elf.path))
            found = self._search_folders(soname, folders, RUNPATH)
        if found is None:
            found = self._search_cache(soname, elf)
        if found is None and (elf is None or not elf.nodeflib):
            found = self._search_folders(soname, self._get_default_folders(), DEFAULT)
        if found is None:
            return Found(soname)
        return found

    def _search_rpaths(self, soname: str, caller: Found) -> Optional[Found]:
        """Search the RPATH of the caller, of the libraries that loaded it, and last of the program."""
        asker: Optional[Found] = caller
        while asker is not None:
            if asker.elf is not None and asker.elf.rpath:
                folders = self.expand(asker.elf.rpath, os.path.dirname(asker.elf.path))
                found = self._search_folders(soname, folders, RPATH)
                if found is not None:
                    return found
            asker = asker.loader
        exe = self._read_executable()
        if exe is None or not exe.rpath:
            return None
        return self._search_folders(
            soname, self.expand(exe.rpath, os.path.dirname(exe.path)), RPATH
        )

    def _read_executable(self) -> Optional[Elf]:
        if not self._exe_read:
            self._exe_read = True
            try:
                self._exe = self.read(os.readlink(self._host.system("/proc/self/exe")))
            except (OSError, ValueError):
                pass
        return self._exe

    def expand(self, text: str, origin: Optional[str]) -> Dict[str, None]:
        """Return the folders of a search path, each once; an empty one is the current folder."""
        expanded = self._expanded.get((text, origin))
        if expanded is not None:
            return expanded
        folders: Dict[str, None] = {}
        self._expanded[text, origin] = folders
        if not text:
            return folders
        for part in dict.fromkeys(text.split(":")):
            folder: Optional[str] = self._expand_tokens(part, origin) if "$" in part else part
            if folder is None:
                continue
            if not folder.startswith("/"):
                folder = os.path.join(os.getcwd(), folder)
            folders[folder] = None
        return folders

    def _expand_tokens(self, part: str, origin: Optional[str]) -> Optional[str]:
        values = {"ORIGIN": origin, "PLATFORM": self._host.uname()[2], "LIB": None}
        if "LIB" in part:
            multiarch = "lib/" + MULTIARCH[self.machine]
            is_debian = "/" + multiarch in self._get_default_folders()
            values["LIB"] = multiarch if is_debian else "lib64"
        for token, value in values.items():
            for spelling in ("${" + token + "}", "$" + token):
                if spelling in part:
                    if value is None:
                        return None  # glibc drops an element that it cannot expand
                    part = part.replace(spelling, value)
        return part

    def _search_folders(
        self, soname: str, folders: Iterable[str], resolved_by: str
    ) -> Optional[Found]:
        for folder in folders:
            for subfolder in self.list_subfolders(folder):
                found = self._try(soname, subfolder + soname, resolved_by)
                if found is not None:
                    return found
        return None

    def _try(self, soname: str, path: str, resolved_by: str) -> Optional[Found]:
        """Return the result for a path; None if the loader continues to search."""
        try:
            return Found(soname, path, resolved_by, self.read(path))
        except OtherMachineError:
            return None
        except IsADirectoryError:
            return Found(soname, path, resolved_by, problem="cannot read file data: Is a directory")
        except OSError:
            return None
        except ValueError as error:
            return Found(soname, path, resolved_by, problem=str(error))

    def list_subfolders(self, folder: str) -> Tuple[str, ...]:
        """Return the existing folders of one entry of a search path, each with its slash."""
        subfolders = self._folders.get(folder)
        if subfolders is None:
            location = self.locate(folder)
            plain = folder.rstrip("/") + "/"
            names: List[str] = []
            if os.path.isdir(location):
                if os.path.isdir(location + "/glibc-hwcaps"):
                    names = [f"{plain}glibc-hwcaps/{name}/" for name in self._get_hwcaps()]
                names.append(plain)
            subfolders = self._folders[folder] = tuple(names)
        return subfolders

    def _get_hwcaps(self) -> Tuple[str, ...]:
        if self._hwcaps is None:
            self._hwcaps = list_hwcaps(self._host, self.machine)
        return self._hwcaps

    def _search_cache(self, soname: str, caller: Optional[Elf]) -> Optional[Found]:
        if self._cache is None:
            try:
                data = read_bytes(self._host.system("/etc/ld.so.cache"), 1 << 24)
            except OSError:  # the loader works without it, too
                data = None
            self._cache = LdCache(data or b"", self.machine, self._get_hwcaps())
        path = self._cache.lookup(soname)
        if path is None:
            return None
        ignores_defaults = caller is not None and caller.nodeflib
        if ignores_defaults and os.path.dirname(path) in self._get_default_folders():
            return None
        return self._try(soname, path, CACHE)

    def find_usual(self, soname: str) -> Optional[str]:
        """Return the file that the loader finds without a search path, or None."""
        found = self._search_cache(soname, None)
        if found is None:
            found = self._search_folders(soname, self._get_default_folders(), DEFAULT)
        return found.file if found is not None else None

    def _get_default_folders(self) -> List[str]:
        if self._defaults is None:
            self._defaults = find_default_folders(self._host, self.machine)
        return self._defaults
