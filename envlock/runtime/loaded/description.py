"""Name the files that a process has loaded by role and owner, never by a path of this machine.

What a package lists is left out: of the package, the list is named (`packages`). The rest is

- of Python itself: the program, its library and its extension modules (`interpreter`), and the modules of the
  standard library that ran (`standard`);
- a library that computes, or lies below what does: by its role, its soname and its content;
- how the processor computes by now, as any library can change that when it is loaded (`arithmetic`);
- explained by nothing: a plugin, a preloaded library, a module among packages that none of them lists (`unexplained`).

Other libraries of the system, and the program's own modules, explain themselves.
"""

from __future__ import annotations

import os
import sys
from fnmatch import fnmatchcase
from hashlib import sha256

from envlock.runtime.collectors.named_files import read_preload
from envlock.runtime.collectors.python import ARITHMETIC, collect_arithmetic, format_arithmetic
from envlock.runtime.loaded.explained import get_line
from envlock.runtime.loaded.owners import DIGITS, FOREIGN, LISTED, UNLISTED, Owners
from envlock.runtime.loader.elf import read_elf
from envlock.runtime.loader.search import Loader
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Dict, Iterable, List, Mapping, Optional, Set, Tuple

    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host
    from envlock.runtime.loaded.identities import Identities

INTERPRETER, STANDARD, UNEXPLAINED = "interpreter", "standard", "unexplained"
PACKAGES = "packages"
OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + "/"
PLUGINS = "/tensorflow-plugins/"
"""TensorFlow opens each library in such a folder: `load_library_from_config` in tensorflow/python/framework/load_library.py"""
LOADER_FILES = ("/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/alternatives")
"""What chooses libraries beside folders and variables."""
BY_PRELOAD = "LD_PRELOAD or /etc/ld.so.preload puts it into every program"
BY_SEARCH = "a folder of LD_LIBRARY_PATH puts it in front of the system's"
BY_PLUGINS = "TensorFlow opens each library of a folder tensorflow-plugins"
BY_FOLDER = "it lies among the installed packages, and none of them lists it"
BY_SIZE = "its package lists it with another size"
BY_NAME = "it is imported in place of Python's own"


