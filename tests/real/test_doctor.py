"""The doctor and its proof against a real TensorFlow: the verdict flips when determinism does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.exhaustive import exhaustive

IMPORT = "import tensorflow as tf\n"
SWITCH = "tf.config.experimental.enable_op_determinism"
SOUND = {"PYTHONHASHSEED": "0"}
OTHERS = "ENVLOCK_TEST_CUDA_PYTHONS"


def shown(cli: Command, *args: str, environ: dict[str, str] | None = None) -> tuple[int, dict[str, str], Any]:
    """Return the exit code, the states by subject and the findings of a proof."""
    done = cli("doctor", "--prove", "-f", "json", *args, environ={**SOUND, **(environ or {})}, timeout=300)
    report = json.loads(done.stdout)
    return (
        done.returncode,
        {each["what"]: each["state"] for each in report["attachments"]["states"]},
        report["findings"],
    )


def test_a_sound_environment_is_silent(cli: Command) -> None:
    done = cli("doctor", environ=SOUND)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("no problems found\n")


@exhaustive
def test_the_switch_without_its_parentheses_is_off(cli: Command) -> None:
    code, states, findings = shown(cli, "--setup", IMPORT + SWITCH)
    assert (code, states["op determinism"]) == (1, "off")
    assert [each["fix"] for each in findings] == [f"call envlock.activate() on line 1, which does: {SWITCH}()"]


@exhaustive
def test_and_with_them_it_is_on(cli: Command) -> None:
    code, states, findings = shown(cli, "--setup", f"{IMPORT}{SWITCH}()")
    assert (code, states["op determinism"], findings) == (0, "on", [])


def test_a_variable_set_too_late_is_seen_by_what_tensorflow_does(cli: Command) -> None:
    late = f"{IMPORT}tf.timestamp()\nimport os\nos.environ['TF_DETERMINISTIC_OPS'] = '1'"
    assert shown(cli, "--setup", late)[1]["op determinism"] == "off"


@exhaustive
def test_a_sitecustomize_that_switches_it_on(cli: Command, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os\nos.environ['TF_DETERMINISTIC_OPS'] = '1'\n", encoding="utf-8"
    )
    assert shown(cli, environ={"PYTHONPATH": str(tmp_path)})[:2][1]["op determinism"] == "on"


ALL = {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_NUM_INTRAOP_THREADS": "3", "TF_NUM_INTEROP_THREADS": "4"}
FEW = {"TF_ENABLE_ONEDNN_OPTS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


@exhaustive
@pytest.mark.parametrize(
    ("environ", "states"),
    [
        (ALL, {"oneDNN": "off", "intra-op threads": "3", "inter-op threads": "4", "XLA": "off"}),
        (FEW, {"oneDNN": "on", "intra-op threads": "1", "inter-op threads": "1", "XLA": "off"}),
        pytest.param({"TF_XLA_FLAGS": "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"}, {"XLA": "on"}, marks=exhaustive),
        pytest.param({"TF_FUNCTION_JIT_COMPILE_DEFAULT": "1"}, {"XLA": "on"}, marks=exhaustive),
    ],
)
def test_states_follow_the_variables(environ: dict[str, str], states: dict[str, str], cli: Command) -> None:
    seen = shown(cli, environ=environ)[1]
    assert {what: seen[what] for what in states} == states


@exhaustive
def test_a_lock_says_what_is_wanted(cli: Command, lock: dict[str, Any]) -> None:
    count = lock["facts"]["cpu"]["intra_op_threads"]
    environ = {"TF_DETERMINISTIC_OPS": "1", "TF_NUM_INTRAOP_THREADS": str(count + 1)}
    code, _, findings = shown(cli, "envlock.lock", environ=environ)
    assert (code, [each["where"]["fact"] for each in findings]) == (1, ["intra-op threads"])
    assert shown(cli, "envlock.lock", environ={"TF_DETERMINISTIC_OPS": "1"})[0] == 0


@exhaustive
def test_a_value_that_aborts_is_told_before_and_after(cli: Command) -> None:
    wrong = {**SOUND, "TF_DETERMINISTIC_OPS": "yes"}
    assert cli("doctor", environ=wrong).returncode == 1
    done = cli("doctor", "--prove", environ=wrong, timeout=300)
    assert done.returncode == 4
    assert "\nerror: TensorFlow was ended by SIGABRT before the probe operations finished: Check failed" in done.stderr


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ("--xla_cpu_multi_thread_eigen=false", 0),
        ("--xla_of_another_product=1", 1),
        ("--xla_gpu_deterministic_reductions", 1),
    ],
)
@exhaustive
def test_flags_are_known_or_not_as_tensorflow_itself_finds(
    flags: str, code: int, cli: Command, python: Command
) -> None:
    compiled = f"{IMPORT}tf.function(lambda x: x + 1, jit_compile=True)(tf.ones(3))"
    environ = {**SOUND, "XLA_FLAGS": flags}
    assert cli("doctor", environ=environ, timeout=120).returncode == code
    assert (python("-c", compiled, environ=environ, timeout=120).returncode != 0) is bool(code)


@pytest.mark.older_tensorflows
@pytest.mark.parametrize("version", ["2.15.1", "2.18.1"])
def test_the_verdict_flips_on_older_tensorflows(
    version: str, cli: Command, older_tensorflow: Callable[[str], Path]
) -> None:
    python = str(older_tensorflow(version))
    assert cli("doctor", "--python", python, environ=SOUND).stdout == ""
    for end, state in (("", "off"), ("()", "on")):
        code, states, _ = shown(cli, "--python", python, "--setup", IMPORT + SWITCH + end)
        assert (code, states["op determinism"]) == (int(state == "off"), state)


@pytest.mark.cuda_wheels
@pytest.mark.parametrize("end", ["", "()"])
def test_the_same_on_other_tensorflows(end: str, cli: Command) -> None:
    """The builds with CUDA, one of them older; without a GPU they compute on the processor."""
    named = [name for name in os.environ.get(OTHERS, "").split(os.pathsep) if name]
    if not named:
        reason = f"no other TensorFlows: `make testcuda` makes them and names them in {OTHERS}"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    for name in named:
        state = shown(cli, "--python", name, "--setup", IMPORT + SWITCH + end)[1]["op determinism"]
        assert state == ("on" if end else "off"), name
