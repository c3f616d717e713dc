"""The hook as a project gets it: pre-commit clones a repository, installs what is in it, and runs the linter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import Command
from tests.exhaustive import exhaustive

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE", "envlock", "templates", "tools")
CONFIG = "repos:\n  - repo: {}\n    rev: {}\n    hooks:\n      - id: envlock-lint\n"
WRONG = "import tensorflow as tf\n\ntf.config.experimental.enable_op_determinism\n"


def git(folder: Path, *words: str) -> str:
    name = ["-c", "user.name=alice", "-c", "user.email=alice@example.org"]
    done = subprocess.run(["git", *name, *words], cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def committed(folder: Path) -> Path:
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")
    return folder


def hook(project: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", "run", "--all-files", "--color", "never"],
        cwd=project,
        env={**os.environ, "PRE_COMMIT_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


@pytest.mark.processes
def test_the_hooks_are_valid_and_call_what_exists(envlock: Command) -> None:
    file = ROOT / ".pre-commit-hooks.yaml"
    argv = [sys.executable, "-m", "pre_commit", "validate-manifest", str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    hooks = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert {each["id"]: each["entry"] for each in hooks} == {
        "envlock-lint": "envlock lint",
        "envlock-capture-check": "envlock capture --check",
        "envlock-verify": "envlock verify",
    }
    for each in hooks:
        assert envlock(*each["entry"].split()[1:], "--help").returncode == 0


@exhaustive
@pytest.mark.slow
def test_the_hook_refuses_what_the_linter_finds_and_passes_what_it_does_not(tmp_path: Path) -> None:
    source, project = tmp_path / "source", tmp_path / "project"
    source.mkdir()
    for name in SHIPPED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        copy(ROOT / name, source / name)
    committed(source)
    project.mkdir()
    (project / ".pre-commit-config.yaml").write_text(CONFIG.format(source, git(source, "rev-parse", "HEAD")))
    (project / "train.py").write_text(WRONG)
    committed(project)
    refused = hook(project, tmp_path / "home")
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "train.py:3:1: ENV101 error: tf.config.experimental.enable_op_determinism is named" in refused.stdout
    (project / "train.py").write_text(WRONG.rstrip() + "()\n")
    git(project, "add", "--all")
    passed = hook(project, tmp_path / "home")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert passed.stdout.strip().endswith("Passed")
