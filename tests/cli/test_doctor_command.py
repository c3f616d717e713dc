"""`envlock doctor` as a shell sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envlock.reports import FORMATS
from tests.conftest import Command
from tests.machines import BUILD_INFO_CPU_2_21, distribution, write

SOUND = {"PYTHONHASHSEED": "0"}


@pytest.fixture
def site(tmp_path: Path) -> dict[str, str]:
    """Return variables of an environment with a TensorFlow made of files, in which nothing is wrong."""
    folder = tmp_path / "site"
    for name, version in {"tensorflow": "2.21.0", "numpy": "2.3.0", "protobuf": "6.33.0", "keras": "3.12.0"}.items():
        distribution(folder, name, version)
    write(folder / "tensorflow", {"__init__.py": "", "python/platform/build_info.py": BUILD_INFO_CPU_2_21})
    (tmp_path / "keras-home").mkdir()
    return {**SOUND, "PYTHONPATH": str(folder), "KERAS_HOME": str(tmp_path / "keras-home")}


def test_of_a_sound_environment_nothing_is_said(envlock: Command, site: dict[str, str]) -> None:
    done = envlock("doctor", environ=site)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no problems found\n")


def test_an_error_is_exit_1(envlock: Command, site: dict[str, str]) -> None:
    done = envlock("doctor", environ={**site, "TF_DETERMINISTIC_OPS": "yes"})
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        "not sound: 1 error\n"
        "  x TF_DETERMINISTIC_OPS is yes [variable-value]\n"
        "      why: The process aborts when this variable is first read with a value that is not 0, 1, true or false.\n"
        "      fix: export TF_DETERMINISTIC_OPS=1\n"
    )


NOTHING = {
    "report_version": 2,
    "command": "doctor",
    "match": True,
    "headline": "no problems found",
    "policy": None,
    "compared": None,
    "notes": [],
    "attachments": {},
}


def test_json_is_for_programs(envlock: Command, site: dict[str, str]) -> None:
    done = envlock("doctor", "-f", "json", environ={**site, "KERAS_MAX_EPOCHS": "2", "TF_CUDNN_DETERMINISM": "1"})
    report = json.loads(done.stdout)
    findings = report.pop("findings")
    assert (done.returncode, done.stderr) == (1, "")
    assert report == {**NOTHING, "match": False, "headline": "not sound: 1 error, 1 warning"}
    assert [(each["rule"], each["where"]["fact"], each["commands"]) for each in findings] == [
        ("variable-dangerous", "environ.KERAS_MAX_EPOCHS", ["unset KERAS_MAX_EPOCHS"]),
        ("variable-not-read", "environ.TF_CUDNN_DETERMINISM", ["unset TF_CUDNN_DETERMINISM"]),
    ]
    words = ["commands", "fix", "message", "rule", "severity", "source", "where", "why"]
    assert [sorted(each) for each in findings] == [words, words]
    assert json.loads(envlock("doctor", "-f", "json", environ=site).stdout) == {**NOTHING, "findings": []}


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("github", "::error file=envlock.lock,title=variable-dangerous"),
        ("junit", '<?xml version="1.0" encoding="utf-8"?>\n<testsuites tests="1" failures="1"'),
        ("sarif", '{\n  "$schema": "https://docs.oasis-open.org/sarif/'),
    ],
)
def test_the_other_formats(form: str, start: str, envlock: Command, site: dict[str, str]) -> None:
    done = envlock("doctor", "-f", form, environ={**site, "KERAS_MAX_EPOCHS": "2"})
    assert (done.returncode, done.stderr, done.stdout[: len(start)]) == (1, "", start)


@pytest.mark.slow
def test_fix_env_prints_lines_and_the_shell_that_takes_them_is_sound(envlock: Command, site: dict[str, str]) -> None:
    wrong = {**site, "TF_DETERMINISTIC_OPS": "yes", "KERAS_MAX_EPOCHS": "2", "TF_USE_CUDNN_AUTOTUNE": "0"}
    done = envlock("doctor", "--fix-env", environ=wrong)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "unset KERAS_MAX_EPOCHS\nexport TF_DETERMINISTIC_OPS=1\nunset TF_USE_CUDNN_AUTOTUNE\n"
    shell = Command(["/bin/sh", "-c"], envlock.folder)
    after = shell(f"{done.stdout}\nexec {envlock.argv[0]} -m envlock doctor", environ=wrong)
    assert (after.returncode, after.stdout) == (0, "")


def test_a_lock_in_the_place_of_the_live_environment(envlock: Command, site: dict[str, str]) -> None:
    assert envlock("capture", "-q", environ={**site, "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "1"}).returncode == 0
    done = envlock("doctor", "envlock.lock", environ=SOUND)
    assert done.returncode == 1
    assert done.stdout.splitlines()[1] == "  x TF_ONEDNN_ASSUME_FROZEN_WEIGHTS is 1 [variable-dangerous]"
    piped = envlock("doctor", "-", stdin=(envlock.folder / "envlock.lock").read_bytes(), environ=SOUND)
    assert (piped.returncode, piped.stdout) == (1, done.stdout)


def test_the_environment_of_another_interpreter_is_its_own(envlock: Command, site: dict[str, str]) -> None:
    done = envlock("doctor", "--python", envlock.argv[0], environ=site)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["-f", "yaml"], 2, f"error: unknown format `yaml`\nhint: choose from: {', '.join(FORMATS)}\n"),
        (["--setup", "x"], 2, "error: `--setup` needs `--prove`\nhint: add `--prove`\n"),
        (["none.lock"], 3, "error: lockfile not found: none.lock\n"),
        (["--python", "/none"], 2, "error: cannot run /none: No such file or directory\n"),
    ],
)
def test_wrong_use(args: list[str], code: int, message: str, envlock: Command) -> None:
    done = envlock("doctor", *args, environ=SOUND)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(message)


def test_proof_needs_a_tensorflow(envlock: Command) -> None:
    done = envlock("doctor", "--prove", environ=SOUND)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.endswith(
        "\nerror: TensorFlow cannot be imported: ModuleNotFoundError: No module named 'tensorflow'\n"
        "hint: name the interpreter of an environment with TensorFlow: `--python .venv/bin/python`\n"
    )
