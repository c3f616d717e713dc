"""Record which files a Python process runs as modules and which libraries it maps: a standalone
module, imported as `sitecustomize`.

Its folder is the first in PYTHONPATH, so that child processes record theirs, too; here it is
removed from the import path. Each module is recorded when it starts, so that the modules of a
process that crashes or is killed are known. Libraries are read at the end of a process: those of a
process that is killed, or that ends with `os._exit` (a fork of multiprocessing), are not known. The
name of a file is written as soon as it is known, by opening and closing: a program may close all
descriptors, and use their numbers for its own files.
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
"""The file of the record: a line for each file, with its kind and its path."""


class Notes:
    """The files of this process that have been recorded."""

    def __init__(self) -> None:
        self.paths = set()  # type: Set[str]

    def add(self, kind: str, path: object) -> None:
        """Record a file once, with one write, so that the lines of several processes do not mix."""
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
        """Record the file of code that is run, and of an extension module that is imported: an
        audit hook.
        """
        # An exception from an audit hook would stop the program.
        with contextlib.suppress(Exception):
            if event == "exec":
                self.add("imported", getattr(args[0], "co_filename", None))
            elif event == "import":
                # The file of an extension module; None for any other.
                self.add("imported", args[1])

    def add_all(self) -> None:
        """Record the modules and the libraries that are loaded at the end of the process."""
        for module in list(sys.modules.values()):
            with contextlib.suppress(Exception):
                # Without `__getattr__`: accessing an attribute would load a lazy module.
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
    """Record from now on."""
    notes = Notes()
    if hasattr(sys, "addaudithook"):  # from Python 3.8 on
        sys.addaudithook(notes.observe_event)
    atexit.register(notes.add_all)


def run_own_sitecustomize() -> None:
    """Run the `sitecustomize` of the environment, if it has one: this module goes before it on the
    path.
    """
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != FOLDER]
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        own = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(own)


if __name__ == "sitecustomize":
    observe()
    run_own_sitecustomize()
