"""What an installer leaves in the folder that it installs, with the real tools and the package index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from envlock.packages.installer import choose_installer, find_uv, install_folder
from tests.exhaustive import exhaustive

SETUP = 'from setuptools import setup\nsetup(name="mine", version="1", py_modules=["mine"])\n'
PROJECT = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'


@exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("editable", [True, False], ids=["editable", "copied"])
@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_setuptools_leaves_nothing_in_the_folder(tool: str, editable: bool, tmp_path: Path) -> None:
    uv, project = find_uv(), tmp_path / "project"
    assert uv is not None
    made = [uv, "venv", "-q", "--python", sys.executable]
    subprocess.run([*(made if tool == "uv" else [sys.executable, "-m", "venv"]), tmp_path / "env"], check=True)
    project.mkdir()
    files = {"setup.py": SETUP, "mine.py": "VALUE = 1\n"} | ({"pyproject.toml": PROJECT} if tool == "pip" else {})
    for name, text in files.items():
        (project / name).write_text(text)
    python = tmp_path / "env" / "bin" / "python"
    install_folder(choose_installer(python, tool), project, editable=editable)
    assert {path.name for path in project.iterdir()} == files.keys()
    done = subprocess.run([python, "-I", "-c", "import mine; print(mine.__file__)"], capture_output=True, text=True)
    assert (str(project) in done.stdout) == editable, done.stderr
