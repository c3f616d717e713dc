"""Ray with several nodes on this machine."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.exhaustive import exhaustive
from tests.fleet import bed

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.processes]

HERE = Path(__file__).parent
Mpirun = Callable[..., bed.Started]


@exhaustive
def test_a_cluster_of_ray(ray_python: Path, tmp_path: Path) -> None:
    """Three nodes that are alike; too few; one with other facts; then that one is dead."""
    (tmp_path / "pyproject.toml").touch()
    start: list[str | Path] = ["unshare", "--net", ray_python, HERE / "ray_program.py"]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = bed.run([*start, sys.executable], tmp_path, quiet, timeout=500)
    ends = [json.loads(line) for line in done.output.splitlines() if line.startswith("[")]
    assert [name for name, *_ in ends] == ["alike", "few", "odd", "dead"], done.errors
    alike, few, odd, dead = (each[1:] for each in ends)
    assert alike[:2] == [0, "began\n"], alike
    assert alike[2].startswith("3 ranks alike\n3 ranks on 3 nodes, job run-")
    assert few[:2] == [1, ""], few
    assert few[2].startswith("does not match: ranks do not belong together\n  x n[1-3] (ranks 0-2): belongs to "), few
    assert odd[:2] == [1, ""], odd
    assert odd[2].startswith("does not match: 1 of 4 ranks differ\n  x n4 (rank ")
    assert "): environ.TF_ENABLE_ONEDNN_OPTS: most ranks unset, here 0\n" in odd[2]
    assert dead[:2] == [4, ""], dead
    lost = "cannot decide: 1 of 4 ranks did not report\n  \\? no report from rank [0-3]\n"
    assert re.match(lost, dead[2]), dead


@exhaustive
def test_without_a_cluster_the_engine_is_missing(ray_python: Path, tmp_path: Path) -> None:
    """Ray says so, or waits for a cluster of another network, which it has found by its processes, until the limit."""
    command = [sys.executable, "-m", "envlock", "fleet", "run", "--launcher", "ray", "--timeout", "1"]
    words: list[str | Path] = [*command, "--python", ray_python, "--", "true"]
    done = bed.run(words, tmp_path, {})
    assert (done.code, done.output) == (5, "")
    assert done.errors.startswith("error: no rank has reported: python "), done.errors
