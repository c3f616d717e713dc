"""The recipes of docs/guides/signing.md with the real tools: a signed model verifies, a changed stamp does not."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests import transcripts
from tests.conftest import absent

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/guides/signing.md"
BEFORE, COSIGN, MODEL_SIGNING = PAGE.read_text(encoding="utf-8").split("\n## ")


def test_each_block_belongs_to_a_tool_and_is_run() -> None:
    assert (COSIGN.split("\n")[0], MODEL_SIGNING.split("\n")[0]) == ("cosign", "model-signing")
    assert "```console" in BEFORE
    assert {line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("```")} == {
        "```console",
        "```",
    }


@pytest.mark.signing
@pytest.mark.processes
@pytest.mark.parametrize(
    ("program", "section"), [("cosign", COSIGN), ("model_signing", MODEL_SIGNING)], ids=["cosign", "model-signing"]
)
def test_a_tool_refuses_a_model_with_another_stamp(program: str, section: str, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        absent(f"no {program} on PATH: docs/guides/signing.md says where it is from")
    page = tmp_path / "signing.md"
    page.write_text(f"{BEFORE}\n{section}", encoding="utf-8")
    folder = tmp_path / "project"
    folder.mkdir()
    bin = transcripts.tools(tmp_path / "bin", sys.executable, sys.executable)  # noqa: A001 (its name)
    environ = {
        "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "ENVLOCK_PYTHON": sys.executable,
        "ENVLOCK_WITHOUT_TENSORFLOW": "1",
    }
    found = transcripts.run(page, folder, environ)
    assert not found, "\n\n".join(found)
