"""`envlock canary`, and what `capture`, `verify` and `diff` do with it, as a shell sees it."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from envlock.evidence.canary.canary import measure
from envlock.evidence.canary.canary_run import Settings
from envlock.lock.document import load, save
from envlock.lock.live_facts import collect_live
from envlock.packages.live_environment import LiveEnvironment
from envlock.reports import FORMATS
from envlock.reports.progress import SILENT
from tests.conftest import Command
from tests.evidence.canaries import COUNT, result, section

COMPUTING = "computing the canary with TensorFlow (takes seconds)\n"
OTHER = "TEST_OTHER_BITS"
"""Names of operations for which the stand-in of TensorFlow computes other bits, with blanks between them."""

INTERPRETER = f"""#!{sys.executable}
import json, os, sys
if 'intra_op_threads' not in sys.argv[-1]:
    os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])
asked = json.loads(sys.argv[-1])
found = json.loads(os.environ.get("TEST_CANARY") or open({{file!r}}).read())
def say(value): print(asked["mark"] + json.dumps(value), flush=True)
groups = found.pop("groups")
say({{{{"head": {{{{**found, "devices": [], "groups": list(groups)}}}}}}}})
for name, group in groups.items():
    for operation in os.environ.get({OTHER!r}, "").split():
        if operation in group["operations"]:
            group["operations"][operation].update(sha256="f" * 64, sample=(1 + 2.0**-23).hex())
    execution = group["conditions"]["execution"]
    say({{{{"group": name, "execution": execution, "operations": group["operations"]}}}})
