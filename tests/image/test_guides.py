"""The commands of the guides about containers, as they stand there, on a real engine and with a registry."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.exhaustive import exhaustive
from tests.image.bed import images
from tests.image.bed.session import CACHE, ROOT, Bed
from tests.image.project import log_in
from tests.image.stocked import captured, demo_wheel
from tests.locks import encode

pytestmark = [pytest.mark.engine, exhaustive]

INDENTED = re.compile(r"^    .*\n", re.MULTILINE)
SETTINGS = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES_REGISTRY, OURS = "ghcr.io", "nvcr.io"
REFUSED = "# refused", "# with reasons"
"""Comments of the commands that end with 1."""
BASE = re.compile(r"^envlock build\b(?!.*--(?:base|offline))")
PROGRAM = "print('training')\n"


def list_commands(page: str, *patterns: str) -> list[str]:
    """Return the commands of a page that contain one of the patterns."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    lines = textwrap.dedent("".join(INDENTED.findall(text))).splitlines()
    found = [line for line in lines if any(re.search(pattern, line) for pattern in patterns)]
    return [line.replace(PAGES_REGISTRY, OURS) for line in found]


class Shell:
    """A project as the guides have it, and a shell in which nvcr.io and docker.io are the bed's registry."""

    def __init__(self, bed: Bed, folder: Path) -> None:
        self.folder = folder
        self.base = bed.python
        wheel = demo_wheel(folder / "wheelhouse", "alpha", "1.0")
        (folder / "envlock.lock").write_bytes(encode(captured(bed, bed.python, wheel.parent, system=False)))
        (folder / "src").mkdir()
        (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
        page = (ROOT / "docs/guides/container.md").read_text(encoding="utf-8")
        (folder / "pyproject.toml").write_text(SETTINGS.findall(page)[0], encoding="utf-8")
        tools = folder / "bin"
        tools.mkdir()
        (tools / "envlock").write_text(f'#!/bin/sh\nexec {sys.executable} -m envlock "$@"\n', encoding="utf-8")
        (tools / "envlock").chmod(0o755)
        self.enter = [*bed.engine.enter, "env", "-C", str(folder), "sh", "-c"]
        self.environ = {
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "PYTHONSAFEPATH": "1",
            "ENVLOCK_TOKEN_SERVERS": " ".join(
                f"{name}={bed.registry.tokens_address}" for name in ("nvcr.io", "docker.io")
            ),
            **bed.engine.environ,
            "DOCKER_CONFIG": str(log_in(bed, folder / "config", "nvcr.io", "https://index.docker.io/v1/")),
        }
        self.environ["PATH"] = f"{tools}:{self.environ.get('PATH', os.environ['PATH'])}"

    def run(self, command: str) -> str:
        """Run a command of a page, and return what it printed; it ends as its comment says."""
        # The bed has one image of Python, whose tag names no patch release.
        line = BASE.sub(lambda found: f"{found[0]} --base {self.base}", command)
        done = subprocess.run(
            [*self.enter, line],
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        expected = int(any(comment in command for comment in REFUSED))
        assert done.returncode == expected, f"$ {line}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def shell(bed: Bed, tmp_path: Path) -> Shell:
    return Shell(bed, tmp_path)


def test_the_guide_of_containers(shell: Shell) -> None:
    """Its first command, `envlock capture`, has been run in the base, so that the image has this Python."""
    commands = list_commands("guides/container", r"^envlock build", r"^docker run")
    assert len(commands) == 11
    printed = {command: shell.run(command) for command in commands}
    assert [text for command, text in printed.items() if "# warned, and run" in command] == ["training\n"]
    assert (shell.folder / "context/Dockerfile").exists()


def test_the_guide_of_deployment(shell: Shell, bed: Bed) -> None:
    commands = list_commands("guides/deploy", r"^envlock build", r"envlock export", r"^docker (?:login|load)")
    assert len(commands) == 9
    last = commands.pop()
    for command in commands:
        shell.run(command)
    assert (shell.folder / "job.yaml").exists()
    assert (shell.folder / ".devcontainer/devcontainer.json").exists()
    assert (shell.folder / "train.tar").exists()
    (taken,) = list_commands("guides/deploy", r"^envlock capture --image")
    shell.run(taken)
    shell.base = bed.ngc
    shell.run(last)


def test_a_base_after_the_last_of_nvidias(shell: Shell, bed: Bed) -> None:
    # The best base of the tables for Debian's Python 3.11.2.
    bed.registry.push("library/buildpack-deps", "bookworm-scm", images.python(CACHE))
    commands = list_commands("guides/ngc-ended", r"^envlock images", r"--base wheels")
    commands += list_commands("guides/base-image", r"^envlock images")
    assert len(commands) == 5
    for command in commands:
        shell.run(command.replace("--base wheels", f"--base {shell.base}"))
    # The registry also stands for docker.io, and so for a mirror there.
    both = (images.ngc(CACHE), images.ngc(CACHE, "arm64"))
    bed.registry.push("nvcr/nvidia/tensorflow", "25.02-tf2-py3", *both)
    shell.base = bed.ngc
    for command in list_commands("guides/ngc-ended", r"^envlock capture --image", r"--mirror"):
        shell.run(command.replace("harbor.example/nvcr", "docker.io/nvcr"))
