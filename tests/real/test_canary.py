"""The canary with a real TensorFlow: fresh processes agree, and causes that are provoked are named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from envlock.data.canary_tables import load_canary_table
from envlock.evidence.canary.canary_comparison import Comparison, compare
from envlock.evidence.canary.canary_run import Settings, compute
from envlock.lock.numerics import Numerics
from tests.conftest import Command
from tests.exhaustive import exhaustive

THREADS = Settings(threads=None)
DETERMINISM = Settings(determinism=None)
NAMES = {row.name for row in load_canary_table().operation}


@cache
def taken(python: Path, settings: Settings, variables: tuple[tuple[str, str], ...]) -> Numerics:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        return compute(python, settings).numerics
    finally:
        os.environ.clear()
        os.environ.update(before)


def against(python: Path, changed: dict[str, str], settings: Settings = Settings(), **base: str) -> Comparison:  # noqa: B008 (frozen)
    """Return what a variable changes, against an environment with the variables of `base`."""
    plain, other = (taken(python, settings, tuple(sorted(each.items()))) for each in (base, changed))
    return compare(plain, other)


def named(found: Comparison) -> str:
    return found.suspects[0].cause.id if found.suspects else "nothing differs"


def test_the_battery_is_that_of_the_table_and_every_operation_is_stable(tensorflow_python: Path) -> None:
    found = taken(tensorflow_python, Settings(), ())
    results = {name: each for group in found.groups.values() for name, each in group.operations.items()}
    assert set(results) == NAMES
    assert len([name for name in NAMES if name.startswith("np_")]) == 12
    assert len(NAMES) >= 21 + 12 + 10
    assert [name for name, each in results.items() if each.sha256 is None] == []
    assert sorted(found.groups) == ["bf16", "cpu-eigen", "cpu-graph", "cpu-onednn", "libm", "numpy", "xla"]


@exhaustive
def test_fresh_processes_are_identical(tensorflow_python: Path) -> None:
    taken(tensorflow_python, Settings(), ())
    again = [compute(tensorflow_python, Settings()).numerics for _ in range(2)]
    assert [each.model_dump_json() for each in again] == [
        taken(tensorflow_python, Settings(), ()).model_dump_json()
    ] * 2


@exhaustive
def test_one_processor_gives_the_bits_of_two(tensorflow_python: Path) -> None:
    """As the threads are pinned: else no two machines would compare."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        alone = compute(tensorflow_python, Settings()).numerics
    finally:
        os.sched_setaffinity(0, before)
    assert compare(taken(tensorflow_python, Settings(), ()), alone).match


@exhaustive
def test_threads_are_named_where_they_are_not_pinned(tensorflow_python: Path) -> None:
    found = against(tensorflow_python, {"TF_NUM_INTRAOP_THREADS": "4"}, THREADS, TF_NUM_INTRAOP_THREADS="2")
    assert named(found) == "threads"
    pinned = against(tensorflow_python, {"TF_NUM_INTRAOP_THREADS": "4", "TF_NUM_INTEROP_THREADS": "1"})
    assert pinned.match  # it does not reach what is pinned


@exhaustive
def test_op_determinism_is_named_where_it_is_not_pinned(tensorflow_python: Path) -> None:
    assert named(against(tensorflow_python, {"TF_DETERMINISTIC_OPS": "1"}, DETERMINISM)) == "determinism"


@exhaustive
@pytest.mark.parametrize(
    ("cause", "variable", "value"),
    [
        ("onednn-off", "TF_ENABLE_ONEDNN_OPTS", "0"),
        ("xla", "XLA_FLAGS", "--xla_cpu_enable_fast_math=true"),
        ("numpy", "OPENBLAS_CORETYPE", "Nehalem"),
    ],
)
def test_a_variable_is_named(cause: str, variable: str, value: str, tensorflow_python: Path) -> None:
    """oneDNN is switched on beforehand: TensorFlow does so by itself only on processors with AVX-512 or AVX-VNNI."""
    changed = {"TF_ENABLE_ONEDNN_OPTS": "1", variable: value}
    assert named(against(tensorflow_python, changed, TF_ENABLE_ONEDNN_OPTS="1")) == cause


@exhaustive
def test_a_machine_with_the_same_versions_and_other_bits_is_refused(envlock: Command, tensorflow_python: Path) -> None:
    """An instruction set that oneDNN may not use stands for a processor that has not got it."""
    python = ["--python", str(tensorflow_python)]
    assert envlock("capture", "-q", "--canary", *python, timeout=300).returncode == 0
    same = envlock("verify", "--numerics", *python, timeout=300)
    assert (same.returncode, same.stdout.splitlines()[-1]) == (
        0,
        f"numerics: all {len(NAMES)} results have the locked bits",
    )
    capped = {"ONEDNN_MAX_CPU_ISA": "SSE41"}
    done = envlock("verify", "--numerics", "-f", "json", *python, environ=capped, timeout=300)
    report = json.loads(done.stdout)
    bits = {each["where"]["fact"]: each for each in report["findings"] if each["rule"] == "bits"}
    assert (done.returncode, report["match"]) == (1, False)
    assert {"numerics.cpu-onednn.matmul", "numerics.cpu-onednn.conv_forward"} <= set(bits)
    assert "SSE4.1 on one side" in bits["numerics.cpu-onednn.matmul"]["why"].partition("; next")[0]
    assert "set ONEDNN_MAX_CPU_ISA as locked" in bits["numerics.cpu-onednn.matmul"]["fix"]
    assert envlock("verify", "--numerics", *python, timeout=300).returncode == 0


@pytest.mark.older_tensorflows
@pytest.mark.parametrize("version", ["2.15.1", "2.18.1"])
def test_another_tensorflow_is_named(
    version: str, tensorflow_python: Path, older_tensorflow: Callable[[str], Path]
) -> None:
    old = taken(older_tensorflow(version), Settings(), ())
    assert {name for group in old.groups.values() for name in group.operations} == NAMES
    found = compare(old, taken(tensorflow_python, Settings(), ()))
    assert named(found) == "tensorflow"
    assert {"transcendental", "train_xla"} <= {each.operation for each in found.differences}
    same = {path.rpartition(".")[2] for path in found.equal}
    assert {"matmul", "conv_forward", "conv_filter_gradient", "reduce", "random_normal", "train"} <= same
