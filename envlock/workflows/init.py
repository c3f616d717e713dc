"""Prepare a project for envlock."""

from __future__ import annotations

from pathlib import Path

from envlock.runtime import lockfile
from envlock.runtime.policies import DEFAULT
from envlock.workflows.settings_changes import add_policy

HOOK = """\
# .pre-commit-config.yaml
repos:
  - repo: local
    hooks:
      - id: envlock-capture-check
        name: envlock capture --check
        entry: envlock capture --check
        language: system
        pass_filenames: false
        always_run: true
"""
WORKFLOW = """\
# .github/workflows/envlock.yml
# A runner is a machine of its own: lock with the policy `bits`, or add it by `envlock capture --add-machine`.
name: envlock
on: [push, pull_request]
permissions:
  contents: read
env:
  ENVLOCK: tf-envlock[cli] @ git+https://github.com/tf-envlock/envlock  # or a version of an index: tf-envlock[cli]==X
jobs:
  environment:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v5
      - uses: astral-sh/setup-uv@v7
      - run: {install}
      - run: uv tool install "$ENVLOCK"
      - run: envlock verify --format github
"""
TARGET = """\
# Makefile
.PHONY: envlock
envlock:
\tenvlock capture --check
"""
INSTALLS = {
    "uv.lock": "uv sync --locked",
    "poetry.lock": "uvx poetry install",
    "pdm.lock": "uvx pdm sync",
    "Pipfile.lock": "uvx pipenv sync",
    "requirements.txt": "uv venv && uv pip install -r requirements.txt",
    "pyproject.toml": "uv venv && uv pip install .",
}
"""A file of the project -> the command that installs the environment from it, where envlock finds
it.
"""


def init(policy: str = DEFAULT) -> tuple[Path | None, str]:
    """Add `[tool.envlock]` to pyproject.toml; return its path, and files for pre-commit, GitHub and
    make.

    The path is None, and nothing is written, if pyproject.toml has such settings already. Each of
    the other files is complete, starts with its name, and ends with the exit code of `envlock
    verify`.

    Raises:
        UsageError: pyproject.toml cannot be read or written, or its settings are not valid.
    """
    folder = Path(lockfile.find_project(str(Path.cwd())))
    install = INSTALLS["pyproject.toml"]
    # The first that is found counts: what a package manager has resolved, before what it was
    # resolved from.
    for name, command in INSTALLS.items():
        if (folder / name).is_file():
            install = command
            break
    files = "\n".join([HOOK, WORKFLOW.format(install=install), TARGET])
    return add_policy(Path.cwd(), policy), files
