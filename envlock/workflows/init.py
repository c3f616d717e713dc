"""Prepare a project for envlock."""

from __future__ import annotations

from pathlib import Path

from envlock.runtime.policy import DEFAULT
from envlock.workflows.settings import add_policy

SNIPPETS = """\
# .pre-commit-config.yaml
- repo: local
  hooks:
    - id: envlock-capture-check
      name: envlock capture --check
      entry: envlock capture --check
      language: system
      pass_filenames: false
      always_run: true

# .github/workflows/ci.yml, after the step that installs the environment
- run: envlock verify --policy {policy} --no-overrides --format github
"""


def init(policy: str = DEFAULT) -> tuple[Path | None, str]:
    """Add `[tool.envlock]` to the project's pyproject.toml; return that file, and snippets for pre-commit and CI.

    None instead of the file where it has such settings already; nothing is written then.

    Raises:
        UsageError: pyproject.toml cannot be read or written, or its settings are not valid.
    """
    return add_policy(Path.cwd(), policy), SNIPPETS.format(policy=policy)
