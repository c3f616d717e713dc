"""What the pages show of commands is what the commands print."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.exhaustive import exhaustive
from tests.transcripts import agrees, run, steps, tools

ROOT = Path(__file__).resolve().parents[1]
PLAIN = [ROOT / "docs/guides/agents.md", ROOT / "docs/guides/data.md"]
"""Those that need no TensorFlow."""
NOTEBOOK = ROOT / "docs/guides/platforms.md"
"""Needs the extra `notebook` in the environment, which that of the tools has, and that with TensorFlow does not."""
GUIDES = (
    *("ci", "cookbook", "differences", "doctor", "lint", "quick-start", "refuse", "relax"),
    *("troubleshooting", "variables"),
)
NAMES = ("concepts/evidence", "reference/activation", *(f"guides/{name}" for name in GUIDES))
INSTALLATION = ROOT / "docs/guides/installation.md"
FROM_INDEX = [INSTALLATION, ROOT / "docs/guides/projects.md", ROOT / "docs/guides/sync.md"]
"""Those that install from the package index."""
PAGES = [*PLAIN, NOTEBOOK, *(ROOT / f"docs/{name}.md" for name in NAMES)]
"""Pages of which every block is run, or a text or settings to copy."""
LONG = ("activation", "cookbook", "doctor", "evidence", "relax", "troubleshooting")
"""Those that take five seconds and longer."""


def environ(folder: Path, python: str) -> dict[str, str]:
    """Return the variables of a shell that has envlock, and is told which environment it looks at."""
    path = f"{tools(folder / 'bin', sys.executable, python)}{os.pathsep}{os.environ['PATH']}"
    own = {"PYTHONPATH": str(ROOT), "ENVLOCK_PYTHON": python, "ENVLOCK_WITHOUT_TENSORFLOW": "1"}
    return {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", "NO_COLOR": "1", **own}


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("page", [*PLAIN, NOTEBOOK], ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    found = run(page, folder, environ(tmp_path, sys.executable))
    assert not found, "\n\n".join(found)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=exhaustive) if page.stem in LONG else page for page in PAGES if page != NOTEBOOK],
    ids=lambda page: page.stem,
)
def test_they_do_with_tensorflow(page: Path, tmp_path: Path, tensorflow_python: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    found = run(page, folder, environ(tmp_path, str(tensorflow_python)))
    assert not found, "\n\n".join(found)


@exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("page", FROM_INDEX, ids=lambda page: page.stem)
def test_it_is_installed_as_the_page_says(page: Path, tmp_path: Path) -> None:
    """In a copy of this checkout, with tools from the package index, and again without it."""
    folder = tmp_path / "project"
    folder.mkdir()
    index = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    variables = {**environ(tmp_path, sys.executable), **index, "CHECKOUT": str(ROOT)}
    found = run(page, folder, variables)
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_block_of_these_pages_is_left_out(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    kinds = re.findall(r"^```(\w*)$", text, flags=re.MULTILINE)[::2]
    assert set(kinds) <= {"console", "python", "text", "toml", "yaml"}
    assert re.search(r"^ {4}\$ ", text, flags=re.MULTILINE) is None
    commands = re.findall(r"^(?:<!-- )?\$ |^```python$", text, flags=re.MULTILINE)
    assert len(list(steps(page))) == len(commands)


def test_a_transcript_agrees_with_itself_only() -> None:
    assert agrees(["a...z", "...", "end"], "a to z\nmore\nmore\nend\n")
    assert agrees([], "")
    assert not agrees([], "warning\n")
    assert not agrees(["a.z"], "abz\n")
    assert not agrees(["one"], "one\ntwo\n")
