"""What a process has loaded and is not locked: the line is read and obeyed, and the answer is yes again."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import Command, absent
from tests.loaded.environment import PLUGIN, TENSORFLOW, Environment, add_module, change, find_library, plug_in, search
from tests.locks import encode
from tests.machines import write

pytestmark = [pytest.mark.processes, pytest.mark.longer]

Variables = dict[str, str]


class Case(NamedTuple):
    """A state that is not the locked one.

    Attributes:
        fact: the path of the fact that differs.
        make: makes it, and returns the variables that do.
        says: what the printed line has to have.
        obey: does what the line says; what variables do ends without them.
        before: makes the state that is locked, and returns its variables.
    """

    fact: str
    make: Callable[[Environment], Variables]
    says: str
    obey: Callable[[Environment], object] = lambda made: None
    before: Callable[[Environment], Variables] = lambda made: {}


def open_blas(made: Environment, folder: str = "locked") -> Variables:
    """Let the import of TensorFlow open a BLAS, and the loader find that of a folder."""
    write_init(made, "ctypes.CDLL('libblas.so.3')")
    library = made.folder / folder / "libblas.so.3"
    if not library.exists():
        library.parent.mkdir()
        shutil.copy(find_library("libm.so"), library)
        if folder != "locked":
            change(library)
    return {"LD_LIBRARY_PATH": str(library.parent)}


def write_init(made: Environment, line: str = "") -> Variables:
    """Let the import of TensorFlow run a line more."""
    path = made.folder / "site-packages/tensorflow/__init__.py"
    path.write_text(f"{TENSORFLOW}\n{line}\n", encoding="utf-8")
    return {}


def edit(*parts: str) -> Callable[[Environment], Variables]:
    """Return what makes a digest of the lockfile that of another file."""

    def do(made: Environment) -> Variables:
        path = made.folder / "envlock.lock"
        lock = json.loads(path.read_bytes())
        section = lock["facts"]["loaded"]
        for part in parts[:-1]:
            section = section[part]
        value = section[parts[-1]]
        is_list = isinstance(value, list)
        digest, *others = (value[0] if is_list else value).split()
        changed = " ".join([digest[::-1], *others])
        section[parts[-1]] = [changed] if is_list else changed
        path.write_bytes(encode(lock))
        return {}

    return do


def run_at_start(made: Environment, code: str = "") -> Variables:
    """Let sitecustomize execute a file."""
    write(made.folder, {"hook.py": code, "site-packages/sitecustomize.py": "exec(open('hook.py').read())\n"})
    return {}


def capture(made: Environment) -> object:
    """Do what `capture again` says."""
    return made.run("capture")


CASES = {
    "a libm in front of the system's": Case("loaded.libm", search, "remove what puts this file in its place"),
    "a plug-in": Case(
        "loaded.unexplained",
        plug_in,
        "Remove the file, or what asks for it.",
        lambda made: (made.folder / PLUGIN).unlink(),
    ),
    "a module among the packages": Case(
        "loaded.unexplained",
        add_module,
        "Remove the file, or what asks for it.",
        lambda made: (made.folder / "site-packages/extra.py").unlink(),
    ),
    "another BLAS": Case(
        "loaded.blas",
        lambda made: open_blas(made, "other"),
        "Choose the locked one again",
        before=open_blas,
    ),
    "a library that changes how the process rounds": Case(
        "loaded.arithmetic",
        lambda made: write_init(made, "ctypes.CDLL('libm.so.6').fesetround(0x800)"),
        "Find what sets it",
        write_init,
    ),
    "a file that code at the start executes": Case(
        "loaded.startup",
        lambda made: run_at_start(made, "import math\n"),
        "Put the file back as it was locked",
        run_at_start,
        run_at_start,
    ),
    "an edited module of Python": Case(
        "loaded.standard.random", edit("standard", "random"), "or capture again", capture
    ),
    "another build of libc": Case("loaded.libc", edit("libc"), "or capture again", capture),
}


@pytest.mark.parametrize("name", CASES)
def test_a_remedy_that_is_obeyed_is_one(name: str, envlock: Command, tmp_path: Path) -> None:
    case, made = CASES[name], Environment(envlock, tmp_path)
    if case.fact == "loaded.arithmetic" and platform.machine() != "x86_64":
        absent("the number that says `upward` is that of x86_64")
    locked = case.before(made)
    assert made.run("capture", **locked).returncode == 0
    first = made.run("verify", **locked)
    assert first.returncode == 0, first.stdout
    report = json.loads(made.run("verify", "--format", "json", **{**locked, **case.make(made)}).stdout)
    assert not report["match"]
    fixes = {each["where"].get("fact"): each["fix"] for each in report["findings"] if each["severity"] == "error"}
    assert case.says in fixes[case.fact], fixes
    case.obey(made)
    again = made.run("verify", **locked)
    assert (again.returncode, again.stdout) == (0, first.stdout), again.stdout
