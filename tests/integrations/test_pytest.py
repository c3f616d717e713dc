"""The plugin in pytest itself: what it refuses, skips, records and compares, and what it costs unused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy  # noqa: F401 (pytester forgets modules that a test imports first, and NumPy cannot be loaded twice)
import pytest

import envlock
from envlock.lock.creation import capture
from envlock.lock.document import dump
from tests.integrations.page import headings, program

pytest_plugins = ["pytester"]

ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
PLAIN = ["-p", "no:randomly", "-p", "no:cacheprovider", "-rs"]
DIFFERENCE = "does not match under policy strict: 1 fact differs"


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a lockfile of this environment, having used what the plugin does.

    Pytester forgets every module that is imported first within a test, and other tests would have two of it.
    """
    file = tmp_path_factory.mktemp("captured") / "envlock.lock"
    with pytest.MonkeyPatch.context() as environ:
        environ.delenv(ONEDNN, raising=False)
        file.write_bytes(dump(capture()))
        assert envlock.assert_locked(file)
        assert envlock.cite(envlock.locate(file))
        environ.setenv(ONEDNN, "0")
        with pytest.raises(envlock.EnvironmentMismatch):
            envlock.assert_locked(file)
    return file.read_bytes()


@pytest.fixture(autouse=True)
def lock(captured: bytes, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the lockfile of this environment, in the folder in which pytest is run."""
    monkeypatch.delenv(ONEDNN, raising=False)
    path = pytester.path / "envlock.lock"
    path.write_bytes(captured)
    return path


def run(pytester: pytest.Pytester, *words: str) -> tuple[int, list[str]]:
    """Return the exit code and all lines of pytest, run in this process."""
    done = pytester.runpytest_inprocess(*PLAIN, *words)
    return int(done.ret), [*done.outlines, *done.errlines]


def test_the_header_says_the_verdict(pytester: pytest.Pytester, lock: Path) -> None:
    pytester.makepyfile("def test_one(): pass")
    other = lock.rename(lock.with_name("gpu.lock"))
    code, lines = run(pytester, f"--envlock={other.name}")
    assert code == 0
    assert "envlock: matches under policy strict (gpu.lock)" in lines


def test_the_nearest_lockfile_is_taken(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_one(): pass")
    code, lines = run(pytester, "--envlock")
    assert (code, "envlock: matches under policy strict (envlock.lock)" in lines) == (0, True)


def test_no_test_runs_in_another_environment(
    pytester: pytest.Pytester, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile("def test_one(): raise SystemExit(70)")
    monkeypatch.setenv(ONEDNN, "0")
    code, lines = run(pytester, "--envlock")
    said = [line for line in lines if line]
    assert (code, said[:2]) == (
        pytest.ExitCode.USAGE_ERROR,
        [f"ERROR: envlock: {lock}: {DIFFERENCE}", f"  x environ.{ONEDNN}: locked unset, live 0"],
    )


def test_the_switch_for_emergencies_is_said(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makepyfile("def test_one(): pass")
    monkeypatch.setenv("ENVLOCK_MODE", "off")
    code, lines = run(pytester, "--envlock")
    assert (code, "envlock: not verified (ENVLOCK_MODE=off) (envlock.lock)" in lines) == (0, True)


def test_a_path_of_tests_is_not_taken_for_a_lockfile(pytester: pytest.Pytester) -> None:
    file = pytester.makepyfile("def test_one(): pass").name
    for path in (file, f"{file}::test_one", "."):
        code, lines = run(pytester, "--envlock", path)
        said = [line for line in lines if line]
        assert (code, said) == (
            pytest.ExitCode.USAGE_ERROR,
            [f"ERROR: {path} is not a lockfile: write --envlock=LOCK, or `--envlock` after all paths"],
        )


def test_the_settings_of_pytest_can_ask_for_it(pytester: pytest.Pytester) -> None:
    file = pytester.makepyfile("def test_one(): pass").name
    pytester.makeini("[pytest]\naddopts = --envlock=envlock.lock")
    code, lines = run(pytester, file)
    assert (code, "envlock: matches under policy strict (envlock.lock)" in lines) == (0, True)


def test_a_lockfile_that_is_not_there(pytester: pytest.Pytester, lock: Path) -> None:
    pytester.makepyfile("def test_one(): pass")
    code, lines = run(pytester, "--envlock=other.lock")
    with pytest.raises(envlock.LockfileError) as caught:
        envlock.assert_locked(lock.with_name("other.lock"))
    assert (code, [line for line in lines if line]) == (4, f"ERROR: envlock: {caught.value}".split("\n"))


MARKED = """
import pytest

@pytest.mark.envlock
def test_as_locked(): pass

@pytest.mark.envlock("functional")
def test_functional(): pass

def test_plain(): pass
"""


def test_a_marked_test_is_skipped_in_another_environment(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(MARKED)
    pytester.runpytest_inprocess(*PLAIN).assert_outcomes(passed=3)
    monkeypatch.setenv(ONEDNN, "0")
    done = pytester.runpytest_inprocess(*PLAIN, "--strict-markers")
    done.assert_outcomes(passed=2, skipped=1)
    assert any(line.endswith(f"not in the locked environment: {DIFFERENCE}") for line in done.outlines)


def test_where_the_locked_environment_is_demanded_a_stricter_mark_is_an_error(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, lock: Path
) -> None:
    lock.write_bytes(dump(capture("functional")))
    pytester.makepyfile("import pytest\n@pytest.mark.envlock('strict')\ndef test_one(): pass")
    monkeypatch.setenv(ONEDNN, "0")
    done = pytester.runpytest_inprocess(*PLAIN, "--envlock")
    done.assert_outcomes(errors=1)
    assert f"envlock: {lock}: {DIFFERENCE}" in done.outlines


ARRAYS = """
import numpy
import pytest

@pytest.mark.parametrize("step", [1, 2])
def test_bits(bits, step):
    result = numpy.arange({start}, 6, step, dtype="float32")
    bits(result)
    bits(result.reshape(-1, 1), "column")
"""


def test_bits_are_recorded_once_and_held_afterwards(pytester: pytest.Pytester, lock: Path) -> None:
    file = pytester.makepyfile(test_it=ARRAYS.format(start=0))
    done = pytester.runpytest_inprocess(*PLAIN)
    done.assert_outcomes(failed=2)
    assert "E       Failed: test_it.bits.json has no digest of `result` in this environment" in done.outlines
    pytester.runpytest_inprocess(*PLAIN, "--envlock-update").assert_outcomes(passed=2)
    records = json.loads(file.with_suffix(".bits.json").read_bytes())
    assert {test: sorted(found) for test, found in records.items()} == {
        "test_bits[1]": ["column", "result"],
        "test_bits[2]": ["column", "result"],
    }
    assert {key for found in records.values() for name in found.values() for key in name} == {envlock.cite(lock)}
    pytester.runpytest_inprocess(*PLAIN).assert_outcomes(passed=2)
    pytester.makepyfile(test_it=ARRAYS.format(start="0.0000001"))
    done = pytester.runpytest_inprocess(*PLAIN, "--envlock")
    done.assert_outcomes(failed=2)
    old = records["test_bits[1]"]["result"][envlock.cite(lock)][:12]
    said = f"E       Failed: the bits of `result` are not those in test_it.bits.json: recorded {old}, computed "
    assert any(line.startswith(said) for line in done.outlines)


def test_bits_of_another_environment_are_not_compared(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(test_it=ARRAYS.format(start=0))
    monkeypatch.setenv(ONEDNN, "0")
    pytester.runpytest_inprocess(*PLAIN, "--envlock-update").assert_outcomes(skipped=2)
    assert list(pytester.path.glob("*.json")) == []


def test_the_example_of_the_page(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(program("pytest"))
    pytester.runpytest_inprocess(*PLAIN, "--envlock-update", "--strict-markers").assert_outcomes(passed=2)
    pytester.runpytest_inprocess(*PLAIN, "--envlock").assert_outcomes(passed=2)


def test_every_example_of_the_page_is_run() -> None:
    """The others in test_keras.py and test_hosts.py."""
    assert headings() == ["pytest", "Keras", "MLflow", "Weights & Biases", "TensorBoard"]


COUNTED = """
import os, envlock

verify = envlock.assert_locked

def counted(*words):
    with open("asked", "a") as stream:
        stream.write(f"{os.environ.get('PYTEST_XDIST_WORKER', 'controller')}\\n")
    return verify(*words)

envlock.assert_locked = counted
"""


@pytest.mark.processes
def test_with_xdist_one_process_decides_for_all(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makepyfile(test_it=ARRAYS.format(start=0))
    pytester.runpytest_inprocess(*PLAIN, "--envlock-update").assert_outcomes(passed=2)
    code, lines = run(pytester, "--envlock-update", "-n", "2")
    said = "ERROR: --envlock-update writes files that several processes would overwrite: leave out `-n`"
    assert (code, said in lines) == (4, True)
    pytester.makeconftest(COUNTED)
    done = pytester.runpytest_subprocess(*PLAIN, "--envlock", "-n", "2")
    done.assert_outcomes(passed=2)
    assert "envlock: matches under policy strict (envlock.lock)" in done.outlines
    assert (pytester.path / "asked").read_text() == "controller\n"


UNUSED = """
import sys
import pytest
before = set(sys.modules)
import envlock.integrations.pytest
print(*sorted(set(sys.modules) - before))
"""


@pytest.mark.processes
def test_unused_it_loads_nothing_else() -> None:
    """What that costs is measured by benchmarks/pytest_plugin.py."""
    root = str(Path(envlock.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", UNUSED], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["envlock", "envlock.integrations", "envlock.integrations.pytest"]
