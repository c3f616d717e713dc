"""Files that `verify --deep` finds wrong: what the line says is done, and the answer is yes again."""

from __future__ import annotations

import importlib.util
import json
import py_compile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import Command
from tests.machines import write
from tests.packages.wheels import make_wheel
from tests.remedies.test_facts import World

pytestmark = [pytest.mark.processes, pytest.mark.longer]


class Case(NamedTuple):
    """A file that is not as it was installed, the line that is printed, and what a person does."""

    make: Callable[[Path], object]
    says: str
    obey: Callable[[Path], object]


def compile_other(site: Path) -> None:
    """Leave bytecode of another source, which Python is told not to check."""
    other = site.parent / "other.py"
    other.write_text("X = 2\n")
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(other), str(get_bytecode(site)), invalidation_mode=mode)


def get_bytecode(site: Path) -> Path:
    """Return where Python looks for the bytecode of the package's module."""
    return Path(importlib.util.cache_from_source(str(site / "sound" / "__init__.py")))


CASES = {
    "foreign": Case(
        lambda site: (site / "stray.py").write_text("X = 1\n"),
        "Remove it if nothing needs it.",
        lambda site: (site / "stray.py").unlink(),
    ),
    "startup": Case(
        lambda site: (site / "late.pth").write_text("import sys\n"), "", lambda site: (site / "late.pth").unlink()
    ),
    "permission": Case(
        lambda site: (site / "sound" / "__init__.py").chmod(0o666),
        "Set the expected mode",
        lambda site: (site / "sound" / "__init__.py").chmod(0o644),
    ),
    "bytecode": Case(compile_other, "Remove the .pyc file", lambda site: get_bytecode(site).unlink()),
}


@pytest.mark.parametrize("rule", CASES)
def test_what_is_done_to_a_file_ends_the_finding(rule: str, envlock: Command, tmp_path: Path) -> None:
    case, world = CASES[rule], World(envlock, tmp_path)
    wheel = make_wheel(tmp_path, "sound", "1.0", {"sound/__init__.py": b"X = 1\n"})
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(world.site)
    write(world.site / "sound-1.0.dist-info", {"INSTALLER": "pip\n"})
    (world.site / "sound" / "__pycache__").mkdir()

    def ask() -> set[tuple[str, str, str]]:
        found = json.loads(world.envlock("verify", "--deep", "--format", "json").stdout)["findings"]
        return {(each["rule"], each["message"], each["fix"]) for each in found if each["severity"] != "info"}

    assert world.envlock("capture", "--static").returncode == 0
    before = ask()
    case.make(world.site)
    (told,) = [each for each in ask() - before if each[0].endswith(rule)]
    assert case.says in told[2], told
    case.obey(world.site)
    assert ask() == before
