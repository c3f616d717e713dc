"""`envlock verify --line` and the short forms of `envlock show`, as a shell sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.locks import document, encode
from tests.runtime.test_citation import GOLDEN

OTHER = f"envlock:1:sha256:{'0' * 64}"


@pytest.fixture
def line(envlock: Command) -> str:
    """Return the line of the plain environment, from a lockfile that is not kept."""
    done = envlock("capture", "-o", "-")
    return envlock("show", "-", "--line", stdin=done.stdout.encode()).stdout.strip()


def test_the_environment_has_the_line_of_its_lockfile(envlock: Command, line: str) -> None:
    done = envlock("verify", "--line", line)
    assert (done.returncode, done.stdout, done.stderr) == (0, "matches the line\n", "")
    shown = envlock("show", "live", "--line")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, f"{line}\n", "")


def test_another_environment_has_another_line(envlock: Command, line: str) -> None:
    other = envlock("show", "live", "--line", environ={"TF_ENABLE_ONEDNN_OPTS": "0"}).stdout.strip()
    done = envlock("verify", "--line", line, environ={"TF_ENABLE_ONEDNN_OPTS": "0"})
    assert other.startswith("envlock:1:sha256:")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "does not match the line: at least one fact differs",
        f"  x the line of this environment is {other}, and not {line}",
        "      why: At least one fact differs; a digest cannot tell which one, nor whether it can change bits.",
        "      fix: Get the lockfile that has this line and compare fact by fact: `envlock diff LOCK live`",
    ]


def test_the_package_of_the_project_itself_is_in_no_line(envlock: Command, line: str) -> None:
    """As `envlock capture` leaves it out there: its code is the project's, whatever its version."""
    (envlock.folder / "pyproject.toml").write_text('[project]\nname = "pytest"\n', encoding="utf-8")
    envlock("capture")
    own = envlock("show", "--line").stdout.strip()
    assert own != line
    assert envlock("verify", "--line", own).stdout == "matches the line\n"


def test_what_a_variable_names_is_not_in_the_way_of_a_line(envlock: Command, line: str) -> None:
    here = {"ENVLOCK_LOCK": "gone.lock", "ENVLOCK_POLICY": "functional"}
    assert envlock("verify", "--line", line, environ=here).stdout == "matches the line\n"


@pytest.mark.parametrize("option", [["envlock.lock"], ["-p", "strict"], ["--deep"], ["--numerics"], ["--no-overrides"]])
def test_a_line_needs_no_lockfile_and_takes_none(option: list[str], envlock: Command) -> None:
    names = {"envlock.lock": "LOCK", "-p": "--policy"}
    name = names.get(option[0], option[0])
    done = envlock("verify", "--line", OTHER, *option)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: `--line` and `{name}` exclude each other\nhint: remove `{name}`\n"


def test_a_report_of_a_line_is_for_programs_too(envlock: Command) -> None:
    done = envlock("verify", "--line", OTHER, "-f", "json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["match"], report["policy"]) == (1, False, None)
    assert [finding["expected"] for finding in report["findings"]] == [OTHER]


def test_a_summary_is_for_an_issue(envlock: Command) -> None:
    done = envlock("show", "-", "--summary", stdin=encode(document()))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        GOLDEN,
        "TensorFlow: none",
        "Keras: none",
        "NumPy: none",
        "Python: cpython 3.11.7",
        "packages: 1",
        "system: none",
        "C library: none",
        "CPU: avx avx2",
        "GPU driver: none",
        "unknown: keras (permission-denied)",
    ]


def test_the_live_environment_needs_no_lockfile_to_be_shown(envlock: Command, line: str) -> None:
    done = envlock("show", "live", "--summary")
    assert (done.returncode, done.stderr, done.stdout.splitlines()[0]) == (0, "", line)
    assert list(Path(envlock.folder).iterdir()) == []


def test_one_form_at_a_time(envlock: Command) -> None:
    done = envlock("show", "-", "--line", "--summary", stdin=encode(document()))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: `--line` and `--summary` exclude each other\nhint: remove `--summary`\n"
