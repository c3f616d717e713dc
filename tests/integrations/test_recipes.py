"""The commands of docs/guides/integrations.md, and its recipes for other people's YAML: what they run, and how that ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import transcripts
from tests.conftest import Command
from tests.integrations.page import PAGE
from tests.transcripts import tools

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]


def recipe(heading: str) -> Any:
    """Return the YAML below a heading."""
    pattern = rf"^## {heading}\n(?:(?!^## )[^\n]*\n)*?```yaml\n(.*?)^```$"
    (block,) = re.findall(pattern, PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return yaml.safe_load(block)


@pytest.fixture
def shell(envlock: Command, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a line as a job does, in a project with a lockfile and an environment."""
    folder = envlock.folder
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".venv/bin/python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / ".venv/bin/python").chmod(0o755)
    done = envlock("capture", "--quiet", "--python", str(folder / ".venv/bin/python"))
    assert (done.returncode, done.stderr) == (0, "")
    path = tools(tmp_path_factory.mktemp("tools") / "bin", sys.executable, sys.executable)
    own = {"PYTHONPATH": str(ROOT), "ENVLOCK_WITHOUT_TENSORFLOW": "1", "HOME": str(folder)}

    def run(line: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", line],
            cwd=folder,
            env={"PATH": f"{path}{os.pathsep}{os.environ['PATH']}", "LANG": "C.UTF-8", **own, **environ},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@pytest.mark.slow
@pytest.mark.processes
def test_the_commands_of_the_page_print_what_it_shows(
    locked_hosts: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("page")
    blocks = re.findall(r"^```console\n.*?^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    page = folder / "integrations.md"
    page.write_text("\n\n".join(blocks), encoding="utf-8")
    (python,) = locked_hosts.argv
    own = tools(folder / "bin", sys.executable, python)
    path = os.pathsep.join([str(own), str(Path(python).parent), os.environ["PATH"]])
    named = {"PYTHONPATH": str(ROOT), "ENVLOCK_PYTHON": python, "ENVLOCK_WITHOUT_TENSORFLOW": "1"}
    found = transcripts.run(page, locked_hosts.folder, {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", **named})
    assert not found, "\n\n".join(found)


@pytest.mark.processes
def test_gitlab_shows_each_difference_as_a_failed_test(shell: Run, envlock: Command) -> None:
    """https://docs.gitlab.com/ci/yaml/ has the keys, and https://docs.gitlab.com/ci/testing/unit_test_reports/ the file."""
    ((name, job),) = recipe("GitLab").items()
    assert (name, sorted(job)) == ("envlock", ["artifacts", "before_script", "image", "script"])
    assert job["artifacts"]["when"] == "always", "a failed job keeps its report"
    report = envlock.folder / job["artifacts"]["reports"]["junit"]
    (line,) = job["script"]
    for environ, code, failures in (({}, 0, 0), ({"TF_ENABLE_ONEDNN_OPTS": "0"}, 1, 1)):
        done = shell(line, **environ)
        assert done.returncode == code, done.stderr
        suite = ET.parse(report).getroot()
        assert len(list(suite.iter("failure"))) == failures


@pytest.mark.processes
def test_a_stage_of_dvc_is_refused_in_another_environment(shell: Run, envlock: Command) -> None:
    stages = recipe("DVC")["stages"]
    stage = stages["train"]
    assert sorted(stage) == ["cmd", "deps", "outs"]
    assert "envlock.lock" in stage["deps"], "DVC computes again where the lockfile has changed"
    (envlock.folder / "train.py").write_text("open('model.keras', 'w').close()\n")
    lock = envlock.folder / "envlock.lock"
    here = lock.read_text()
    lock.write_text(here.replace('"implementation": "cpython"', '"implementation": "pypy"'))
    refused = shell(stage["cmd"])
    assert (refused.returncode, (envlock.folder / "model.keras").exists()) == (1, False), refused.stderr
    lock.write_text(here)
    done = shell(stage["cmd"])
    assert done.returncode == 0, done.stderr
    assert (envlock.folder / stage["outs"][0]).exists()
