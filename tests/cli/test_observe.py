"""`envlock run --observe`: what a run has used is held, too, however it was found."""

from __future__ import annotations

import _ctypes
from pathlib import Path

import pytest

from tests.cli.test_entry_points import Project
from tests.conftest import Command

PROGRAM = """
import ctypes, importlib, subprocess, sys
print(importlib.import_module("".join(["fl", "ask"])).__name__)
subprocess.run([sys.executable, "-c", "__import__('jin' + 'ja')"], check=True)
ctypes.CDLL("env/native.so")
if sys.argv[1:]:
    raise SystemExit(int(sys.argv[1]))
"""


@pytest.fixture
def project(envlock: Command, tmp_path: Path) -> Project:
    found = Project(envlock, tmp_path)
    found.install("jinja", "1")
    found.install("unused", "1")
    native = Path(_ctypes.__file__).read_bytes()
    found.prefix.install("native", "1", {"native.libs/libnative.so": native})
    (tmp_path / "env/native.so").symlink_to(found.prefix.site / "native.libs/libnative.so")
    (tmp_path / "train.py").write_text("import keras\n" + PROGRAM, encoding="utf-8")
    found.run("capture", "--for", "train.py")
    return found


@pytest.mark.slow
def test_what_a_run_imports_is_held(project: Project) -> None:
    done = project.run("run", "--observe", "train.py", "3")
    assert (done.returncode, done.stdout) == (3, "flask\n")
    assert "observed 4 packages, 3 of them not held before: flask, jinja, native\n" in done.stderr
    seen = {"flask": "imported", "jinja": "imported", "keras": "imported", "native": "mapped"}
    assert project.recorded["observed"] == seen
    project.run("capture")
    assert project.recorded["observed"] == seen
    project.install("flask", "3")
    project.install("unused", "2")
    assert project.differing() == {"packages.flask.version": "error", "packages.unused.version": "info"}
    done = project.run("verify")
    assert "packages.flask.version: locked 2, live 3 (imported by a run)\n" in done.stdout
    assert "runs have used 4)" in done.stdout


@pytest.mark.slow
def test_evidence_is_of_the_programs_that_were_run(project: Project) -> None:
    project.run("run", "--observe", "train.py")
    project.run("capture", "--for", "train.py", "--for", "model")
    assert "flask" in project.recorded["observed"]
    project.run("capture", "--for", "model")
    assert "observed" not in project.recorded


def test_an_environment_keeps_its_own_start(project: Project) -> None:
    start = "import sys, keras\nprint('started', sys.path[0])\n"
    (project.prefix.site / "sitecustomize.py").write_text(start, encoding="utf-8")
    project.run("capture", "--for", "train.py")
    done = project.run("run", "--observe", "train.py")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, f"started {project.prefix.site}")
    assert "flask" in project.recorded["observed"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["python", "-I", "train.py"], "error: nothing was observed of `python` (exit code 1)\n"),
        (["no-such-command"], "error: command not found: no-such-command\n"),
    ],
)
def test_a_run_that_shows_nothing_changes_nothing(words: list[str], problem: str, project: Project) -> None:
    before = (project.folder / "envlock.lock").read_bytes()
    done = project.run("run", "--observe", *words)
    assert done.returncode == 2
    assert problem in done.stderr
    assert (project.folder / "envlock.lock").read_bytes() == before


def test_a_lockfile_without_programs_takes_no_evidence(project: Project) -> None:
    (project.folder / "pyproject.toml").write_text("[tool.envlock]\nentry = []\n", encoding="utf-8")
    project.run("capture")
    done = project.run("run", "--observe", "train.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: envlock.lock names no entry points, so every package is held\n"
        "hint: name the program first: envlock capture --for train.py\n"
    )
