"""Note which files a Python process runs as modules and which libraries it maps: run alone, as
`sitecustomize`.

Its folder stands first in PYTHONPATH, so that child processes note theirs, too. It is taken from
the import path here. Each module is noted when it starts, so that a process that crashes or is
killed leaves its modules. Libraries are read at the end of a process: one that is killed, or that
ends by `os._exit` (a fork of multiprocessing), leaves none. The name of a file is written as soon
as it is known, by opening and closing: a program may close all descriptors, and use their numbers
for its own files.
"""

import atexit
import contextlib
import os
import sys
import types
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Set, Tuple

FOLDER = os.path.dirname(os.path.abspath(__file__))
SEEN = "seen"
"""The file of the notes: a line for each file, its kind and its path."""


class Notes:
    """The files of this process that are noted already."""

    def __init__(self) -> None:
        self.paths = set()  # type: Set[str]

    def add(self, kind: str, path: object) -> None:
        """Note a file once, by one write, so that the lines of several processes do not mix."""
        if not isinstance(path, str) or path in self.paths or path[:1] == "<":
            return
        self.paths.add(path)
        line = os.fsencode("{}\t{}\n".format(kind, os.path.abspath(path).replace("\n", "?")))
        notes = os.path.join(FOLDER, SEEN)
        stream = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(stream, line)
        finally:
            os.close(stream)

    def observe_event(self, event: str, args: "Tuple[object, ...]") -> None:
        """Note the file of code that is run, and of an extension module that is imported: an audit
        hook.
        """
        # What an audit hook raises would stop the program.
        with contextlib.suppress(Exception):
            if event == "exec":
                self.add("imported", getattr(args[0], "co_filename", None))
            elif event == "import":
                # The file of an extension module; None for any other.
                self.add("imported", args[1])

    def add_all(self) -> None:
        """Note the modules and the libraries that are there at the end of the process."""
        for module in list(sys.modules.values()):
            with contextlib.suppress(Exception):
                # Past `__getattr__`: a lazy module would be loaded by a look at it.
                attributes = types.ModuleType.__getattribute__(module, "__dict__")
                self.add("imported", attributes.get("__file__"))
        with contextlib.suppress(Exception):
            with open("/proc/self/maps", errors="surrogateescape") as maps:
                lines = maps.readlines()
            for path in find_libraries(lines):
                self.add("mapped", path)


def find_libraries(lines: "Iterable[str]") -> "Set[str]":
    """Return the paths of shared libraries in lines of /proc/self/maps."""
    return {line.split(None, 5)[5].rstrip("\n") for line in lines if ".so" in line}


def observe() -> None:
    """Note from now on."""
    notes = Notes()
    if hasattr(sys, "addaudithook"):  # from Python 3.8 on
        sys.addaudithook(notes.observe_event)
    atexit.register(notes.add_all)


def run_own_sitecustomize() -> None:
    """Run the `sitecustomize` of the environment, where it has one: this one stands before it on
    the path.
    """
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != FOLDER]
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        own = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(own)


if __name__ == "sitecustomize":
    observe()
    run_own_sitecustomize()
