"""Asking TensorFlow in a child: what comes back from good, bad, silent and stuck children."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import time

import pytest

from envlock.diagnosis.loaded_cuda import ask_tensorflow, find_contradictions, spell
from envlock.guest import launch
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes


def fake_python(folder: Path, body: str) -> Path:
    """Return a program that stands for the interpreter."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\nimport json, os, signal, sys, time\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def ask(folder: Path, body: str, timeout: float = 20) -> object:
    return ask_tensorflow(Host(environ={"A": "1"}, path=[]), timeout, fake_python(folder, body))


def test_answers_are_spelt_and_a_library_that_does_not_load_is_none(tmp_path: Path) -> None:
    body = "print('noise'); print('envlock-answer:' + json.dumps({'cudnn': 92800, 'nccl': 0, 'cudart': 12050}))"
    assert ask(tmp_path, body) == {"cudnn": "9.28.0", "nccl": None, "cudart": "12.5"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("sys.exit(3)", "child-failed"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "child-failed"),
        ("print('no mark')", "child-failed"),
        ("print('envlock-answer:[1]')", "child-failed"),
    ],
)
def test_a_child_that_fails(tmp_path: Path, body: str, code: str) -> None:
    answer = ask(tmp_path, body)
    assert isinstance(answer, Unavailable)
    assert answer.code == code


def test_a_child_that_does_not_start(tmp_path: Path) -> None:
    answer = ask_tensorflow(Host(environ={}, path=[]), 5, tmp_path / "nowhere")
    assert isinstance(answer, Unavailable)
    assert answer.code == "child-not-started"


def test_a_child_that_hangs_and_ignores_the_end_costs_the_limit_and_a_little(tmp_path: Path) -> None:
    begin = time.perf_counter()
    answer = ask(tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)", 0.3)
    assert isinstance(answer, Unavailable)
    assert answer.code == "child-timeout"
    assert time.perf_counter() - begin < 100


def test_the_child_starts_with_the_variables_that_the_loader_had(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/environ").write_text("LD_LIBRARY_PATH=/start\0")
    body = (
        "told = os.environ.get('LD_LIBRARY_PATH') == '/start' and os.environ.get('A') == '1'\n"
        "print('envlock-answer:' + json.dumps({'cudart': 12050 if told else 0}))"
    )
    host = Host(root=str(tmp_path), environ={"A": "1", "LD_LIBRARY_PATH": "/changed"}, path=[])
    assert ask_tensorflow(host, 20, fake_python(tmp_path, body)) == {"cudart": "12.5"}


STUBS = """
import ctypes, mmap, sys, types
class Stub:
    def __init__(self, number): self.number = number
    def __call__(self): return self.number
class Library:
    cudnnGetVersion, cublasLtGetVersion = Stub({cudnn}), Stub({blas})
ctypes.CDLL = lambda path: Library()
sys.modules["tensorflow"] = types.SimpleNamespace(__file__="tensorflow/__init__.py")
streams = [open(file, "rb") for file in sys.argv[3:]]
kept = [mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) for stream in streams]
exec(open(sys.argv[2]).read())
"""
"""A TensorFlow whose library has two wrappers without a status, in a process that maps some files."""


@pytest.mark.parametrize(
    ("numbers", "mapped", "expected"),
    [
        # The wrappers of TensorFlow 2.18.1 and 2.19.1 without the libraries: 14 is CUBLAS_STATUS_INTERNAL_ERROR.
        ((0, 14), (), {"cudnn": 0, "cublasLt": 0}),
        ((4000, 14), ("libcublas.so.12", "libcudnn_ops.so.9"), {"cudnn": 0, "cublasLt": 0}),
        ((90300, 120503), ("libcublasLt.so.12",), {"cudnn": 0, "cublasLt": 120503}),
        ((90300, 120503), ("libcublasLt.so.12", "libcudnn.so.9"), {"cudnn": 90300, "cublasLt": 120503}),
    ],
)
def test_an_error_of_a_wrapper_is_no_version(
    tmp_path: Path, numbers: tuple[int, int], mapped: tuple[str, ...], expected: dict[str, int]
) -> None:
    files = []
    for name in mapped:
        (tmp_path / name).write_bytes(b"x" * 100)
        files.append(str(tmp_path / name))
    stubs = STUBS.replace("{cudnn}", str(numbers[0])).replace("{blas}", str(numbers[1]))
    asked = json.dumps({"mark": "answer:", "path": None})
    (tmp_path / "program.py").write_text(launch.read("cuda_versions"))
    words = [sys.executable, "-c", stubs, asked, str(tmp_path / "program.py"), *files]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.removeprefix("answer:")) == expected


def test_version_numbers() -> None:
    rows = [
        ("cudnn", 8904, "8.9.4"),
        ("cudnn", 90300, "9.3.0"),
        ("cudart", 11080, "11.8"),
        ("nccl", 22105, "2.21.5"),
        ("nccl", 2804, "2.8.4"),
        ("cublas", 120503, "12.5.3"),
        ("cublasLt", 120903, "12.9.3"),
        ("cufft", 11203, "11.2.3"),
        ("cudnn", 0, None),
    ]
    assert [(key, number, spell(key, number)) for key, number, _ in rows] == rows


def test_contradictions_are_told_as_far_as_both_sides_tell() -> None:
    cuda = {
        "cudnn": {"linkage": "dlopen", "version": "9.3.0", "resolved_by": "RUNPATH"},
        "cublas": {"linkage": "dlopen", "version": "12.5.3.2", "resolved_by": "RUNPATH"},
        "cufft": {"linkage": "dlopen", "version": None, "file": None, "resolved_by": "not found"},
        "cudart": {"linkage": "dlopen", "resolved_by": "RUNPATH"},
        "nccl": {"linkage": "dlopen", "version": "2.1.0", "resolved_by": "loaded"},
        "cublasLt": {"linkage": "dlopen", "version": "12.5.3.2", "problem": "damaged", "resolved_by": "RUNPATH"},
    }
    agreeing = {
        "cudnn": "9.3.0",
        "cublas": "12.5.3",
        "cufft": None,
        "cudart": "12.5",
        "nccl": "2.2.0",
        "cublasLt": None,
    }
    assert find_contradictions(cuda, agreeing) == []
    found = find_contradictions(cuda, {**agreeing, "cudnn": "9.28.0", "cufft": "11.2.3", "cublas": None})
    assert [(one.where.fact, one.expected, one.actual, one.severity) for one in found] == [
        ("cuda.cudnn.version", "9.3.0", "9.28.0", "error"),
        ("cuda.cublas.version", "12.5.3.2", None, "error"),
        ("cuda.cufft.version", None, "11.2.3", "error"),
    ]
