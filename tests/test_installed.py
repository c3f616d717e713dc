"""The distribution as users install it: without dependencies beside TensorFlow, with its command line elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.exhaustive import first

ROOT = Path(__file__).resolve().parents[1]
UV = [sys.executable, "-m", "uv"]

pytestmark = pytest.mark.slow


def run(*argv: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder with a plain environment."""
    plain = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **environ}
    return subprocess.run(argv, cwd=folder, env=plain, capture_output=True, text=True, timeout=300, check=False)


def said(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a program that succeeded printed."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "import os, sys, hatchling.build as b; os.chdir(sys.argv[1]); print(b.build_wheel(sys.argv[2]))"
    argv = [sys.executable, "-c", build, str(ROOT), str(folder)]
    return folder / said(subprocess.run(argv, capture_output=True, text=True, check=False)).split()[-1]


@pytest.fixture
def project(tmp_path: Path, wheel: Path) -> Path:
    """Return a project whose environment has the distribution and nothing else."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"\n', encoding="utf-8")
    venv.create(tmp_path / ".venv", with_pip=False)
    python = tmp_path / ".venv" / "bin" / "python"
    argv = [*UV, "pip", "install", "--offline", "--python", str(python), str(wheel)]
    said(subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False))
    add_package(tmp_path / ".venv")
    return tmp_path


def add_package(environment: Path) -> None:
    """Write the metadata of a package: a verdict needs one to compare."""
    info = next(environment.glob("lib/python3.*/site-packages")) / "lone-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lone\nVersion: 1.0\n", encoding="utf-8")


def test_it_brings_nothing_along_and_scripts_need_no_more(project: Path) -> None:
    python = str(project / ".venv" / "bin" / "python")
    names = "from importlib.metadata import distributions as d; print(sorted(each.name for each in d()))"
    assert said(run(python, "-c", names, folder=project)) == "['lone', 'tf-envlock']\n"
    tool = [sys.executable, "-c", "from envlock.__main__ import main; main()"]
    done = run(*tool, "capture", "--without-tensorflow", folder=project)
    assert (done.returncode, done.stderr) == (0, "wrote envlock.lock: 1 package, policy strict\n")
    code = "import envlock; print(envlock.assert_locked().match)"
    assert said(run(python, "-c", code, folder=project)) == "True\n"
    assert run(python, "-c", code, folder=project, TF_ENABLE_ONEDNN_OPTS="0").returncode == 1
    run_there = ["run", "--", "python", "-c", "import sys, envlock; envlock.assert_locked(); print(sys.prefix)"]
    assert said(run(*tool, *run_there, folder=project)) == f"{project / '.venv'}\n"
    for environ in ({}, {"VIRTUAL_ENV": str(project / ".venv")}):
        done = run(*tool, "verify", "-q", folder=project, **environ)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_command_in_the_environment_hands_over_to_the_tool(project: Path, tmp_path: Path) -> None:
    program = str(project / ".venv" / "bin" / "envlock")
    done = run(program, "--version", folder=project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "error: the command line needs typer",
        'hint: install it outside the environment, in a checkout of envlock: `uv tool install ".[cli]"`',
    ]
    bin_of_tools = os.pathsep.join([str(Path(program).parent), str(Path(sys.executable).parent), "/usr/bin"])
    done = run(program, "capture", "--without-tensorflow", folder=project, PATH=bin_of_tools)
    assert (done.returncode, done.stderr) == (0, "wrote envlock.lock: 1 package, policy strict\n")


def test_several_environments_on_the_path_hand_over_one_after_the_other(
    project: Path, wheel: Path, tmp_path: Path
) -> None:
    """An environment that is activated over another one, each with the distribution, and the tool after them."""
    outer = tmp_path / "outer"
    venv.create(outer, with_pip=False)
    argv = [*UV, "pip", "install", "--offline", "--python", str(outer / "bin" / "python"), str(wheel)]
    said(subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False))
    program = str(project / ".venv" / "bin" / "envlock")
    folders = [str(Path(program).parent), str(outer / "bin")]
    done = run(program, "--version", folder=project, PATH=os.pathsep.join([*folders, str(Path(sys.executable).parent)]))
    assert (done.returncode, done.stderr) == (0, "")
    done = run(program, "verify", folder=project, PATH=os.pathsep.join([*folders, "/usr/bin"]))
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: the command line needs typer")


def test_a_script_on_the_path_that_leads_back_is_asked_once(project: Path, tmp_path: Path) -> None:
    (tmp_path / "envlock").write_text(f'#!/bin/sh\nexec {project}/.venv/bin/python -m envlock "$@"\n', encoding="utf-8")
    (tmp_path / "envlock").chmod(0o755)
    done = run(str(tmp_path / "envlock"), "verify", folder=project, PATH=f"{tmp_path}:/usr/bin:/bin")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: the command line needs typer")


@pytest.mark.parametrize("minor", first(1, range(8, 15)))
def test_scripts_run_on_every_python(minor: int, wheel: Path, tmp_path: Path) -> None:
    """On each CPython from 3.8 on that pyenv or the system has."""
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python"))
    found = str(installed[0]) if installed else shutil.which(f"python3.{minor}", path="/usr/local/bin:/usr/bin")
    if found is None:
        pytest.skip(f"no Python 3.{minor}")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"\n', encoding="utf-8")
    said(run(*UV, "venv", "-q", "--python", found, ".venv", folder=tmp_path))
    python = str(tmp_path / ".venv" / "bin" / "python")
    said(run(*UV, "pip", "install", "-q", "--offline", "--python", python, str(wheel), folder=tmp_path))
    add_package(tmp_path / ".venv")
    said(
        run(
            sys.executable,
            "-m",
            "envlock",
            "capture",
            "-q",
            "--without-tensorflow",
            folder=tmp_path,
            PYTHONPATH=str(ROOT),
        )
    )
    code = "import envlock; print(envlock.assert_locked()); print(envlock.assert_locked()._repr_html_())"
    strict = "matches under policy strict"
    assert said(run(python, "-W", "error", "-c", code, folder=tmp_path)) == f"{strict}\n<pre>{strict}</pre>\n"
    refused = run(python, "-W", "error", "-c", code, folder=tmp_path, TF_DETERMINISTIC_OPS="yes")
    assert refused.returncode == 1
    assert "x environ.TF_DETERMINISTIC_OPS: locked unset, live yes" in refused.stderr
