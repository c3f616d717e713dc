"""Ray and TensorFlow, each with several nodes on this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.exhaustive import exhaustive, first
from tests.fleet import bed
from tests.fleet.conftest import ODD

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.processes]

HERE = Path(__file__).parent
Mpirun = Callable[..., bed.Started]


@exhaustive
def test_a_cluster_of_ray(ray_python: Path, tmp_path: Path) -> None:
    """Three nodes with the same bits; a fourth with other bits; one with other facts; then that one is dead."""
    (tmp_path / "pyproject.toml").touch()
    python = with_defect(ray_python, tmp_path)
    start: list[str | Path] = ["unshare", "--net", python, HERE / "ray_program.py"]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = bed.run([*start, sys.executable], tmp_path, quiet, timeout=500)
    ends = [json.loads(line) for line in done.output.splitlines() if line.startswith("[")]
    assert [name for name, *_ in ends] == ["alike", "bits", "few", "odd", "dead"], done.errors
    alike, bits, few, odd, dead = (each[1:] for each in ends)
    assert alike[:2] == [0, "began\n"], alike
    assert alike[2].startswith("3 ranks alike\n3 ranks on 3 nodes, job run-")
    assert "canary on 3 nodes, compared with n[1-3]: the same bits on all nodes\n" in alike[2]
    assert bits[:2] == [1, ""], bits
    assert bits[2].startswith("4 ranks alike, and other bits\n  x n5: numerics.numpy.np_random: "), bits
    assert bits[2].count("\n  x ") == 1
    assert "canary on 4 nodes, compared with n[1-3]: 2 different results\n" in bits[2]
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


@exhaustive
@pytest.mark.tensorflow
@pytest.mark.parametrize("cap", first(1, ["SSE41", ""]), ids=["odd", "alike"])
def test_bits_of_nodes(mpirun: Mpirun, tensorflow_python: Path, tmp_path: Path, cap: str) -> None:
    """Another instruction set is simulated by capping oneDNN's; it is a fact too, so that both are named."""
    (tmp_path / "pyproject.toml").touch()
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {ODD} {tensorflow_python} "$@"\n')
    python.chmod(0o755)
    words = [sys.executable, "-m", "envlock", "fleet", "run", "--launcher", "mpi", "-n", "4", "--numerics"]
    odd = {"ODD": f"ONEDNN_MAX_CPU_ISA={cap}", "ODD_RANKS": "2 3"} if cap else {}
    done = mpirun([*words, "--python", python, "--", "echo", "began"], tmp_path, {"TF_CPP_MIN_LOG_LEVEL": "3", **odd})
    if not cap:
        assert (done.code, done.output) == (0, "began\n" * 4), done.errors
        assert "canary on 2 nodes, compared with n[1-2]: the same bits on all nodes\n" in done.errors
        return
    assert (done.code, done.output) == (1, ""), done.errors
    assert "x n2: numerics.cpu-onednn.matmul: " in done.errors
    assert "oneDNN takes SSE4.1 on one side, " in done.errors
    assert "canary on 2 nodes, compared with n1: 2 different results\n" in done.errors


@exhaustive
@pytest.mark.tensorflow
def test_bits_that_differ_where_no_fact_does(mpirun: Mpirun, tensorflow_python: Path, tmp_path: Path) -> None:
    """One node draws normal numbers otherwise, as a defective core or a patched library of the same version would."""
    (tmp_path / "pyproject.toml").touch()
    defective = with_defect(tensorflow_python, tmp_path)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {ODD} {defective} "$@"\n')
    python.chmod(0o755)
    words = [sys.executable, "-m", "envlock", "fleet", "run", "--launcher", "mpi", "-n", "4", "--numerics"]
    odd = {"ODD": "DEFECTIVE=1", "ODD_RANKS": "2 3", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = mpirun([*words, "--python", python, "--", "echo", "began"], tmp_path, odd)
    assert (done.code, done.output) == (1, ""), done.errors
    assert done.errors.startswith("4 ranks alike, and other bits\n"), done.errors
    marked = [line for line in done.errors.splitlines() if line.startswith("  x ")]
    assert [line.partition(": ")[2].partition(":")[0] for line in marked] == ["numerics.numpy.np_random"], done.errors
    assert marked[0].startswith("  x n2: "), done.errors


DEFECT = """
import os
if "DEFECTIVE" in os.environ:
    made = default_rng
    class Defective:
        def __init__(self, seed=None):
            self.generator = made(seed)
        def standard_normal(self, size):
            found = self.generator.standard_normal(size)
            found[0] += found[0] * 2.0**-52
            return found
    default_rng = Defective
"""


def with_defect(python: Path, folder: Path) -> Path:
    """Return the interpreter of a copy of an environment, whose NumPy draws otherwise where DEFECTIVE is set.

    Its version and its metadata are those of the original, so that no fact tells; files are shared where they can be.
    """
    copy = folder / "environment"
    shutil.copytree(python.parents[1], copy, symlinks=True, copy_function=_link)
    (file,) = copy.glob("lib/python3*/site-packages/numpy/random/__init__.py")
    text = file.read_text(encoding="utf-8")
    file.unlink()
    file.write_text(text + DEFECT, encoding="utf-8")
    return copy / "bin" / python.name


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


@exhaustive
@pytest.mark.tensorflow
@pytest.mark.parametrize(("odd", "code"), first(1, [({"NVIDIA_TF32_OVERRIDE": "0"}, 1), ({}, 0)]), ids=["odd", "alike"])
def test_workers_of_tensorflow(tensorflow_python: Path, tmp_path: Path, odd: dict[str, str], code: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    first = bed.free_ports(4)
    ports = [str(first + each) for each in range(4)]

    def worker(rank: int) -> bed.Started:
        own = {"ENVLOCK_FLEET_NODE": f"n{rank + 1}", "TF_CPP_MIN_LOG_LEVEL": "3", **(odd if rank == 2 else {})}
        words: list[str | Path] = [tensorflow_python, HERE / "tf_program.py", str(rank), *ports]
        return bed.run(words, tmp_path, own, timeout=300)

    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(worker, range(4)))
    assert [each.code for each in ends] == [code] * 4, ends
    said = "n3 (rank 2): environ.NVIDIA_TF32_OVERRIDE: most ranks unset, here 0\n"
    assert [said in each.errors for each in ends] == [code == 1, False, False, False]
    (output,) = {each.output for each in ends}  # also the weights, bit for bit
    assert output.startswith("trained 1.00 -2.00 ") if code == 0 else output == "refused 1\n"
