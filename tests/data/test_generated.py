"""What is generated is what the tables and the models give now."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envlock.runtime import tables

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]


def test_nothing_generated_is_out_of_date() -> None:
    argv = [sys.executable, "tools/generate.py", "--check"]
    own = {**os.environ, "PYTHONPATH": str(ROOT)}  # an editable install may be that of another checkout
    done = subprocess.run(argv, cwd=ROOT, env=own, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_runtime_half_reads_every_table_that_is_generated_for_it() -> None:
    names = sorted(file.stem for file in Path(tables.FOLDER).glob("*.json"))
    one, other = names[:9], names[9:]
    assert one == [
        "backends",
        "by_rank",
        "cpu_flags",
        "cuda",
        "determinism_recipes",
        "environ",
        "exemptions",
        "files",
        "flags",
    ]
    assert other[:6] == ["gpu", "launchers", "loaded", "machine", "makers", "operations"]
    assert other[6:] == ["policies", "policy", "protected", "replay", "startup"]
    assert all(tables.table(name) for name in names)
