"""Notes which files a Python process runs as modules and which libraries it maps: run alone, as `sitecustomize`.

Its folder stands first in PYTHONPATH, so that child processes note theirs, too, and is taken from the import path here.
Each module is noted when it starts, so a process that crashes or is killed leaves them; libraries are read at its end,
which a killed one and one that ends by `os._exit` (forked by multiprocessing) do not reach. A file's name is written as
soon as it is known, by opening and closing: a program may close all descriptors, and use their numbers for its own.
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
    from typing import Any, Set

FOLDER = os.path.dirname(os.path.abspath(__file__))
SEEN = "seen"


def observe() -> None:
    """Note from now on."""
    seen: "Set[str]" = set()

    def note(kind: str, path: object) -> None:
        if isinstance(path, str) and path not in seen and path[:1] != "<":
            seen.add(path)
            line = os.fsencode("{}\t{}\n".format(kind, os.path.abspath(path).replace("\n", "?")))
            stream = os.open(
                os.path.join(FOLDER, SEEN), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
            )
            try:
                os.write(stream, line)
            finally:
                os.close(stream)

    def hook(event: str, args: "Any") -> None:
        with contextlib.suppress(Exception):  # what is raised here would stop the program
            if event == "exec":
                note("imported", getattr(args[0], "co_filename", None))
            elif event == "import":
                note("imported", args[1])  # of an extension module, else None

    def finish() -> None:
        for module in list(sys.modules.values()):
            with contextlib.suppress(Exception):  # a lazy one must not be loaded by looking at it
                note(
                    "imported",
                    types.ModuleType.__getattribute__(module, "__dict__").get("__file__"),
                )
        with contextlib.suppress(Exception):
            with open("/proc/self/maps", errors="surrogateescape") as maps:
                lines = maps.readlines()
            for path in {line.split(None, 5)[5].rstrip("\n") for line in lines if ".so" in line}:
                note("mapped", path)

    if hasattr(sys, "addaudithook"):  # Python 3.8
        sys.addaudithook(hook)
    atexit.register(finish)


def give_way() -> None:
    """Run the environment's own `sitecustomize`, where it has one."""
    sys.path[:] = [each for each in sys.path if os.path.abspath(each) != FOLDER]
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        own = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(own)


if __name__ == "sitecustomize":
    observe()
    give_way()
