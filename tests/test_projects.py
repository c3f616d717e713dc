"""Projects of Poetry and PDM: what docs/guides/projects.md says of them is run with the real tools, from the package index.

The project adds wheels of files: the tools ask indexes in ways of their own, which a machine's mirror may not answer.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.exhaustive import exhaustive
from tests.packages.wheels import make_wheel
from tests.test_installed import wheel as wheel  # a fixture

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/guides/projects.md"
UV = Path(sys.executable).with_name("uv")
BEGIN = {
    "poetry": (
        'poetry init -q -n --name train --python ">=3.11,<3.15"',
        "printf '\\n[tool.poetry]\\npackage-mode = false\\n' >> pyproject.toml",
        "poetry config virtualenvs.in-project true --local",
    ),
    # Of an environment of its own: `pdm sync --clean` empties the one that it is given.
    "pdm": ('"$PYTHON" -m venv .venv', "pdm init -q -n --python .venv/bin/python"),
}
TOOLS = {"poetry": "poetry", "pdm": "pdm --with 'hishel<2'"}
"""What is installed. PDM 2.29.4 takes any hishel from 1.4 on, and does not work with 2."""
AGAIN = {"poetry": "poetry sync -q", "pdm": "pdm sync -q --clean"}

pytestmark = [pytest.mark.slow, exhaustive]


def read_block(title: str) -> list[str]:
    """Return the commands of the indented block below a heading of the page."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [line.strip() for line in re.findall(r"^ {4}(\S.*)$", section, re.MULTILINE)]


@pytest.mark.parametrize("tool", BEGIN)
def test_a_project_that_lists_envlock_keeps_it(tool: str, tmp_path: Path, wheel: Path) -> None:
    project, binaries = tmp_path / "project", tmp_path / "bin"
    project.mkdir()
    binaries.mkdir()
    (binaries / "envlock").write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -P -m envlock "$@"\n')
    (binaries / "envlock").chmod(0o755)
    index = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    own = {"HOME": str(tmp_path), "UV_TOOL_BIN_DIR": str(binaries), "PYTHON": sys.executable, "LANG": "C.UTF-8"}
    environ = {**index, **own, "PATH": f"{binaries}:{os.environ['PATH']}", "ENVLOCK_WITHOUT_TENSORFLOW": "1"}

    def run(command: str) -> subprocess.CompletedProcess[str]:
        words = ["/bin/sh", "-ec", command]
        return subprocess.run(words, cwd=project, env=environ, capture_output=True, text=True, timeout=600, check=False)

    done = run(f'"{UV}" tool install -q {TOOLS[tool]}')
    assert done.returncode == 0, done.stderr
    title = {"poetry": "Poetry", "pdm": "PDM"}[tool]
    added = f"{make_wheel(tmp_path, 'computes')} {wheel}"
    add, capture = (line.replace("../envlock", added) for line in read_block(title))
    for command in BEGIN[tool]:
        assert run(command).returncode == 0
    done = run(add)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run(capture)
    assert done.returncode == 0, done.stderr
    assert run(AGAIN[tool]).returncode == 0
    done = run("envlock verify && .venv/bin/python -c 'import envlock'")
    assert (done.returncode, done.stdout) == (0, "matches under policy strict\n"), done.stdout + done.stderr
