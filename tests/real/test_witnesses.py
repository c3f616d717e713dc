"""Each fact that a proof lets differ has witnesses: its cause is changed here, and they are seen to change their bits."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from envlock.data import runtime_tables
from envlock.guest import launch
from tests.conftest import absent
from tests.exhaustive import exhaustive
from tests.fakes.replay import compiler

ALL = ("cpu-onednn", "cpu-eigen", "cpu-graph", "xla", "bf16")
"""The groups of TensorFlow; without all of them it is not imported, which takes most of the time."""

DOUBLE = ("sin", "cos", "exp", "log", "tanh", "tan", "asin", "acos", "atan", "sinh", "cosh", "expm1", "erf", "log1p")
SINGLE = ("tanhf", "sinf", "cosf", "expf", "erff", "cbrtf")
HEADER = """#define _GNU_SOURCE
#include <dlfcn.h>
#define FUNCTION(type, name) \\
  type name(type x) { \\
    static type (*next)(type); \\
    if (!next) next = (type (*)(type))dlsym(RTLD_NEXT, #name); \\
    type y = next(x); \\
    return y + y * (sizeof(type) == 8 ? (type)0x1p-51 : (type)0x1p-22); \\
  }
double pow(double x, double y) {
  static double (*next)(double, double);
  if (!next) next = (double (*)(double, double))dlsym(RTLD_NEXT, "pow");
  double z = next(x, y);
  return z + z * 0x1p-51;
}
"""
"""A mathematical library as another release would be one: the same functions, other last bits."""


@dataclass(frozen=True)
class Cause:
    """What is changed: variables, and whether another mathematical library is loaded; and which groups need computing."""

    variables: Mapping[str, str] = field(default_factory=dict)
    preloads: bool = False
    skips: tuple[str, ...] = ()


CAUSES = {
    "oneDNN without AVX": Cause({"ONEDNN_MAX_CPU_ISA": "SSE41"}, skips=("bf16",)),
    "XLA without AVX": Cause({"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}, skips=("bf16", "cpu-onednn", "cpu-eigen")),
    "OpenBLAS for another core": Cause({"OPENBLAS_CORETYPE": "Nehalem"}, skips=ALL),
    "NumPy without AVX": Cause({"NPY_DISABLE_CPU_FEATURES": "X86_V4 X86_V3"}, skips=ALL),
    "glibc without AVX and FMA": Cause({"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-FMA4"}, skips=ALL),
    "another mathematical library": Cause(preloads=True, skips=ALL),
}

INSTRUCTIONS = (
    *("oneDNN without AVX", "XLA without AVX", "OpenBLAS for another core"),
    *("NumPy without AVX", "glibc without AVX and FMA"),
)
LIBRARY = ("another mathematical library",)
CORES = ("OpenBLAS for another core", "oneDNN without AVX")
OF_ROW = {
    "cpu.flags": INSTRUCTIONS,
    "cpu.vendor": CORES,
    "cpu.family": CORES,
    "cpu.model": CORES,
    "cpu.**": CORES,
    "loaded.ld": LIBRARY,
    "loaded.libc": LIBRARY,
    "loaded.libm": LIBRARY,
    "system.libc": LIBRARY,
    "system.libc_version": LIBRARY,
    "system.os": LIBRARY,
    "system.os_version": LIBRARY,
    "system.**": LIBRARY,
}
"""What is changed for each row of the policy that a proof lets differ."""

PROVEN = {row.path: row for row in runtime_tables.load_policy_table().fact if row.witness}


def test_every_row_that_a_proof_lets_differ_has_a_cause_here() -> None:
    assert set(OF_ROW) == set(PROVEN)
    assert {
        row.path for row in runtime_tables.load_policy_table().fact if runtime_tables.PROVEN in (row.strict, row.bits)
    } == set(PROVEN)


def build_library(folder: Path) -> Path:
    """Return a mathematical library that is compiled into a folder."""
    lines = [*(f"FUNCTION(double, {name})" for name in DOUBLE), *(f"FUNCTION(float, {name})" for name in SINGLE)]
    source = folder / "libm.c"
    source.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    built = folder / "libother.so"
    compile_it = compiler()
    if compile_it is None:
        absent("no C compiler (cc, or `pip install ziglang`): another mathematical library cannot be built")
    flags = ["-O1", "-fno-builtin", "-shared", "-fPIC"]
    subprocess.run([*compile_it, *flags, "-o", str(built), str(source), "-ldl", "-lm"], check=True, timeout=120)
    return built


def compute_battery(
    python: Path, variables: Mapping[str, str], skips: tuple[str, ...], without_tensorflow: Path
) -> dict[str, str]:
    """Return the digest of each operation, by name; oneDNN is on, as it is by itself only with AVX-512 or AVX-VNNI."""
    asked = {"device": "cpu", "skip": skips, "intra_op_threads": 2, "inter_op_threads": 2, "determinism": True}
    environ = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1", **variables}
    if skips == ALL:
        environ["PYTHONPATH"] = str(without_tensorflow)
    words = launch.build_text_arguments(launch.read("battery"), asked)
    ended = launch.ask_python(words, python, timeout=200, environ=environ)
    found = {}
    for answer in ended.answers:
        for name, result in answer.get("operations", {}).items():
            found[name] = result.get("sha256", "none")
    return found


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mathematical library that is compiled here."""
    return build_library(tmp_path_factory.mktemp("libm"))


@cache
def find_changed(tensorflow_python: Path, library: Path) -> dict[str, set[str]]:
    """Return the operations that each cause changes; one that it keeps from answering has not changed."""
    folder = library.parent / "without"
    folder.mkdir(exist_ok=True)
    (folder / "tensorflow.py").write_text("raise ImportError('a stand-in')\n", encoding="utf-8")
    plain = compute_battery(tensorflow_python, {}, (), folder)
    assert "none" not in plain.values()
    found = {}
    for name, cause in CAUSES.items():
        variables = dict(cause.variables)
        if cause.preloads:
            variables["LD_PRELOAD"] = str(library)
        here = compute_battery(tensorflow_python, variables, cause.skips, folder)
        assert here, name
        found[name] = {operation for operation, digest in here.items() if digest not in ("none", plain[operation])}
    return found


@exhaustive
@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.tensorflow
@pytest.mark.parametrize("path", sorted(PROVEN))
def test_each_witness_of_a_row_changes_with_a_cause_of_it(path: str, tensorflow_python: Path, library: Path) -> None:
    changed = find_changed(tensorflow_python, library)
    seen = {operation for cause in OF_ROW[path] for operation in changed[cause]}
    assert set(PROVEN[path].witness) - seen == set()
