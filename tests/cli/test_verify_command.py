"""`envlock verify`, `diff` and `run` as a shell sees them."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from envlock.runtime.short_report import INSTALL, RUN
from envlock.runtime.variable_plan import locked_environ
from tests.conftest import Command
from tests.exhaustive import exhaustive
from tests.machines import distribution

ONEDNN = "environ.TF_ENABLE_ONEDNN_OPTS"
OFF = {"TF_ENABLE_ONEDNN_OPTS": "0"}


@functools.cache
def captured(argv: tuple[str, ...]) -> bytes:
    """Return a lock of the plain environment, made once for all tests."""
    done = Command(list(argv), Path("/"))("capture", "-o", "-")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.encode()


@pytest.fixture
def lock(envlock: Command) -> Path:
    path = envlock.folder / "envlock.lock"
    path.write_bytes(captured(tuple(envlock.argv)))
    return path


@pytest.mark.parametrize("args", [[], ["envlock.lock"], ["-"]])
def test_the_locked_environment_matches(args: list[str], envlock: Command, lock: Path) -> None:
    done = envlock("verify", *args, stdin=lock.read_bytes())
    assert (done.returncode, done.stdout, done.stderr) == (0, "matches under policy strict\n", "")


def test_another_one_does_not_and_the_reason_is_on_stdout(envlock: Command, lock: Path) -> None:
    done = envlock("verify", environ=OFF)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, len(lines)) == (1, "", 5)
    assert lines[0] == "does not match under policy strict: 1 fact differs"
    assert lines[1] == f"  x {ONEDNN}: locked unset, live 0"
    assert lines[4:] == [f"{RUN}; for other ways: `envlock explain {ONEDNN}`"]


ALLOWED = {"owner": "policy", "count": 1, "forbidden": False}
"""The difference that the policy lets pass."""


def test_json_is_for_programs(envlock: Command, lock: Path) -> None:
    done = envlock("verify", "--format", "json", "--policy", "functional", environ=OFF)
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    compared = report.pop("compared")
    assert compared["facts"] > 50
    assert compared == {"facts": compared["facts"], "unknown": 0}
    assert {key: value for key, value in report.items() if key != "findings"} == {
        "report_version": 2,
        "command": "verify",
        "match": True,
        "headline": "matches under policy functional",
        "policy": {"name": "functional", "overrides": 0, "exempt": [], "exemptions": [ALLOWED]},
        "notes": [],
        "attachments": {},
    }
    (finding,) = report["findings"]
    assert all(finding.pop(word) for word in ("fix", "source", "why"))
    assert finding == {
        "rule": "ignore",
        "severity": "info",
        "where": {"fact": ONEDNN},
        "message": f"{ONEDNN}: locked unset, live 0",
        "expected": None,
        "actual": "0",
    }


def test_what_cannot_be_collected_is_exit_4(envlock: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    distribution(site, "mine", "1.0")
    environ = {"PYTHONPATH": str(site)}
    envlock("capture", environ=environ)
    distribution(site, "mine", "2.0")
    done = envlock("verify", environ=environ)
    assert (done.returncode, done.stderr) == (4, "")
    assert done.stdout.splitlines()[:2] == [
        "cannot decide under policy strict: 1 fact could not be collected",
        "  ? packages.mine.version: locked 1.0, live unknown "
        "(versions 1.0 and 2.0 are installed over one another; uninstall it until no metadata folder of that name is left "
        "(remove those that stay), and install it again)",
    ]


# --- diff


def test_diff_of_a_lock_and_live(envlock: Command, lock: Path) -> None:
    done = envlock("diff", "-", "live", stdin=lock.read_bytes(), environ=OFF)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[1] == f"  x {ONEDNN}: stdin unset, live 0"


def test_diff_of_two_locks(envlock: Command, lock: Path) -> None:
    other = json.loads(lock.read_bytes())
    other["facts"]["environ"]["TF_ENABLE_ONEDNN_OPTS"] = "0"
    (envlock.folder / "b.lock").write_text(json.dumps(other), encoding="utf-8")
    done = envlock("diff", "b.lock", "envlock.lock", "--format", "json")
    findings = json.loads(done.stdout)["findings"]
    assert (done.returncode, done.stderr) == (1, "")
    assert [(f["where"], f["expected"], f["actual"]) for f in findings] == [({"fact": ONEDNN}, "0", None)]
    assert findings[0]["message"] == f"{ONEDNN}: b.lock 0, envlock.lock unset"


def test_diff_of_stdin_with_itself(envlock: Command) -> None:
    done = envlock("diff", "-", "-")
    expected = "error: both sides are stdin\nhint: name a file or `live` for one of them\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


# --- run

CPUS = len(os.sched_getaffinity(0))
OWN = f"PYTHONHASHSEED=0, TF_NUM_INTEROP_THREADS={CPUS}, TF_NUM_INTRAOP_THREADS={CPUS}"
"""What run sets in an environment that has nothing set."""

PRINT = "import os; print(os.environ.get('TF_ENABLE_ONEDNN_OPTS'), os.getpid())"


def test_run_sets_the_variables_as_the_lock_has_them_and_takes_this_process(envlock: Command, lock: Path) -> None:
    argv, environ = [*envlock.argv, "run", "--", "python", "-c", PRINT], {"PATH": os.environ["PATH"], **OFF}
    with Popen(argv, cwd=envlock.folder, env=environ, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.communicate(timeout=60) == (
            f"None {process.pid}\n",
            f"set {OWN}\nunset TF_ENABLE_ONEDNN_OPTS\n",
        )
    assert process.returncode == 0


def test_run_is_silent_when_asked(envlock: Command, lock: Path) -> None:
    done = envlock("run", "--quiet", "--", "python", "-c", "", environ=OFF)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_run_fixes_the_hash_seed_and_leaves_one_that_is_fixed(envlock: Command, lock: Path) -> None:
    code = "import os, sys; print(os.environ['PYTHONHASHSEED'], sys.flags.hash_randomization)"
    for given, seen in (({}, "0 0"), ({"PYTHONHASHSEED": "random"}, "0 0"), ({"PYTHONHASHSEED": "7"}, "7 1")):
        assert envlock("run", "--", "python", "-c", code, environ=given).stdout == f"{seen}\n"


def test_run_hands_the_seed_on(envlock: Command, lock: Path) -> None:
    code = "import os; print(os.environ['ENVLOCK_SEED'])"
    done = envlock("run", "--seed", "7", "--", "python", "-c", code)
    assert (done.stdout, done.stderr) == ("7\n", f"set ENVLOCK_SEED=7, {OWN}\n")
    done = envlock("run", "--seed", "-1", "--", "python", "-c", "")
    assert (done.returncode, "Input should be greater than or equal to 0" in done.stderr) == (2, True)


@pytest.mark.slow
def test_inside_and_outside_of_run_nothing_differs(envlock: Command, lock: Path) -> None:
    """What run adds is no fact: capture gives the same bytes in it, verify and another run agree."""
    program = ["python", "-m", "envlock"]
    assert envlock("run", "-q", "--", *program, "capture", "-q", "-o", "-").stdout == lock.read_text(encoding="utf-8")
    done = envlock("run", "-q", "--", *program, "verify")
    assert (done.returncode, done.stdout, done.stderr) == (0, "matches under policy strict\n", "")
    done = envlock(
        "run", "-q", "--", *program, "run", "--", "python", "-c", "import os; print(os.environ['ENVLOCK_ADDED'])"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, OWN.replace(",", "") + "\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(("more", "code"), [(0, 0), (1, 1)])
def test_the_number_of_threads_that_run_sets_may_be_set_by_hand(
    envlock: Command, lock: Path, more: int, code: int
) -> None:
    by_hand = {f"TF_NUM_{kind}_THREADS": str(CPUS + more) for kind in ("INTRAOP", "INTEROP")}
    assert envlock("verify", environ=by_hand).returncode == code
    assert envlock("capture", "-q", "-o", "set.lock", environ=by_hand).returncode == 0
    assert envlock("verify", "set.lock").returncode == code


@pytest.mark.slow
def test_run_fixes_threads_to_those_of_the_lock(envlock: Command, lock: Path) -> None:
    document = json.loads(lock.read_bytes())
    document["facts"]["cpu"].update(intra_op_threads=CPUS + 3, inter_op_threads=1)
    lock.write_text(json.dumps(document), encoding="utf-8")
    assert envlock("verify").returncode == 1
    program = ["python", "-m", "envlock"]
    done = envlock("run", "--", *program, "verify")
    assert (done.returncode, done.stdout) == (0, "matches under policy strict\n")
    assert done.stderr == f"set PYTHONHASHSEED=0, TF_NUM_INTEROP_THREADS=1, TF_NUM_INTRAOP_THREADS={CPUS + 3}\n"
    changed = ["sh", "-c", "TF_NUM_INTRAOP_THREADS=1 exec python -m envlock verify"]
    assert "x environ.TF_NUM_INTRAOP_THREADS: locked unset, live 1" in envlock("run", "--", *changed).stdout


def test_run_hands_on_arguments_stdin_and_the_exit_code(envlock: Command, lock: Path) -> None:
    code = "import sys; print(sys.argv[1:], sys.stdin.read()); sys.exit(42)"
    done = envlock("run", "envlock.lock", "--", "python", "-c", code, "--", "-h", "a b", stdin=b"in")
    assert (done.returncode, done.stdout, done.stderr) == (42, "['--', '-h', 'a b'] in\n", f"set {OWN}\n")


@pytest.mark.parametrize(
    ("locked", "environ"),
    [
        ({}, {"OMP_NUM_THREADS": "3", "PATH": "/bin"}),
        ({"OMP_NUM_THREADS": None}, {"PATH": "/bin"}),
        (
            {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_gpu_autotune_level=1 --xla_dump_hlo_as_text"},
            {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_gpu_autotune_level=1 --xla_dump_hlo_as_text"},
        ),
        ({"CUDA_DEVICE_ORDER": ""}, {"CUDA_DEVICE_ORDER": ""}),
        ({"OMP_NUM_THREADS": "sha256:" + "0" * 64}, {}),
        ({"XLA_FLAGS": "--xla_of_nobody=1"}, {}),
        ({"XLA_FLAGS": "--xla_gpu_autotune_level=sha256:" + "0" * 64}, {}),
        ({"XLA_FLAGS": "--xla_dump_to=elsewhere"}, {}),
        ({"KERAS_BACKEND": "a_module_of_mine"}, {}),
        ({"CUDA_VISIBLE_DEVICES": "uuid"}, {}),
        ({"CUDA_VISIBLE_DEVICES": "mig-uuid"}, {}),
        ({"OMP_NUM_THREADS": 7}, {}),
        ({"OMP_NUM_THREADS": "7 8"}, {}),
        ({"OMP_NUM_THREADS": "7\0"}, {}),
        ({"LD_PRELOAD": "/tmp/evil.so"}, {}),
        ({"PATH": "/tmp/evil"}, {}),
        ({"PATH": None, "A=B": "x", "PYTHONSTARTUP": "/tmp/evil.py"}, {}),
    ],
)
def test_run_sets_only_what_a_capture_can_have_recorded(locked: dict[str, Any], environ: dict[str, str]) -> None:
    before = {"OMP_NUM_THREADS": "3", "PATH": "/bin"}
    kept = {} if locked.get("OMP_NUM_THREADS", "") is None else before
    assert locked_environ(dict(before), locked) == {**kept, **environ, "PATH": "/bin"}


def test_run_refuses_another_environment(envlock: Command, lock: Path, tmp_path: Path) -> None:
    distribution(tmp_path / "site", "mine", "1.0")
    done = envlock("run", "--", "python", "-c", "print('ran')", environ={"PYTHONPATH": str(tmp_path / "site")})
    lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert lines[:2] == [
        "does not match under policy strict: 1 fact differs",
        "  x packages.mine: locked absent, live 1.0",
    ]
    assert lines[4:] == [f"{INSTALL}; for other ways: `envlock explain packages.mine`"]


ARGV = "import os, sys\nprint(sys.argv[1:], __name__, os.environ['PYTHONHASHSEED'])\n"


@exhaustive
@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    [
        ["train.py"],
        ["python", "train.py"],
        ["-m", "pkg.train"],
        ["--", "python", "train.py"],
        ["envlock.lock", "--", "python", "-m", "pkg.train"],
        ["envlock.lock", "--policy=strict", "-qp", "strict", "--", "python", "train.py"],
        ["-qpstrict", "--seed", "7", "train.py"],
    ],
)
def test_run_begins_the_command_at_its_first_word_or_after_two_dashes(
    form: list[str], envlock: Command, lock: Path
) -> None:
    """What follows it is its own, though `run` has options of these names."""
    (envlock.folder / "pkg").mkdir()
    for script in ("train.py", "pkg/train.py", "pkg/__init__.py"):
        (envlock.folder / script).write_text("" if script.endswith("__init__.py") else ARGV, encoding="utf-8")
    done = envlock("run", *form, "--seed", "x", "-h", "-q", environ={"PYTHONSAFEPATH": ""})
    assert (done.returncode, done.stdout) == (0, "['--seed', 'x', '-h', '-q'] __main__ 0\n"), done.stderr


BEFORE = "stands before `--`, where only a lockfile can stand\n"
LEAVE = "hint: leave out `--`, or write it before the command: envlock run -- python train.py\n"


@pytest.mark.parametrize(
    ("args", "stderr"),
    [
        (
            [],
            "error: no command to run\n"
            "hint: write one: envlock run python train.py, or after `--`: envlock run -- python train.py\n",
        ),
        (["train.py", "--", "--epochs", "2"], f"error: `train.py` {BEFORE}{LEAVE}"),
        (["git", "diff", "-q", "--", "train.py"], f"error: `git diff` {BEFORE}{LEAVE}"),
        (["-m", "pkg.train", "--", "-q"], f"error: `-m pkg.train` {BEFORE}{LEAVE}"),
        (
            ["gpu.lock", "python", "train.py"],
            "error: `gpu.lock` is a lockfile, not a command\n"
            "hint: write `--` after it: envlock run gpu.lock -- python train.py\n",
        ),
        (["no.py"], "error: command not found: no.py\nhint: check its spelling and PATH\n"),
        (
            ["--", "no-such-command"],
            "error: command not found: no-such-command\nhint: check its spelling and PATH\n",
        ),
    ],
)
def test_run_without_a_command_that_is_there(args: list[str], stderr: str, envlock: Command, lock: Path) -> None:
    done = envlock("run", *args)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", stderr)


def test_run_refuses_another_python(envlock: Command, lock: Path, tmp_path: Path) -> None:
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho ran\n", encoding="utf-8")
    other.chmod(0o755)
    done = envlock("run", "--", str(other))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {other} is not the Python of the verified environment (")
