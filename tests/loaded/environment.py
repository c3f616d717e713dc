"""An environment with a package in TensorFlow's place, and what can be done to it: only the files count."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.conftest import Command
from tests.machines import distribution, write

PLUGIN = "site-packages/tensorflow-plugins/p.so"
TENSORFLOW = """
import ctypes, json, math, numpy, os, random
folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "tensorflow-plugins")
for name in os.listdir(folder) if os.path.isdir(folder) else ():
    ctypes.CDLL(os.path.join(folder, name))
try:
    import extra
except ImportError:
    pass
"""


def find_library(name: str) -> Path:
    """Return the file of a library that every process has."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        path = Path(line.rpartition(" ")[2])
        if path.name.startswith(name):
            return path
    pytest.skip(f"no {name} in this process")


def change(path: Path) -> Path:
    """Return a file with one byte more: for the loader it is the same library."""
    path.write_bytes(path.read_bytes() + b"\0")
    return path


UNMEASURED = {"COVERAGE_PROCESS_CONFIG": ""}
"""Variables of a process in which coverage loads no modules and libraries of its own."""


class Environment:
    """A lockfile of an environment, and the way to ask for the verdict."""

    def __init__(self, envlock: Command, folder: Path) -> None:
        self.folder, self.envlock = folder, envlock
        site = folder / "site-packages"
        write(folder, {"pyproject.toml": "", "site-packages/tensorflow/__init__.py": TENSORFLOW})
        write(site, {"numpy/__init__.py": ""})
        for name in ("tensorflow", "numpy"):
            row = "tensorflow/__init__.py,,\n" if name == "tensorflow" else "numpy/__init__.py,,\n"
            distribution(site, name, "2.21.0", {"INSTALLER": "pip\n", "RECORD": row})
        self.environ = {"PYTHONPATH": str(site), "XDG_CACHE_HOME": str(folder / "cache")}

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.envlock(*words, environ={**self.environ, **variables})

    def script(self, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Python code in the environment."""
        python = Command([sys.executable], self.folder)
        return python("-c", code, environ={**self.environ, **variables})

    def ask(self, **variables: str) -> list[str]:
        """Return the lines on what is loaded and differs."""
        done = self.run("verify", "--policy", "strict", **variables)
        return [line.strip() for line in done.stdout.splitlines() if line.startswith("  x loaded.")]


def preload(made: Environment) -> dict[str, str]:
    path = shutil.copy(find_library("libm.so"), made.folder / "p.bin")
    return {"LD_PRELOAD": str(change(Path(path)))}


def search(made: Environment) -> dict[str, str]:
    (made.folder / "lib").mkdir()
    change(Path(shutil.copy(find_library("libm.so"), made.folder / "lib" / "libm.so.6")))
    return {"LD_LIBRARY_PATH": str(made.folder / "lib")}


def search_without_a_part(made: Environment) -> dict[str, str]:
    """Change a library that computes nothing, and that can bring any other along."""
    (made.folder / "lib").mkdir()
    library = find_library("libffi.so")
    change(Path(shutil.copy(library, made.folder / "lib" / ".".join(library.name.split(".")[:3]))))
    return {"LD_LIBRARY_PATH": str(made.folder / "lib")}


def plug_in(made: Environment) -> dict[str, str]:
    (made.folder / PLUGIN).parent.mkdir()
    shutil.copy(find_library("libm.so"), made.folder / PLUGIN)
    return {}


def add_module(made: Environment) -> dict[str, str]:
    write(made.folder, {"site-packages/extra.py": "import math\nmath.tau = 6\n"})
    return {}


def put_into_archive(made: Environment) -> dict[str, str]:
    """Put a module of Python's name into an archive, which is searched first."""
    archive = made.folder / "app.zip"
    with ZipFile(archive, "w") as opened:
        opened.writestr("random.py", "")
    return {"PYTHONPATH": f"{archive}:{made.environ['PYTHONPATH']}"}


def grow(made: Environment) -> dict[str, str]:
    """Change what a package's own RECORD gives with another size."""
    library = made.folder / "site-packages/tensorflow/l.so"
    shutil.copy(find_library("libm.so"), library)
    record = made.folder / "site-packages/tensorflow-2.21.0.dist-info/RECORD"
    record.write_text(f"{record.read_text()}tensorflow/l.so,,7\n", encoding="utf-8")
    init = made.folder / "site-packages/tensorflow/__init__.py"
    init.write_text(f"{TENSORFLOW}\nctypes.CDLL({str(library)!r})\n", encoding="utf-8")
    return {}


HARMFUL: dict[str, tuple[Callable[[Environment], dict[str, str]], str]] = {
    "a preloaded library": (preload, "p.bin: LD_PRELOAD or /etc/ld.so.preload puts it into every program"),
    "a libm in a folder of the search path": (search, "libm.so.6: a folder of LD_LIBRARY_PATH puts it in front"),
    "any library in a folder of the search path": (search_without_a_part, "LD_LIBRARY_PATH puts it in front"),
    "a plug-in": (plug_in, "p.so: TensorFlow opens each library of a folder tensorflow-plugins"),
    "a module that no package lists": (add_module, "extra.py: it lies among the installed packages"),
    "a module of Python's in an archive": (put_into_archive, "random.py: it is imported in place of Python's own"),
    "another size than in the RECORD": (grow, "l.so: its package lists it with another size"),
}
