"""The commands of docs/guides/vendor.md, in their order, in a project with an editable install and the public index."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.exhaustive import exhaustive
from tests.test_executed import INDENTED
from tests.transcripts import run_command, tools

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/guides/vendor.md"
PROJECT = '[project]\nname = "mine"\nversion = "0.3"\n\n[tool.setuptools]\npy-modules = ["train"]\n'


@exhaustive
@pytest.mark.slow
@pytest.mark.network
def test_the_commands_of_the_page_succeed_one_after_the_other(tmp_path: Path) -> None:
    """What is exported is installed again, from the index and from the wheelhouse."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (folder / "train.py").touch()
    python = folder / ".venv/bin/python"
    bin = tools(tmp_path / "bin", sys.executable, str(python))  # noqa: A001 (its name)
    (bin / "pip").write_text(f'#!/bin/sh\nexec "{python}" -m pip "$@"\n', encoding="utf-8")
    (bin / "pip").chmod(0o755)
    # `python -m uv` takes the environment of that Python before VIRTUAL_ENV, and would install into ours.
    (bin / "uv").unlink()
    (bin / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    index = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    own = {"PYTHONPATH": str(ROOT), "VIRTUAL_ENV": str(folder / ".venv"), "ENVLOCK_WITHOUT_TENSORFLOW": "1"}
    environ = {
        **index,
        **own,
        "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
    }
    blocks = INDENTED.findall(PAGE.read_text(encoding="utf-8"))
    runnable = [block for block in blocks if "envlock build" not in block]
    assert len(runnable) == len(blocks) - 1, "the last one needs a container engine"
    commands = [line.strip() for block in runnable for line in block.splitlines() if line.strip()]
    ours = list_installed()
    preparation = [f'"{sys.executable}" -m venv .venv', "pip install -q six idna", "pip install -q -e ."]
    for command in (*preparation, *commands):
        done = run_command(command, folder, environ)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert list_installed() == ours, "nothing is installed into the environment of the tests"


def list_installed() -> list[tuple[str, str]]:
    """Return the names and versions of what this environment has."""
    return sorted((found.metadata["Name"], found.version) for found in metadata.distributions())
