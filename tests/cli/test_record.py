"""`envlock run --record`: the environment before and after a command, and how it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_entry_points import Project
from tests.conftest import WITHOUT, Command

DRIFTS = """
import pathlib, sys
site = pathlib.Path(sys.argv[1])
site.joinpath("late-1.dist-info").mkdir()
site.joinpath("late-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\\nName: late\\nVersion: 1\\n")
raise SystemExit(7)
"""

WAITS = """
import pathlib, signal, sys, time
def end(number, frame):
    print("ended by", number, flush=True)
    raise SystemExit(9)
signal.signal(int(sys.argv[1]), end)
pathlib.Path("ready").touch()
time.sleep(60)
"""


@pytest.fixture
def project(envlock: Command, tmp_path: Path) -> Project:
    found = Project(envlock, tmp_path)
    found.run("capture")
    return found


def record_of(project: Project) -> Any:
    return json.loads((project.folder / "run.json").read_bytes())


def test_a_run_that_changes_nothing_has_no_drift(project: Project) -> None:
    done = project.run("run", "--record", "run.json", "--", "python", "-c", "print('out')")
    assert (done.returncode, done.stdout) == (0, "out\n")
    assert done.stderr.endswith("wrote run.json: exit code 0, 0 facts changed during the run\n")
    record = record_of(project)
    assert (record["record_version"], record["exit_code"], record["drift"], record["problem"]) == (1, 0, [], None)
    assert record["before"] == record["after"]
    assert record["before"]["facts"]["packages"]["flask"]["version"] == "2"
    assert record["started"] <= record["ended"]
    line = project.run("show", "--line").stdout.strip()
    assert record["lock"] == {"line": line, "policy": "strict", "match": True}


def test_drift_is_named_and_the_exit_code_is_the_commands(project: Project) -> None:
    (project.folder / "train.py").write_text(DRIFTS, encoding="utf-8")
    done = project.run("run", "--record", "run.json", "train.py", str(project.prefix.site))
    assert done.returncode == 7
    assert "warning: changed during the run: packages.late: " in done.stderr
    assert done.stderr.endswith("wrote run.json: exit code 7, 1 fact changed during the run\n")
    record = record_of(project)
    assert [each["where"]["fact"] for each in record["drift"]] == ["packages.late"]
    assert record["drift"][0]["severity"] == "error"
    assert "late" not in record["before"]["facts"]["packages"]
    assert record["after"]["facts"]["packages"]["late"]["version"] == "1"


def test_another_environment_is_recorded_as_another(project: Project) -> None:
    project.install("flask", "3")
    words = ["--record", "run.json", "--", "python", "-c", ""]
    assert project.run("run", *words).returncode == 1
    assert not (project.folder / "run.json").exists()
    assert project.run("run", "--unverified", *words).returncode == 0
    record = record_of(project)
    assert record["lock"]["match"] is False
    assert record["before"]["facts"]["packages"]["flask"]["version"] == "3"


def test_a_broken_environment_is_not_called_unchanged(project: Project) -> None:
    """The interpreter that the command has removed answers no longer."""
    (project.folder / "bin").mkdir()
    python = project.folder / "bin/python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    named = ["--python", str(python)]
    project.run("capture", *named)
    words = ["--unverified", "--record", "run.json", *named, "--", "/bin/rm", str(python)]
    done = project.run("run", *words)
    assert done.returncode == 0
    assert "exit code 0, the environment after the run is unknown: " in done.stderr
    record = record_of(project)
    assert (record["after"], record["drift"], record["exit_code"]) == (None, None, 0)
    assert "python" in record["problem"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--record", "envlock.lock", "train.py"], "error: envlock.lock is the lockfile\n"),
        (["--record", "none/run.json", "train.py"], "error: cannot write record none/run.json: "),
        (["--record", "run.json", "--observe", "train.py"], "error: `--observe` and `--record` exclude each other\n"),
    ],
)
def test_what_cannot_be_recorded_is_not_run(words: list[str], problem: str, project: Project) -> None:
    (project.folder / "train.py").write_text("print('ran')\n", encoding="utf-8")
    before = (project.folder / "envlock.lock").read_bytes()
    done = project.run("run", *words)
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.rpartition("error: ")[2].startswith(problem.removeprefix("error: "))
    assert (project.folder / "envlock.lock").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1"])
def test_a_signal_reaches_the_command(name: str, project: Project) -> None:
    number = getattr(signal, name)
    (project.folder / "train.py").write_text(WAITS, encoding="utf-8")
    child = start(project, str(int(number)))
    assert record_of(project)["exit_code"] is None, "before the end, the record has none"
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (9, f"ended by {int(number)}\n"), err
    assert record_of(project)["exit_code"] == 9


@pytest.mark.slow
def test_a_command_that_a_signal_ends_has_its_code(project: Project) -> None:
    (project.folder / "train.py").write_text(WAITS, encoding="utf-8")
    child = start(project, str(int(signal.SIGUSR2)))
    child.terminate()
    child.communicate(timeout=60)
    assert child.returncode == 128 + signal.SIGTERM
    assert record_of(project)["exit_code"] == 128 + signal.SIGTERM


def start(project: Project, *words: str) -> subprocess.Popen[str]:
    """Start a recorded run, and return when its program waits."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    child = subprocess.Popen(
        [*project.envlock.argv, "run", "--record", "run.json", "train.py", *words],
        cwd=project.folder,
        env={**kept, "PYTHONPATH": f"{Path.cwd()}{os.pathsep}{project.prefix.site}", WITHOUT[0]: WITHOUT[1]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (project.folder / "ready").exists():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return child
