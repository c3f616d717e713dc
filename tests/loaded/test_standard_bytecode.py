"""Compiled files of the standard library: Python runs them in place of the source that a lockfile holds."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import random
import shutil
import sys
import venv
from pathlib import Path

from envlock.packages.file_verification import list_standard_bytecode
from envlock.packages.installation import Installation
from tests.conftest import Command
from tests.loaded.environment import Environment
from tests.machines import write


def test_code_that_is_not_of_its_source_is_a_finding_of_deep(envlock: Command, tmp_path: Path) -> None:
    """Python is made to keep its bytecode in a folder of the test: that of the machine stays as it is."""
    made = Environment(envlock, tmp_path)
    venv.create(tmp_path / ".venv")
    made.environ["PYTHONPYCACHEPREFIX"] = str(tmp_path / "compiled")
    asked = ("--python", str(tmp_path / ".venv/bin/python"))
    assert made.run("capture", *asked).returncode == 0
    done = made.run("verify", "--deep", *asked)
    assert (done.returncode, "random" in done.stdout) == (0, False), done.stdout

    source = Path(random.__file__)
    changed = shutil.copy2(source, tmp_path / "changed.py")
    text = source.read_text(encoding="utf-8").replace(
        "return a + (b - a) * self.random()", "return b + (a - b) * self.random()"
    )
    Path(changed).write_text(text, encoding="utf-8")
    status = source.stat()
    os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns))
    name = Path(importlib.util.cache_from_source(str(source))).name
    planted = f"{tmp_path}/compiled{source.parent}/{name}"
    py_compile.compile(str(changed), planted, str(source), doraise=True)
    assert made.run("verify", *asked).returncode == 0
    done = made.run("verify", "--deep", *asked)
    assert done.returncode == 1
    assert f"{name}  differs from the source beside it" in done.stdout


def test_only_what_ran_is_compared(tmp_path: Path) -> None:
    sources = (
        "os",
        "random",
        "wave",
        "json/__init__",
        "json/decoder",
        "json/tool",
        "xml/dom/__init__",
        "xml/sax/__init__",
    )
    write(tmp_path, {f"{source}.py": "" for source in sources})
    for source in sources:
        py_compile.compile(f"{tmp_path}/{source}.py")
    environment = Installation(Path(sys.prefix), (tmp_path / "none", tmp_path), {})
    ran = {"random": "0", "json": "0 __init__ decoder", "xml": "0 dom.__init__", "gone": "0"}
    found = [file.source for file in list_standard_bytecode(environment, ran)]
    expected = ("json/__init__", "json/decoder", "random", "xml/dom/__init__")
    assert sorted(found) == [f"{tmp_path}/{source}.py" for source in expected]
    assert not list(list_standard_bytecode(Installation(Path(sys.prefix), (), {}), ran))
