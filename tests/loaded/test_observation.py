"""What a process of the environment loads, as `capture` locks it and `verify` compares it; with a package in
TensorFlow's place, as only the files count.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.workflows.loaded import BEFORE, NOW
from tests.conftest import Command
from tests.machines import distribution, write

PLUGIN = "site-packages/tensorflow-plugins/p.so"
TENSORFLOW = """
import ctypes, json, math, os, random
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


class Environment:
    """A lockfile of an environment, and the way to ask for the verdict."""

    def __init__(self, envlock: Command, folder: Path) -> None:
        self.folder, self.envlock = folder, envlock
        site = folder / "site-packages"
        write(folder, {"pyproject.toml": "", "site-packages/tensorflow/__init__.py": TENSORFLOW})
        for name in ("tensorflow", "numpy"):
            row = "tensorflow/__init__.py,,\n" if name == "tensorflow" else "numpy/__init__.py,,\n"
            distribution(site, name, "2.21.0", {"INSTALLER": "pip\n", "RECORD": row})
        self.environ = {"PYTHONPATH": str(site), "XDG_CACHE_HOME": str(folder / "cache")}

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.envlock(*words, environ={**self.environ, **variables})

    def ask(self, **variables: str) -> list[str]:
        """Return the lines on what is loaded and differs."""
        done = self.run("verify", "--policy", "strict", **variables)
        return [line.strip() for line in done.stdout.splitlines() if line.startswith("  x loaded.")]


@pytest.fixture
def environment(envlock: Command, tmp_path: Path) -> Environment:
    made = Environment(envlock, tmp_path)
    done = made.run("capture")
    assert done.returncode == 0, done.stderr
    return made


def preload(made: Environment) -> dict[str, str]:
    path = shutil.copy(find_library("libm.so"), made.folder / "p.bin")
    return {"LD_PRELOAD": str(change(Path(path)))}


def search(made: Environment) -> dict[str, str]:
    (made.folder / "lib").mkdir()
    change(Path(shutil.copy(find_library("libm.so"), made.folder / "lib" / "libm.so.6")))
    return {"LD_LIBRARY_PATH": str(made.folder / "lib")}


def plug_in(made: Environment) -> dict[str, str]:
    (made.folder / PLUGIN).parent.mkdir()
    shutil.copy(find_library("libm.so"), made.folder / PLUGIN)
    return {}


def add_module(made: Environment) -> dict[str, str]:
    write(made.folder, {"site-packages/extra.py": "import math\nmath.sin = math.cos\n"})
    return {}


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
    "a plug-in": (plug_in, "p.so: TensorFlow opens each library of a folder tensorflow-plugins"),
    "a module that no package lists": (add_module, "extra.py: it lies among the installed packages"),
    "another size than in the RECORD": (grow, "l.so: its package lists it with another size"),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_another_file_is_a_difference_that_names_it_and_who_asked(name: str, environment: Environment) -> None:
    act, words = HARMFUL[name]
    found = environment.ask(**act(environment))
    assert len(found) == 1, found
    assert words in found[0]


def test_nothing_is_a_difference_twice(environment: Environment) -> None:
    assert (environment.ask(), environment.run("verify", "-v").stdout.splitlines()[-1]) == ([], BEFORE)
    assert environment.run("verify").stdout == "matches under policy strict\n"
    (environment.folder / "lib").mkdir()
    shutil.copy(find_library("libm.so"), environment.folder / "lib" / "libm.so.6")
    assert environment.ask(LD_LIBRARY_PATH=str(environment.folder / "lib")) == []


def test_another_library_is_seen_though_its_time_and_size_are_as_before(environment: Environment) -> None:
    found = search(environment)
    path = environment.folder / "lib" / "libm.so.6"
    assert environment.run("capture", **found).returncode == 0
    assert environment.ask(**found) == []
    status = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    (line,) = environment.ask(**found)
    assert line.startswith(f"x loaded.libm: not the locked file: {path}")


def test_an_edited_module_of_python_itself_is_named(environment: Environment) -> None:
    lock = environment.folder / "envlock.lock"
    document = json.loads(lock.read_bytes())
    digest, *parts = document["facts"]["loaded"]["standard"]["random"].split()
    assert (len(digest), parts) == (16, [])
    document["facts"]["loaded"]["standard"]["random"] = "0" * 16
    lock.write_text(json.dumps(document), encoding="utf-8")
    library = Path(os.__file__).resolve().parent
    assert environment.ask() == [f"x loaded.standard.random: not the locked file: {library}/random.py"]


def test_without_a_look_nothing_is_said_to_match(environment: Environment) -> None:
    done = environment.run("verify", "--static", **search(environment))
    assert "loaded: not compared, by files only" in done.stdout
    assert "loaded." not in done.stdout
    static = environment.run("capture", "--static", "-o", "static.lock")
    assert static.returncode == 0
    assert "loaded" not in json.loads((environment.folder / "static.lock").read_bytes())["facts"]
    assert environment.run("verify", "static.lock").stdout.count(NOW) == 0


def test_an_environment_that_cannot_be_imported_is_locked_and_that_is_said(environment: Environment) -> None:
    init = environment.folder / "site-packages/tensorflow/__init__.py"
    init.write_text("raise OSError('libcudart')\n", encoding="utf-8")
    done = environment.run("capture", "-o", "broken.lock")
    assert done.stderr.splitlines()[1] == "warning: loaded: not compared: `import tensorflow` raised OSError"
    assert (
        environment.run("verify").stdout.splitlines()[1] == "loaded: not compared: `import tensorflow` raised OSError"
    )


def test_the_section_names_no_place_of_this_machine(environment: Environment) -> None:
    text = json.dumps(json.loads((environment.folder / "envlock.lock").read_bytes())["facts"]["loaded"])
    assert "/" not in text
    assert len(text) < 15_000
    assert sys.prefix not in text
