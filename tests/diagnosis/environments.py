"""Environments for the doctor: clean ones of every line of TensorFlow, with and without a GPU, and what to change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from envlock.data import determinism
from envlock.data.compatibility import load_compatibility_table
from envlock.data.image_tables import load_image_tables
from envlock.data.runtime_tables import load_variables
from envlock.diagnosis.diagnosed_environment import Environment
from envlock.runtime.recipe import find_recipe
from tests.trees import put

LINES = ["1.15", "2.0", "2.1", "2.4", "2.5", "2.7", "2.8", "2.12", "2.15", "2.16", "2.18", "2.20", "2.21"]


def clean(line: str = "2.21", *, gpu: bool = False) -> Environment:
    """Return an environment with a TensorFlow of that line in which nothing is wrong."""
    facts: dict[str, Any] = {
        "python": {"version": f"{_python(line)}.7"},
        "packages": {
            row.package: {"version": _fitting(row.takes)} for row in load_compatibility_table().needs if _is(row, line)
        },
        "tensorflow": {
            "version": f"{line}.0",
            "distributions": ["tensorflow"],
            "nvidia_build": None,
            "cuda_build": gpu,
        },
        "cuda": None,
        "gpu": None,
        "keras": {"version": _keras(line), "config": {"floatx": "float32", "backend": "tensorflow"}},
    }
    facts["packages"]["framework-reproducibility"] = {"version": "0.6.0"}
    if gpu:
        facts = with_gpu(facts)
    names = {row.name for row in load_variables()} | {row.name for row in determinism.load_variable_table().variable}
    values: dict[str, str | None] = dict.fromkeys(names)
    recipe = find_recipe(f"{line}.0")
    assert recipe is not None
    values.update(PYTHONHASHSEED="0", **recipe.set)
    return Environment(facts, {}, values, others=["HOME", "PATH", "LANG", "TF_GPU_THREAD_COUNT", "NCCL_MAX_NCHANNELS"])


def with_gpu(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts with one H100 and the libraries of TensorFlow 2.18 to 2.21."""
    found = {"linkage": "dlopen", "resolved_by": "RUNPATH", "file": "{prefix}/x", "wheel_version": "1"}
    cuda = {
        "cuda_driver": {**found, "soname": "libcuda.so.1", "version": "570.124.06"},
        "cudart": {**found, "soname": "libcudart.so.12", "version": "12.5"},
        "cudnn": {**found, "soname": "libcudnn.so.9", "version": "9.3.0"},
        "cusolver": {**found, "soname": "libcusolver.so.11", "version": "11.6.3.83"},
        "nccl": {"linkage": "static", "version": "2.21.5"},
        "other_cuda": [],
    }
    gpu = {
        "driver_version": "570.124.06",
        "cuda_driver_version": "12.8",
        "binding": {"distribution": "nvidia-ml-py", "version": "13.0", "problem": None},
        "devices": {"0": {"name": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0"}},
    }
    tensorflow = {
        **facts["tensorflow"],
        "cuda_build": True,
        "built_with_cuda": "12.5.1",
        "compiled_against_cudnn": "9.3.0",
        "compute_capabilities": ["sm_60", "sm_70", "sm_80", "sm_89", "sm_90", "compute_90"],
    }
    wheels = {"nvidia-cudnn-cu12": {"version": "9.3.0.75"}, "nvidia-cusolver-cu12": {"version": "11.6.3.83"}}
    packages = {**facts["packages"], **wheels, "nvidia-ml-py": {"version": "13.0"}}
    return {**facts, "tensorflow": tensorflow, "cuda": cuda, "gpu": gpu, "packages": packages}


def changed(environment: Environment, *facts: tuple[str, Any], **changes: Any) -> Environment:
    """Return an environment with facts put at their paths, and variables or other attributes changed."""
    tree = dict(environment.facts)
    for path, value in facts:
        tree = put(tree, path, value)
    fields = {name: changes.pop(name) for name in list(changes) if name in Environment.__dataclass_fields__}
    values = {**environment.variables, **changes}
    return replace(environment, facts=tree, variables=values, **fields)


def _is(row: Any, line: str) -> bool:
    return bool(row.tensorflow == line)


def _python(line: str) -> str:
    builds = load_image_tables().builds.build
    return next((row.python[-1] for row in builds if row.tensorflow.startswith(f"{line}.")), "3.7")


def _fitting(takes: str) -> str:
    """Return the lower bound of a specifier, which it takes."""
    for part in takes.split(","):
        if part.startswith((">=", "~=")):
            return part[2:]
    raise AssertionError(takes)


def _keras(line: str) -> str:
    number = tuple(map(int, line.split(".")))
    return "3.12.0" if number >= (2, 16) else f"{line}.0"
