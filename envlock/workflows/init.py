"""Prepare a project for envlock."""

from __future__ import annotations

from pathlib import Path

from envlock.lock.settings_changes import add_policy
from envlock.runtime.policies import DEFAULT

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
# A runner is another machine, so the software alone is compared: policy `functional`.
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
      - run: uv tool install "$ENVLOCK"
      - run: uv venv --python "$(jq -r .facts.python.version envlock.lock)"
      - run: envlock sync --python .venv/bin/python --policy functional --format github
"""
TARGET = """\
# Makefile
.PHONY: envlock
envlock:
\tenvlock capture --check
"""


def init(policy: str = DEFAULT) -> tuple[Path | None, str]:
    """Add `[tool.envlock]` to pyproject.toml; return its path, and files for pre-commit, GitHub and
    make.

    The path is None, and nothing is written, if pyproject.toml has such settings already. Each of
    the other files is complete, starts with its name, and ends with the exit code of a
    verdict.

    Raises:
        UsageError: pyproject.toml cannot be read or written, or its settings are not valid.
    """
    files = "\n".join([HOOK, WORKFLOW, TARGET])
    return add_policy(Path.cwd(), policy), files