say({{{{"seconds": 0.5, "cpu_seconds": 0.25}}}})
"""
"""An interpreter that answers for the battery, and else is the one that runs the tests."""


@pytest.fixture
def python(tmp_path: Path) -> str:
    """Return the interpreter of an environment with a stand-in of TensorFlow."""
    file, canary = tmp_path / "bin" / "python", tmp_path / "canary.json"
    file.parent.mkdir()
    canary.write_text(json.dumps(section()), encoding="utf-8")
    file.write_text(INTERPRETER.replace("{{", "{").replace("}}", "}").replace("{file!r}", repr(str(canary))))
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


@pytest.fixture
def locked(envlock: Command, python: str) -> Path:
    """Return a lock with a canary."""
    assert envlock("capture", "-q", "--canary", "--python", python).returncode == 0
    return envlock.folder / "envlock.lock"


def read(lock: Path) -> Any:
    return json.loads(lock.read_text(encoding="utf-8"))


def test_without_a_lock_it_is_shown(envlock: Command, python: str) -> None:
    done = envlock("canary", "--python", python)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, COMPUTING)
    assert lines[:3] == [
        "TensorFlow 2.21.0, NumPy 2.4.6, battery 2",
        "numpy: cpu, library, 1 intra-op and 1 inter-op threads, op determinism environment",
        f"  np_dot                 1              {result()['sha256'][:16]}",
    ]
    assert len(lines) == 1 + 7 + COUNT
    told = json.loads(envlock("canary", "--python", python, "-f", "json").stdout)
    assert told == {
        "report_version": 2,
        "command": "canary",
        "match": True,
        "headline": "computed; the lockfile has no canary to compare with",
        "policy": None,
        "compared": None,
        "findings": [],
        "notes": [],
        "attachments": {"numerics": section(), "seconds": 0.5, "cpu_seconds": 0.25},
    }


def test_the_same_bits(envlock: Command, python: str, locked: Path) -> None:
    assert read(locked)["numerics"] == section()
    done = envlock("canary", "--python", python)
    assert (done.returncode, done.stderr) == (0, COMPUTING)
    assert done.stdout == (f"matches under policy strict\nnumerics: all {COUNT} results have the locked bits\n")


def test_other_bits_are_exit_1_with_the_operations_and_the_cause(envlock: Command, python: str, locked: Path) -> None:
    threads = {OTHER: "conv_filter_gradient bias_gradient reduce batch_norm"}
    done = envlock("canary", "--python", python, environ=threads)
    assert (done.returncode, done.stderr) == (1, COMPUTING)
    said = "1 of 1 values differ, median 1 ULP, 1 eps normwise: typical of another order of summation"
    assert done.stdout == (
        "does not match under policy strict: 4 canary results differ\n"
        f"  x numerics.cpu-eigen.bias_gradient: {said}\n"
        f"  x numerics.cpu-eigen.reduce: {said}\n"
        f"  x numerics.cpu-onednn.batch_norm: {said}\n"
        f"  x numerics.cpu-onednn.conv_filter_gradient: {said}\n"
        "      why: Most likely cause: another number of intra-op threads (more than 99 %); "
        "no other cause is close.\n"
        "      fix: Set TF_NUM_INTRAOP_THREADS to the locked machine's number of threads (fact "
        "`cpu.intra_op_threads`).\n"
        "numerics: 39 results have the locked bits\n"
    )


def test_json_is_for_programs(envlock: Command, python: str, locked: Path) -> None:
    done = envlock("canary", "--python", python, "-f", "json", environ={OTHER: "train_xla"})
    told = json.loads(done.stdout)
    assert done.returncode == 1
    (finding,) = told.pop("findings")
    causes = told["attachments"].pop("causes")
    numerics = told["attachments"].pop("numerics")
    assert told == {
        "report_version": 2,
        "command": "canary",
        "match": False,
        "headline": "does not match under policy strict: 1 canary result differs",
        "policy": {"name": "strict", "overrides": 0, "exempt": [], "exemptions": []},
        "compared": {"operations": COUNT, "unknown": 0},
        "notes": [f"numerics: {COUNT - 1} results have the locked bits"],
        "attachments": {"seconds": 0.5, "cpu_seconds": 0.25},
    }
    assert [(each["id"], each["likelihood"]) for each in causes] == [("xla", 0.97), ("determinism", 0.03)]
    assert numerics["groups"]["xla"]["operations"]["train_xla"]["sha256"] == "f" * 64
    where = {"fact": "numerics.xla.train_xla"}
    assert (finding["where"], finding["rule"], finding["severity"]) == (where, "bits", "error")
    what = "1 of 1 values differ, median 1 ULP, 1 eps normwise: typical of another order of summation"
    assert finding["message"] == f"numerics.xla.train_xla: {what}"
    assert finding["expected"] == {"result": section()["groups"]["xla"]["operations"]["train_xla"]["sha256"]}
    assert finding["actual"] == {
        "result": "f" * 64,
        "size": 1,
        "sampled": 1,
        "differing": 1,
        "median_ulp": 1.0,
        "normwise": 1.0,
        "kind": "order",
        "what": what,
    }


def test_a_finding_is_shown_at_the_lock_that_is_meant(envlock: Command, python: str, locked: Path) -> None:
    other = locked.rename(locked.with_name("other.lock"))
    done = envlock("canary", other.name, "--python", python, "-f", "github", environ={OTHER: "train_xla"})
    assert (done.returncode, done.stderr) == (1, COMPUTING)
    assert done.stdout.startswith("::error file=other.lock,title=numerics.xla.train_xla::numerics.xla.train_xla: 1 of ")


@pytest.mark.slow
def test_a_canary_is_computed_as_the_locked_one_was(envlock: Command, python: str, locked: Path) -> None:
    read_lock = load(str(locked))
    environment = LiveEnvironment(Path(python), collect_live(Path(python)))
    unpinned = measure(Settings(threads=None, determinism=None), environment, SILENT)
    save(read_lock.model_copy(update={"numerics": unpinned.numerics}), str(locked), read_lock)
    assert read(locked)["numerics"]["groups"]["xla"]["conditions"]["intra_op_threads"] == "environment"
    assert envlock("canary", "--python", python).returncode == 0
    assert envlock("verify", "--numerics", "--python", python).returncode == 0
    assert envlock("capture", "--canary", "--python", python, "-q").returncode == 0  # pinned again
    assert read(locked)["numerics"] == section()


@pytest.mark.slow
def test_verify_with_numerics(envlock: Command, python: str, locked: Path) -> None:
    other = {OTHER: "np_dot"}
    assert envlock("verify", "--python", python, environ=other).returncode == 0
    done = envlock("verify", "--numerics", "--python", python, environ=other)
    assert (done.returncode, done.stderr) == (1, COMPUTING)
    assert done.stdout.splitlines()[:2] == [
        "does not match under policy strict: 1 canary result differs",
        "  x numerics.numpy.np_dot: 1 of 1 values differ, median 1 ULP, 1 eps normwise: "
        "typical of another order of summation",
    ]
    assert envlock("verify", "--numerics", "--python", python, "-p", "functional", environ=other).returncode == 0
    for format in ("json", "github", "junit", "sarif"):  # noqa: A001 (the option's name)
        told = envlock("verify", "--numerics", "--python", python, "-f", format, environ=other)
        assert (told.returncode, "numerics.numpy.np_dot" in told.stdout) == (1, True)


def test_another_version_with_the_same_bits_says_so(envlock: Command, python: str, locked: Path) -> None:
    newer = {"TEST_CANARY": json.dumps(section(tensorflow="2.21.1"))}
    done = envlock("verify", "--numerics", "--python", python, environ=newer)
    assert done.stdout.splitlines()[-1] == (
        f"numerics: all {COUNT} results have the locked bits, although TensorFlow is 2.21.1, locked 2.21.0"
    )


@pytest.mark.slow
def test_a_lock_without_a_canary(envlock: Command, python: str) -> None:
    assert envlock("capture", "-q", "--python", python).returncode == 0
    message = "error: envlock.lock has no canary\nhint: run `envlock capture --canary` to add one\n"
    done = envlock("verify", "--numerics", "--python", python)
    assert (done.returncode, done.stdout, done.stderr) == (4, "", message)
    assert envlock("canary", "--python", python).stdout.startswith("TensorFlow 2.21.0, NumPy")


@pytest.mark.slow
def test_capture_keeps_a_canary_as_long_as_no_fact_differs(envlock: Command, python: str, locked: Path) -> None:
    before = locked.read_bytes()
    assert envlock("capture", "--check", "--python", python).returncode == 0
    assert envlock("capture", "--python", python).returncode == 0
    assert locked.read_bytes() == before
    assert envlock("capture", "--check", "--canary", "--python", python).returncode == 0
    other = {"TF_ENABLE_ONEDNN_OPTS": "0"}
    assert envlock("capture", "--check", "--python", python, environ=other).returncode == 1
    done = envlock("capture", "--python", python, environ=other)
    assert "numerics" not in read(locked)
    assert done.stderr.splitlines()[0] == (
        "warning: dropped the canary of the old lockfile, as facts differ (`--canary` computes a new one)"
    )


def test_capture_with_a_canary_to_stdout(envlock: Command, python: str, locked: Path) -> None:
    done = envlock("capture", "--canary", "-o", "-", "--python", python)
    assert (done.returncode, done.stdout.encode()) == (0, locked.read_bytes())


@pytest.mark.slow
def test_diff_shows_both(envlock: Command, python: str, locked: Path) -> None:
    other = {"TF_ENABLE_ONEDNN_OPTS": "0", OTHER: "np_dot"}
    assert envlock("capture", "-q", "--canary", "-o", "b.lock", "--python", python, environ=other).returncode == 0
    done = envlock("diff", "envlock.lock", "b.lock")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "does not match under policy strict: 1 fact differs and 1 canary result differs"
    assert [line for line in lines if "numerics.numpy.np_dot: 1 of 1 values differ" in line]
    assert lines[-1:] == [f"numerics: {COUNT - 1} results have the locked bits"]
    assert envlock("diff", "envlock.lock", "envlock.lock").stdout == (
        f"matches under policy strict\nnumerics: all {COUNT} results have the locked bits\n"
    )
    assert envlock("capture", "-q", "-o", "c.lock", "--python", python).returncode == 0
    done = envlock("diff", "envlock.lock", "c.lock")
    assert (done.returncode, done.stdout) == (
        0,
        "matches under policy strict\nnumerics: not compared; one side has no canary\n",
    )


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["-f", "yaml"], 2, f"error: unknown format `yaml`\nhint: choose from: {', '.join(FORMATS)}\n"),
        (["none.lock"], 3, "error: lockfile not found: none.lock\n"),
        (["--python", "/none"], 2, "error: cannot run /none: No such file or directory\n"),
        ([], 4, "error: the canary cannot be computed: ModuleNotFoundError: No module named '"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_wrong_use(args: list[str], code: int, message: str, envlock: Command) -> None:
    done = envlock("canary", *args)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.removeprefix(COMPUTING).startswith(message)
