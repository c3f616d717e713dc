"""The short forms of `envlock show`, as a shell sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command
from tests.locks import document, encode
from tests.runtime.test_citation import GOLDEN


@pytest.fixture
def line(envlock: Command) -> str:
    """Return the line of the plain environment, from a lockfile that is not kept."""
    done = envlock("capture", "-o", "-")
    return envlock("show", "-", "--line", stdin=done.stdout.encode()).stdout.strip()


def test_the_environment_has_the_line_of_its_lockfile(envlock: Command, line: str) -> None:
    shown = envlock("show", "live", "--line")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, f"{line}\n", "")
    other = envlock("show", "live", "--line", environ={"TF_ENABLE_ONEDNN_OPTS": "0"}).stdout.strip()
    assert other.startswith("envlock:1:sha256:")
    assert other != line


def test_the_package_of_the_project_itself_is_in_no_line(envlock: Command, line: str) -> None:
    """As `envlock capture` leaves it out there: its code is the project's, whatever its version."""
    (envlock.folder / "pyproject.toml").write_text('[project]\nname = "pytest"\n', encoding="utf-8")
    envlock("capture")
    own = envlock("show", "--line").stdout.strip()
    assert own != line
    assert envlock("show", "live", "--line").stdout.strip() == own


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