class Description:
    """What a process has loaded, by role and owner.

    Attributes:
        facts: the section `loaded`, without what was imported.
        places: the path of each file in it, by what the facts call it, and who asked for it, if that is known;
            that of a library also by its role.
        compared: the modules of which the content is in the facts.
        unread: the mapped files that could not be read.
    """

    def __init__(
        self, host: Host, identities: Identities, parts: Optional[Mapping[str, List[str]]] = None
    ) -> None:
        """Prepare to describe the files of this process.

        Args:
            host: the machine.
            identities: what files are, as far as that is known.
            parts: the modules of the standard library and those of their parts that are described, as a lockfile
                has them; else those that ran.
        """
        self.facts: Tree = {INTERPRETER: {}, STANDARD: {}, UNEXPLAINED: []}
        self.facts[ARITHMETIC] = format_arithmetic(collect_arithmetic())
        self.places: Dict[str, str] = {}
        self.compared: Set[str] = set()
        self._computing: Dict[str, str] = {}
        self.unread: Set[str] = set()
        self._parts = parts
        self._host = host
        self._identities = identities
        self._owners = Owners(host)
        self._seen: Set[str] = set()
        self._asked_loader: Optional[Loader] = None
        self._usual_library = os.path.dirname(os.__file__) + "/"
        self._library = os.path.realpath(self._usual_library) + "/"
        self._roles = {name: tuple(begins) for name, begins in table("loaded")["roles"].items()}
        self._preloads = self._find_preloads()
        contents = self._owners.list_contents()
        self.facts[PACKAGES] = {name: content for name, (content, _) in sorted(contents.items())}
        self.places.update({f"{PACKAGES}.{name}": path for name, (_, path) in contents.items()})
        marks = self._owners.list_marks()
        if identities.sites != marks:
            identities.sites, identities.explained, identities.is_changed = marks, set(), True

    def list_looked(self) -> List[str]:
        """Return the files and folders of which a change may change what is loaded."""
        folders = {os.path.dirname(path) for path in self._seen}
        for folder in self._loader().expand(self._get_search_path(), None):
            folders.update([folder, *self._loader().list_subfolders(folder)])
        ask = getattr(sys.modules.get("site"), "getusersitepackages", str)
        sites = [entry for entry in [*self._host.path, ask()] if entry]
        plugins = [os.path.join(site, PLUGINS.strip("/")) for site in sites]
        lists = [self.places[f"{PACKAGES}.{name}"] for name in self.facts[PACKAGES]]
        return sorted({*self._seen, *folders, *sites, *plugins, *lists, *LOADER_FILES})

    def list_sites(self) -> List[str]:
        """Return the folders of installed packages."""
        return self._owners.list_folders()

    def list_computing(self, roles: Collection[str]) -> List[str]:
        """Return the files of the libraries that play these parts."""
        return [path for path, role in self._computing.items() if role in roles]

    def add_mapped(self, paths: Iterable[str]) -> None:
        """Add files that are mapped as code."""
        paths = list(paths)
        self._seen.update(paths)
        program = os.path.realpath(sys.executable)
        for path in paths:
            name = os.path.basename(path)
            try:
                if (
                    path == program
                    or name.startswith("libpython")
                    or path.startswith(f"{self._library}lib-dynload/")
                ):
                    self._add_interpreter(name.partition(".")[0], path)
                else:
                    self._add_library(path, name)
            except (OSError, ValueError):  # removed since, or a file of another kind
                self.unread.add(path)
        for role in self._roles:
            if role in self.facts:
                self.facts[role].sort()

    def add_modules(self, files: Iterable[str]) -> None:
        """Add the files of modules that ran."""
        files = list(files)
        self._seen.update(files)
        explained = self._identities.explained
        standard: Dict[str, Dict[str, str]] = {}
        for file in files:
            if file in explained or file.startswith(OURS):
                continue
            real = file
            if file.startswith((self._library, self._usual_library)):
                real = self._owners.resolve(file)
            if real.startswith(self._library) and "/site-packages/" not in real:
                top, _, rest = real[len(self._library) :].partition("/")
                standard.setdefault(top, {})[rest] = file
                continue
            self._add_module(file)
        for top, parts in standard.items():
            self._add_standard(top, parts)
        self.facts[UNEXPLAINED].sort()

    def _add_interpreter(self, name: str, path: str) -> None:
        name = "python" if name.startswith("python") else name
        self.facts[INTERPRETER][name] = _shorten(self._identities.get(path))
        self.places[f"{INTERPRETER}.{name}"] = path

    def _add_library(self, path: str, name: str) -> None:
        mark = get_line(path)
        if mark is None or mark in self._identities.explained:
            return
        state = self._owners.find(path)
        if state == LISTED:
            size = self._owners.get_size(path)
            if size is None or size == os.path.getsize(path):
                self._explain(mark)
            else:
                self._add_unexplained(path, name, BY_SIZE)
            return
        if path in self._preloads:  # it stands for the library whose soname it has
            name = read_elf(path).soname or name
        role = next((role for role, begins in self._roles.items() if name.startswith(begins)), None)
        asker = self._find_asker(path, name, state)
        if role is not None:
            name = read_elf(path).soname or name
            entry = f"{name} {self._identities.get(path)}"
            entries = self.facts.setdefault(role, [])
            if entry not in entries:  # a copy of the system's own can be loaded beside it
                entries.append(entry)
            self._computing[path] = role
            self.places[entry] = f"{path}: {asker}" if asker else path
            self.places[f"{role}/{entry}"] = path
        if asker is not None:
            self._add_unexplained(path, name, asker)

    def _find_asker(self, path: str, name: str, state: str) -> Optional[str]:
        """Return why a library that no package lists is there, if that explains nothing."""
        if path in self._preloads:
            return BY_PRELOAD
        if PLUGINS in path:
            return BY_PLUGINS
        asker = BY_FOLDER if state == UNLISTED else self._find_searcher(path)
        return None if asker is None or self._is_of_system(path, name) else asker

    def _find_searcher(self, path: str) -> Optional[str]:
        search = self._get_search_path()
        for folder in self._loader().expand(search, None) if search else ():
            if path.startswith(os.path.realpath(folder) + "/"):
                return BY_SEARCH
        return None

    def _is_of_system(self, path: str, name: str) -> bool:
        """Return whether a library is the system's own, or a copy."""
        usual = self._loader().find_usual(read_elf(path).soname or name)
        if usual is None or os.path.samefile(usual, path):
            return usual is not None
        return self._identities.get(usual) == self._identities.get(path)

    def _loader(self) -> Loader:
        """Return the dynamic loader, which reads its files when it is asked for the first time."""
        if self._asked_loader is None:
            self._asked_loader = Loader(self._host)
        return self._asked_loader

    def _get_search_path(self) -> str:
        return self._host.start_environ().get("LD_LIBRARY_PATH", "").replace(";", ":")

    def _find_preloads(self) -> Tuple[str, ...]:
        names = f"{self._host.start_environ().get('LD_PRELOAD', '')} {read_preload(self._host)}"
        found = []
        for name in names.replace(":", " ").split():
            paths = self._loader().expand(name, None) if "/" in name else ()
            found += [os.path.realpath(path) for path in paths]
            if "/" not in name:
                found += [path for path in self._loader().mapped if os.path.basename(path) == name]
        return tuple(found)

    def _add_unexplained(self, path: str, name: str, asker: str) -> None:
        entry = f"{name} {self._identify(path)}"
        self.compared.add(path)
        if entry not in self.facts[UNEXPLAINED]:
            self.facts[UNEXPLAINED].append(entry)
        self.places[entry] = f"{path}: {asker}"

    def _identify(self, path: str) -> str:
        """Return what a file is; of a module in an archive, what the archive is."""
        while path and not os.path.lexists(path):
            path = path.rpartition("/")[0]
        return self._identities.get(path) if os.path.isfile(path) else "unread"

    def _explain(self, line: str) -> None:
        if "\n" not in line:  # it is one line of the note
            self._identities.explained.add(line)
            self._identities.is_changed = True

    def _add_module(self, file: str) -> None:
        """Add a module that is not of the standard library."""
        state = self._owners.find(file)
        name = os.path.basename(file)
        if state == FOREIGN:
            # The program's own, unless Python has one of this name.
            stem = name.partition(".")[0]
            if name == "__init__.py":
                stem = os.path.basename(os.path.dirname(file))
            names = getattr(sys, "stdlib_module_names", ())  # from Python 3.10 on
            if stem in names and getattr(sys.modules.get(stem), "__file__", None) == file:
                self._add_unexplained(file, name, BY_NAME)
            return
        if state == LISTED or _is_known(name):
            self._explain(file)
        elif os.path.isfile(file):
            self._add_unexplained(file, name, BY_FOLDER)

    def _add_standard(self, top: str, files: Dict[str, str]) -> None:
        """Add a module of the standard library, of which these files ran, by their paths in its folder."""
        name = top.partition(".")[0]
        if name in table("loaded")["patched"] or name.startswith("_sysconfigdata"):
            return
        if top == "lib-dynload":
            return
        if self._parts is None:
            stems = sorted(part.partition(".")[0].replace("/", ".") for part in files if part)
            self.add_standard_module(name, stems)
        elif name in self._parts:
            self.add_standard_module(name, self._parts[name])
        if name in self.facts[STANDARD]:
            self.compared.update(files.values())

    def add_standard_module(self, name: str, parts: List[str]) -> None:
        """Add one module of the standard library, and those of its parts that ran."""
        path = f"{self._library}{name}.py"
        if parts:
            path = f"{self._library}{name}/__init__.py"
            files = [f"{self._library}{name}/{part.replace('.', '/')}.py" for part in parts]
        else:
            files = [path]
        try:
            found = [self._identities.get(file) for file in files]
        except OSError:
            return
        digest = sha256("\n".join(found).encode("ascii")).hexdigest()[:DIGITS]
        self.facts[STANDARD][name] = " ".join([digest, *parts])
        self.places[f"{STANDARD}.{name}"] = path


def _shorten(identity: str) -> str:
    return sha256(identity.encode("ascii")).hexdigest()[:DIGITS]


def _is_known(name: str) -> bool:
    """Return whether a known tool puts a module of this name among packages."""
    return any(fnmatchcase(name, row["path"]) for row in table("files")["known"])
