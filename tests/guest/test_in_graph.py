"""Level 3 with real TensorFlows: the culprit inside a graph and its line, and traces of two environments."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.divergence.comparison import Difference
from envlock.divergence.observed_runs import Request, observe
from envlock.divergence.trace import Place, Record
from envlock.divergence.trace_recording import Effect, record
from envlock.divergence.two_traces import report
from envlock.guest.target import Target
from envlock.runtime.report import Report
from tests.conftest import Command
from tests.exhaustive import exhaustive

HERE = Path(__file__).parents[1] / "divergence"
PROGRAMS = HERE / "graph_programs.py"
ROOT = HERE.parents[1]
OLDER = ("2.15.1", "2.16.2", "2.18.1", "2.20.0")


def line_of(name: str) -> int:
    """Return the line that is marked with a name."""
    text = PROGRAMS.read_text(encoding="utf-8").splitlines()
    return 1 + next(n for n, line in enumerate(text) if line.endswith(f"  # {name}"))


def first(python: Path, name: str, folder: Path, runs: int = 3) -> Difference | None:
    """Return the first difference of runs of a program, each in a process of its own as they would be by hand."""
    request = Request(Target(PROGRAMS, name), python, runs, False, mode="in-graph", serial=True)
    return observe(request, folder / name).comparison.first


def culprit(python: Path, name: str, folder: Path) -> tuple[str, str, int | None]:
    """Return the kind of the first difference, the operation's type, and its line."""
    found = first(python, name, folder)
    assert found is not None
    assert isinstance(found.entry, Record)
    place = found.entry.operation.place
    assert place is None or place.file == PROGRAMS.name
    return found.kind, found.entry.operation.type, place and place.line


def recorded(python: Path, name: str, output: Path) -> Effect:
    """Record a program with a look into its graphs; return whether looking changed anything."""
    said: list[str] = []
    request = Request(Target(PROGRAMS, name), python, 1, fresh=True, in_graph=True)
    done = record(request, output, said.append)
    return done.effect


def of_product(found: Report) -> tuple[str, Place | None] | None:
    """Return the first operation that differs, and its place."""
    pair = found.attachments["first"]
    if pair is None or "type" not in pair["a"]:
        return None
    place = pair["a"]["place"]
    return pair["a"]["type"], place and Place(**place)


@exhaustive
@pytest.mark.tensorflow
def test_graphs_xla_and_numpy_give_the_same_fingerprints(tensorflow_python: Path) -> None:
    """And exchanged neighbours, changed signs, the nearest other number and other patterns all change them."""
    program = str(HERE / "fingerprints_program.py")
    environ = {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(
        [str(tensorflow_python), program], env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["wrong"], found["changed"]) == ([], 1 + 3 * 1_429)  # 1,429 places are changed in three ways
    assert found["alike"] == []


@exhaustive
@pytest.mark.tensorflow
def test_culprits_inside_of_graphs(tensorflow_python: Path, tmp_path: Path) -> None:
    found = {name: culprit(tensorflow_python, name, tmp_path) for name in ("scatter", "embedding", "python")}
    assert found == {
        "scatter": ("operation", "ResourceScatterAdd", line_of("scatter")),
        "embedding": ("operation", "ResourceScatterSub", line_of("embedding")),
        "python": ("outside", "PyFunc", line_of("python")),
    }
    assert first(tensorflow_python, "clean", tmp_path) is None


@pytest.mark.tensorflow
@pytest.mark.older_tensorflows
@pytest.mark.parametrize("version", OLDER)
def test_a_culprit_with_an_older_tensorflow(
    version: str, older_tensorflow: Callable[[str], Path], tmp_path: Path
) -> None:
    found = culprit(older_tensorflow(version), "scatter", tmp_path)
    assert found == ("operation", "ResourceScatterAdd", line_of("scatter"))


@pytest.mark.tensorflow
@pytest.mark.older_tensorflows
def test_xla_ignores_the_seeds_of_keras_2(older_tensorflow: Callable[[str], Path], tmp_path: Path) -> None:
    """Nobody planted it: a stateful random operation under XLA, behind a Keras layer."""
    found = culprit(older_tensorflow("2.15.1"), "dropout", tmp_path)
    assert found == ("operation", "RandomUniform", line_of("dropout"))


@exhaustive
@pytest.mark.tensorflow
def test_another_instruction_set(
    tensorflow_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, envlock: Command
) -> None:
    """oneDNN with AVX2 multiplies matrices to other bits than with AVX-512: where there is that, it is named."""
    a, b, same = tmp_path / "a.trace", tmp_path / "b.trace", tmp_path / "c.trace"
    assert recorded(tensorflow_python, "product", a) == "none"
    assert recorded(tensorflow_python, "product", same) == "none"
    assert a.read_bytes() == same.read_bytes()
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert recorded(tensorflow_python, "product", b) == "none"
    if "avx512f" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        assert report(str(a), str(b)).match  # AVX2 is what it computes with anyway
        return
    place = Place(PROGRAMS.name, line_of("product"), "step")
    assert of_product(report(str(a), str(b))) == ("MatMul", place)
    done = envlock("diverge", "compare", str(a), str(b))
    assert done.returncode == 1
    assert "x MatMul is the first operation that gave different bits from equal inputs" in done.stdout


@pytest.mark.tensorflow
@pytest.mark.older_tensorflows
def test_another_tensorflow(tensorflow_python: Path, older_tensorflow: Callable[[str], Path], tmp_path: Path) -> None:
    """Of matrix product and tanh, the latter is what changed between 2.18 and 2.21."""
    a, b = tmp_path / "a.trace", tmp_path / "b.trace"
    recorded(older_tensorflow("2.18.1"), "product", a)
    recorded(tensorflow_python, "product", b)
    found = report(str(a), str(b))
    assert of_product(found) == ("Tanh", Place(PROGRAMS.name, line_of("product"), "step"))
    assert found.attachments["alone"] == [0, 0]


@exhaustive
@pytest.mark.tensorflow
def test_where_looking_changes_the_result_it_is_said(tensorflow_python: Path, tmp_path: Path, envlock: Command) -> None:
    """A kernel that TensorFlow would have fused is two when somebody looks between them.

    oneDNN's fused kernel has other bits; it is used by default only on processors with AVX-512 or AVX-VNNI.
    """
    output = str(tmp_path / "a.trace")
    argv = ["diverge", "record", f"{PROGRAMS}:fused", "-o", output, "--in-graph"]
    onednn = {"TF_ENABLE_ONEDNN_OPTS": "1"}
    done = envlock(*argv, "--python", str(tensorflow_python), environ=onednn, timeout=300)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith(
        "\nwarning: tracing changed the result: TensorFlow fuses kernels only where no tracer reads them, and a fused "
        "kernel can give other bits; the trace shows the program as it ran under the tracer\n"
    )
