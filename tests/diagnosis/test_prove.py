"""The child process: a TensorFlow that crashes, hangs or lies ends in a clear error within bounded time."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from envlock.diagnosis.tensorflow_state import observe
from envlock.runtime.errors import FactError, UsageError

pytestmark = pytest.mark.processes

ABORT = """
import os, sys
sys.stderr.write("I0000 00:00:1.2 port.cc:153] oneDNN is on\\n")
sys.stderr.write("F0000 00:00:1.3 9 determinism.cc:36] Check failed: Failed to parse the env-var\\n")
sys.stderr.flush()
os.abort()
"""


def fake(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a module called tensorflow on the import path of children."""
    (folder / "tensorflow.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_a_tensorflow_without_anything_is_observed_as_far_as_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, "__version__ = '9.9'\nprint('hello from the import')\n", monkeypatch)
    seen = observe(None, None)
    assert (seen["tensorflow"], seen["clock"], seen["threads"]) == ("9.9", None, None)
    assert seen["reasons"]["crop"] == "AttributeError: module 'tensorflow' has no attribute 'device'"


def test_one_that_aborts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, ABORT, monkeypatch)
    with pytest.raises(FactError) as caught:
        observe(None, None)
    assert caught.value.message == (
        "TensorFlow was ended by SIGABRT before the probe operations finished: Check failed: Failed to parse the "
        "env-var"
    )
    assert caught.value.hint == "run `envlock doctor` without `--prove` to find the variable or flag"


def test_one_that_exits_without_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "import os; os._exit(3)", monkeypatch)
    with pytest.raises(FactError) as caught:
        observe(None, None)
    assert caught.value.message == "TensorFlow exited with code 3 before the probe operations finished: no output"


def test_one_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hang = "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    fake(tmp_path, hang + "time.sleep(600)", monkeypatch)
    start = time.monotonic()
    with pytest.raises(FactError) as caught:
        observe(None, None, timeout=0.5)
    assert caught.value.message == "the probe operations did not finish within 0.5 s"
    assert time.monotonic() - start < 100


def test_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    with pytest.raises(FactError) as caught:
        observe(None, None)
    assert caught.value.message == "TensorFlow cannot be imported: ModuleNotFoundError: No module named 'tensorflow'"


def test_lines_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "__version__ = '9.9'", monkeypatch)
    with pytest.raises(UsageError) as caught:
        observe(None, "import tensorflow\nraise ValueError('mine')")
    assert caught.value.message == "the lines of `--with`, or the import of TensorFlow, fail: ValueError: mine"


def test_lines_run_before_and_what_they_print_is_not_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, "__version__ = '9.9'", monkeypatch)
    lines = "import tensorflow\ntensorflow.__version__ = '8.8'\nprint('envlock-answer:{}')"
    assert observe(None, lines)["tensorflow"] == "8.8"


def test_no_such_interpreter(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        observe(tmp_path / "python", None)
    assert caught.value.message == f"cannot run {tmp_path}/python: No such file or directory"


def test_without_lines_the_current_folder_is_not_on_the_import_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a file called random.py there would be imported in the place of Python's own."""
    monkeypatch.chdir(tmp_path)
    fake(tmp_path, "import sys\n__version__ = str('' in sys.path)", monkeypatch)
    assert observe(Path(sys.executable), None)["tensorflow"] == "False"
