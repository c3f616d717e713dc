"""`assert_locked()` around a real TensorFlow: before its import, after it, in children, and at what price."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Command
from tests.exhaustive import exhaustive

BEFORE = """
import sys, envlock
before = set(sys.modules)
envlock.assert_locked()
gained = set(sys.modules) - before
heavy = {"pydantic", "typer", "rich", "docker", "jinja2", "numpy", "tensorflow", "pynvml", "importlib.metadata", "json"}
print(sorted(heavy & gained), sorted(name for name in gained if not name.startswith(("envlock", "_"))))
mapped = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
print(sorted(path for path in mapped if "libcu" in path or "libnccl" in path or "libnv" in path))
"""

AFTER = """
import os, tensorflow as tf, envlock
tf.constant([1.0]) + 1
print(envlock.assert_locked().match)
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"      # too late: TensorFlow has read it
try:
    envlock.assert_locked()
except envlock.EnvironmentMismatch as mismatch:
    print([(finding.where.fact, finding.severity) for finding in mismatch.report.findings])
"""

CHILDREN = """
import multiprocessing, os, time, envlock
def seconds():
    start = time.process_time()
    assert envlock.assert_locked().match
    return time.process_time() - start
def child(_):
    return os.getpid() != parent, seconds() < first / 10
parent = os.getpid()
if __name__ == "__main__":
    first = seconds()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(set(pool.map(child, range(4))))
"""

REFUSED_IN_A_WORKER = """
import multiprocessing, os, envlock
def child(_):
    return envlock.assert_locked().match
if __name__ == "__main__":
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            pool.map(child, [1])
        except envlock.EnvironmentMismatch as mismatch:
            print(type(mismatch).__name__, [finding.where.fact for finding in mismatch.report.findings])
"""


REPEATED_BY_A_WORKER = """
import multiprocessing, os
import envlock
envlock.assert_locked()
def child():
    print("never")
if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"  # as Dask gives its workers
    process = multiprocessing.get_context("spawn").Process(target=child)
    process.start()
    process.join()
    print(process.exitcode)
"""

LIBRARY = """
import os
os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # as DeepXDE does when it is imported
import tensorflow
"""

TRAINING = """
import envlock
{line}
import library
import tensorflow as tf
envlock.record(loss=tf.constant(1.5) * 2)
"""


@pytest.mark.usefixtures("lock")
def test_it_loads_nothing_heavy_and_no_cuda_library(python: Command) -> None:
    done = python("-c", BEFORE)
    assert (0, "") == (done.returncode, done.stderr)
    gained, mapped = done.stdout.splitlines()
    assert gained in ("[] ['errno']", "[] []")  # Debian 13's Python has it from its start
    assert mapped == "[]"


@pytest.mark.usefixtures("lock")
def test_after_the_import_a_variable_changed_too_late_is_refused(python: Command) -> None:
    done = python("-c", AFTER, environ={"TF_CPP_MIN_LOG_LEVEL": "3"})
    assert ["True", "[('environ.TF_ENABLE_ONEDNN_OPTS', 'unknown')]"] == done.stdout.splitlines(), done.stderr


@pytest.mark.usefixtures("lock")
def test_forked_children_inherit_the_verdict(python: Command) -> None:
    (python.folder / "script.py").write_text(CHILDREN, encoding="utf-8")
    done = python("script.py")
    assert (0, "{(True, True)}\n", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.usefixtures("lock")
def test_a_refusal_in_a_worker_reaches_the_parent(python: Command) -> None:
    (python.folder / "script.py").write_text(REFUSED_IN_A_WORKER, encoding="utf-8")
    done = python("script.py")
    expected = "EnvironmentMismatch ['environ.TF_ENABLE_ONEDNN_OPTS']\n"
    assert (0, expected) == (done.returncode, done.stdout), done.stderr


@pytest.mark.usefixtures("lock")
def test_a_worker_that_imports_the_script_again_is_told_where_to_move_the_call(python: Command) -> None:
    (python.folder / "script.py").write_text(REPEATED_BY_A_WORKER, encoding="utf-8")
    done = python("script.py")
    script = python.folder / "script.py"
    advice = (
        f"this process is a worker that imports the script again: move line 4 of {script} below "
        '`if __name__ == "__main__":`, where only the parent process calls it\n'
    )
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "environ.OMP_NUM_THREADS: locked unset, live 1" in done.stderr
    assert advice in done.stderr
    below = REPEATED_BY_A_WORKER.replace("envlock.assert_locked()\n", "").replace(
        '"__main__":\n', '"__main__":\n    envlock.assert_locked()\n'
    )
    script.write_text(below, encoding="utf-8")
    assert python("script.py").stdout == "never\n0\n"


@exhaustive
@pytest.mark.parametrize("line", ["envlock.assert_locked()", "envlock.activate(seed=42, quiet=True)"])
@pytest.mark.usefixtures("lock")
def test_a_library_that_sets_a_variable_does_not_refuse_the_next_run(line: str, python: Command, cli: Command) -> None:
    (python.folder / "library.py").write_text(LIBRARY, encoding="utf-8")
    (python.folder / "training.py").write_text(TRAINING.format(line=line), encoding="utf-8")
    done = cli("repeat", "--runs", "3", str(python.folder / "training.py"), environ={"TF_CPP_MIN_LOG_LEVEL": "3"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == (
        "The program changes TF_FORCE_GPU_ALLOW_GROWTH after it was verified, so each run had a process of its own."
    )


def test_the_lock_is_of_a_real_tensorflow(python: Command, lock: dict[str, Any]) -> None:
    told = python(
        "-c",
        "import tensorflow as tf, keras, numpy, platform;"
        "print(tf.__version__, keras.__version__, keras.config.floatx(), keras.backend.backend(), numpy.__version__,"
        " platform.python_version(), tf.sysconfig.get_build_info()['is_cuda_build'])",
        environ={"TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    facts = lock["facts"]
    locked = [
        facts["tensorflow"]["version"],
        facts["keras"]["version"],
        facts["keras"]["config"]["floatx"],
        facts["keras"]["config"]["backend"],
        facts["numpy"]["version"],
        facts["python"]["version"],
        str(facts["tensorflow"]["cuda_build"]),
    ]
    assert " ".join(locked) == told.stdout.strip()


def test_the_packages_are_those_importlib_sees(python: Command, lock: dict[str, Any]) -> None:
    told = python(
        "-c",
        "import importlib.metadata as m, re, json;"
        "print(json.dumps({re.sub('[-_.]+', '-', d.name).lower(): d.version for d in m.distributions()}))",
    )
    expected = json.loads(told.stdout)
    del expected["tf-envlock"]
    assert expected == {name: package["version"] for name, package in lock["facts"]["packages"].items()}
