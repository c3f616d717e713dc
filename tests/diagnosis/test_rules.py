"""Every rule of the doctor: it fires where it should, says the whole finding, and is silent on clean environments."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.data import determinism
from envlock.data.runtime_tables import load_variables
from envlock.diagnosis import flag_checks, gpu_checks, library_checks, package_checks, record_checks
from envlock.diagnosis import variable_checks as environ
from envlock.diagnosis.checks import CHECKS, diagnose
from envlock.diagnosis.diagnosed_environment import Environment, GpuHealth, Requirement, SharedFiles
from envlock.diagnosis.doctor import make_report
from envlock.diagnosis.doctor_evidence import DoctorEvidence
from envlock.diagnosis.doctor_table import load_doctor_table, load_titles
from envlock.diagnosis.tensorflow_state import ObservedState
from envlock.diagnosis.variable_values import list_fixes
from envlock.reports import render
from envlock.runtime.report import Finding
from tests.diagnosis.environments import LINES, changed, clean
from tests.golden_files import assert_as_golden

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "doctor.txt"
GPU = clean(gpu=True)
CPU = clean()
NVIDIA_1 = [("tensorflow.version", "1.15.5+nv23.3"), ("tensorflow.nvidia_build", "nv23.3")]
TF15 = changed(clean("2.15"), ("packages.numpy", {"version": "1.26.4"}))
TWO_GPUS = {str(n): {"name": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0"} for n in range(2)}
MIXED = {**TWO_GPUS, "1": {"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}}
LOST = {"linkage": "dlopen", "soname": "libcusolver.so.11", "file": None, "resolved_by": "not found"}
OTHERS = {"linkage": "dlopen", "file": "libcudnn.so.9", "resolved_by": "LD_LIBRARY_PATH", "wheel_version": None}
NOTE = {"compat_cuda": "12.9", "compat_drivers": [535, 550]}
COMPAT = {"soname": "libcuda.so.1", "file": "x", "version": "575.57.08", **NOTE}
LATE = {"environ.TF_DETERMINISTIC_OPS": {"code": "changed-after-start", "reason": "it was unset when ..."}}
BROKEN = {"gpu": {"code": "driver-library-mismatch", "reason": "The library is version 1; reboot the machine."}}
UV = {"installer": "uv", "python": "/srv/an env/bin/python"}
TF_KERAS = Requirement("tf-keras", "2.16.0", "tensorflow", "<2.17,>=2.16")
TWICE = changed(
    clean("2.16"),
    ("tensorflow.version", "2.16.2"),
    ("tensorflow.distributions", ["tensorflow", "tensorflow-cpu"]),
    ("packages.tensorflow", {"version": "2.16.2"}),
    ("packages.tensorflow-cpu", {"version": "2.16.2"}),
)
TYPING = [
    Requirement("tensorflow-cpu", "2.13.1", "typing-extensions", "<4.6,>=3.6.6"),
    Requirement("rich", "13.0", "typing-extensions", ">=4.0"),
    Requirement("rich", "13.0", "pygments", ">=2.13"),
    Requirement("rich", "13.0", "ipywidgets", ">=7", extra="jupyter"),
    Requirement("requests", "2.31", "charset-normalizer", extras=("chardet",)),
]
PYDANTIC = Requirement("pydantic", "2.10.0", "typing-extensions", ">=4.12.2")
TF13 = changed(clean("2.13"), ("packages.typing-extensions", {"version": "4.16.0"}))
GPU_CUDNN = Requirement("tensorflow", "2.21.0", "nvidia-cudnn-cu12", "==9.3.0.75", extra="and-cuda")
UNBOUND = {"gpu": {"code": "no-binding", "reason": "The module pynvml is not installed; run `pip`."}}

OPENCV = SharedFiles(("opencv-python", "opencv-python-headless"), ("cv2/__init__.py", "cv2/cv2.abi3.so"))
CUDNN = SharedFiles(("nvidia-cudnn-cu11", "nvidia-cudnn-cu12"), ("nvidia/cudnn/lib/libcudnn.so.8",))

CASES: dict[str, Environment] = {
    "no TensorFlow": changed(CPU, ("tensorflow", None)),
    "TensorFlow of unknown version": changed(
        CPU,
        ("tensorflow.version", None),
        unavailable={"tensorflow.version": {"code": "no-metadata", "reason": "it belongs to no distribution"}},
    ),
    "two distributions": TWICE,
    "two distributions, one of them required": changed(TWICE, requirements=[TF_KERAS], **UV),
    "two distributions, the other required": changed(
        TWICE, requirements=[Requirement("model", "1.0", "tensorflow-cpu")], **UV
    ),
    "two distributions, one from a file": changed(
        TWICE, ("packages.tensorflow.origin", {"url": "file:tensorflow-2.16.2.whl", "vcs": None})
    ),
    "two distributions, installed by conda": changed(TWICE, ("packages.tensorflow.installer", "conda")),
    "tf-keras of another TensorFlow": changed(
        CPU,
        ("packages.tensorflow-cpu", {"version": "2.21.0"}),
        ("packages.tf-keras", {"version": "2.19.0"}),
        requirements=[Requirement("tf-keras", "2.19.0", "tensorflow", "<2.20,>=2.19")],
        **UV,
    ),
    "an add-on of another TensorFlow": changed(
        CPU,
        ("packages.tensorflow", {"version": "2.21.0"}),
        ("packages.addon", {"version": "1.0"}),
        requirements=[Requirement("addon", "1.0", "tensorflow", "<2.20")],
        **UV,
    ),
    "an add-on beside tensorflow-cpu": changed(
        CPU,
        ("packages.tensorflow-cpu", {"version": "2.21.0"}),
        requirements=[Requirement("addon", "1.0", "tensorflow", "<2.20")],
    ),
    "Keras 2 that is not installed": changed(
        CPU, ("packages.tensorflow", {"version": "2.21.0"}), TF_USE_LEGACY_KERAS="1"
    ),
    "the locked engine, not installed": changed(CPU, KERAS_BACKEND="jax", locked_backend="jax"),
    "requirements that are not met": changed(TF13, requirements=TYPING, **UV),
    "requirements that nothing can meet": changed(
        TF13, ("packages.pygments", {"version": "2.20"}), requirements=[*TYPING[:3], PYDANTIC]
    ),
    "a requirement on a source repository": changed(
        CPU, requirements=[Requirement("mine", "1.0", "other", url="git+https://example.org/other.git@0a")]
    ),
    "TensorFlow newer than the tables": changed(CPU, ("tensorflow.version", "2.99.0")),
    "Python too new": changed(CPU, ("python.version", "3.14.1")),
    "NumPy 2 with 2.15": changed(TF15, ("packages.numpy", {"version": "2.2.6"})),
    "NumPy 2 with 2.15, which pandas wants": changed(
        TF15, ("packages.numpy", {"version": "2.2.6"}), requirements=[Requirement("pandas", "3.0.0", "numpy", ">=2.0")]
    ),
    "NumPy 2.3 with 2.18": changed(clean("2.18"), ("packages.numpy", {"version": "2.3.0"})),
    "protobuf 5 with 2.21": changed(CPU, ("packages.protobuf", {"version": "5.29.5"})),
    "protobuf 3.19 with 2.18": changed(clean("2.18"), ("packages.protobuf", {"version": "3.19.6"})),
    "Keras 3 with 2.14": changed(
        clean("2.14"), ("packages.numpy", {"version": "1.26.4"}), ("packages.keras", {"version": "3.5.0"})
    ),
    "Keras 3 with 2.15": changed(TF15, ("packages.keras", {"version": "3.5.0"})),
    "driver and library of two versions": changed(CPU, unavailable=BROKEN),
    "no binding of NVML": changed(CPU, unavailable=UNBOUND),
    "a GPU that does not tell all": changed(
        GPU, unavailable={"gpu.devices.0.ecc": {"code": "nvml-15", "reason": "It has fallen off the bus; reset it."}}
    ),
    "driver 470 for CUDA 12.5": changed(GPU, ("gpu.driver_version", "470.256.02"), ("gpu.cuda_driver_version", "11.4")),
    "driver 535 for CUDA 12.5": changed(GPU, ("gpu.driver_version", "535.261.03"), ("gpu.cuda_driver_version", "12.2")),
    "compat libcuda of other branches": changed(GPU, ("cuda.cuda_driver", COMPAT)),
    "compat libcuda on a GeForce": changed(
        GPU,
        ("cuda.cuda_driver", COMPAT),
        ("gpu.driver_version", "550.54.15"),
        ("gpu.devices", {"0": {"name": "NVIDIA GeForce RTX 4090", "compute_capability": "8.9"}}),
    ),
    "Blackwell by PTX": changed(GPU, ("gpu.devices.0.compute_capability", "12.0")),
    "Blackwell of data centres": changed(GPU, ("gpu.devices.0.compute_capability", "10.0")),
    "later than Blackwell": changed(GPU, ("gpu.devices.0.compute_capability", "13.0")),
    "later than Blackwell, driver cannot": changed(
        GPU,
        ("gpu.devices.0.compute_capability", "13.0"),
        ("gpu.cuda_driver_version", "12.2"),
    ),
    "Maxwell": changed(GPU, ("gpu.devices.0.compute_capability", "5.2")),
    "a libcuda for linking": changed(
        GPU,
        ("cuda.cuda_driver.file", "/usr/local/cuda/lib64/stubs/libcuda.so.1"),
        ("cuda.cuda_driver.resolved_by", "LD_LIBRARY_PATH"),
    ),
    "a libcuda for linking, in the cache of the loader": changed(
        CPU, ("cuda", {"cuda_driver": {"soname": "libcuda.so.1", "file": "/opt/cuda/stubs/libcuda.so.1"}})
    ),
    "a processor without AVX": changed(CPU, ("cpu", {"flags": ["sse4_1"]}), ("system", {"machine": "x86_64"})),
    "no TensorFlow in a lockfile": changed(CPU, ("tensorflow", None), others=None),
    "eight GPUs and a TensorFlow without CUDA": changed(
        CPU, ("gpu", {"devices": {str(n): TWO_GPUS["0"] for n in range(8)}}), NCCL_NVLS_ENABLE="0"
    ),
    "one GPU and a TensorFlow without CUDA": changed(CPU, ("gpu", {"devices": {"0": TWO_GPUS["0"]}})),
    "a GPU in MIG mode without slices": changed(GPU, ("gpu.devices", {}), ("gpu.visible", {"count": 0})),
    "a GPU that is not there": changed(
        GPU, ("gpu.devices", {}), ("gpu.visible", {"count": 0}), CUDA_VISIBLE_DEVICES="7"
    ),
    "GPUs with errors of their memory": changed(
        GPU,
        gpu_health=[
            GpuHealth(0, "A100-SXM4-80GB", uncorrected=0, retired_pages=None, remapped_rows=0),
            GpuHealth(1, "A100-SXM4-80GB", uncorrected=2, remapped_rows=1, pending=True, remapping_failed=True),
            GpuHealth(2, "Tesla V100-SXM2-32GB", uncorrected=0, retired_pages=3),
        ],
    ),
    "two models": changed(GPU, ("gpu.devices", MIXED), NCCL_NVLS_ENABLE="0"),
    "cuSOLVER not found, with a GPU": changed(GPU, ("cuda.cusolver", LOST)),
    "cuSOLVER not found, without": changed(GPU, ("cuda.cusolver", LOST), ("gpu", None)),
    "cuSOLVER not found, nor its wheel": changed(GPU, ("cuda.cusolver", LOST), ("packages.nvidia-cusolver-cu12", ...)),
    "cuDNN is a folder": changed(GPU, ("cuda.cudnn.problem", "cannot read file data: Is a directory")),
    "cuDNN from LD_LIBRARY_PATH": changed(
        GPU, ("cuda.cudnn.resolved_by", "LD_LIBRARY_PATH"), ("cuda.cudnn.wheel_version", None)
    ),
    "cuDNN 9.1": changed(GPU, ("cuda.cudnn.version", "9.1.0")),
    "cuDNN 9.1, by TensorFlow's own requirement": changed(
        GPU, ("cuda.cudnn.version", "9.1.0"), requirements=[GPU_CUDNN], **UV
    ),
    "cuDNN 9.1, which torch wants": changed(
        GPU,
        ("cuda.cudnn.version", "9.1.0"),
        ("packages.nvidia-cudnn-cu12", {"version": "9.1.0.70"}),
        requirements=[GPU_CUDNN, Requirement("torch", "2.5.1", "nvidia-cudnn-cu12", "==9.1.0.70")],
    ),
    "cuDNN 10": changed(GPU, ("cuda.cudnn.version", "10.4.0")),
    "cuDNN 8 from LD_LIBRARY_PATH": changed(
        GPU, ("cuda.cudnn.version", "8.9.7"), ("cuda.cudnn.resolved_by", "LD_LIBRARY_PATH")
    ),
    "a whole cuDNN from LD_LIBRARY_PATH": changed(
        GPU,
        ("cuda.cudnn", {**OTHERS, "soname": "libcudnn.so.9", "version": "9.3.0"}),
        ("cuda.cudnn_graph", {**OTHERS, "soname": "libcudnn_graph.so.9"}),
        ("cuda.cudnn_ops", {**OTHERS, "soname": "libcudnn_ops.so.9"}),
    ),
    "a whole old cuDNN from LD_LIBRARY_PATH, without its parts": changed(
        GPU,
        ("cuda.cudnn", {**OTHERS, "soname": "libcudnn.so.9", "version": "9.1.0"}),
        ("cuda.cudnn_graph", {**LOST, "soname": "libcudnn_graph.so.9"}),
        ("cuda.cudnn_ops", {**LOST, "soname": "libcudnn_ops.so.9"}),
    ),
    "CUDA 12 and 13": changed(
        GPU, ("packages.nvidia-cudnn-cu13", {"version": "9.20.0.48"}), ("packages.nvidia-cublas", {"version": "13.1"})
    ),
    "CUDA 12 and 13 in one file": changed(
        GPU,
        ("packages.nvidia-cudnn-cu13", {"version": "9.20.0.48"}),
        ("cuda.cudnn.claimed_by", ["nvidia-cudnn-cu12 9.3.0.75", "nvidia-cudnn-cu13 9.20.0.48"]),
    ),
    "CUDA 13 for torch": changed(
        GPU,
        ("packages.nvidia-cudnn-cu13", {"version": "9.20.0.48"}),
        requirements=[Requirement("torch", "2.11.0", "nvidia-cudnn-cu13", "==9.20.0.48")],
    ),
    "pynvml before nvidia-ml-py": changed(
        GPU,
        ("gpu.binding.problem", "shadowed"),
        ("gpu.binding.version", "11.4.1"),
        ("packages.nvidia-ml-py", {"version": "13.610.43"}),
    ),
    "pynvml that another requires": changed(
        CPU,
        ("packages.pynvml", {"version": "13.0.1"}),
        ("packages.nvidia-ml-py", {}),
        requirements=[Requirement("gpu-watch", "1.0", "pynvml")],
    ),
    "nvidia-ml-py3": changed(GPU, ("gpu.binding.problem", "abandoned"), ("gpu.binding.version", "7.352.0")),
    "pynvml beside nvidia-ml-py": changed(
        CPU, ("packages.pynvml", {"version": "13.0.1"}), ("packages.nvidia-ml-py", {})
    ),
    "TF_DETERMINISTIC_OPS=yes": changed(CPU, TF_DETERMINISTIC_OPS="yes"),
    "TF_DETERMINISTIC_OPS empty": changed(clean("2.7"), TF_DETERMINISTIC_OPS=""),
    "TF_ENABLE_ONEDNN_OPTS=yes": changed(CPU, TF_ENABLE_ONEDNN_OPTS="yes"),
    "TF_USE_LEGACY_KERAS=TRUE": changed(CPU, TF_USE_LEGACY_KERAS="TRUE"),
    "KERAS_BACKEND=theano": changed(CPU, KERAS_BACKEND="theano"),
    "a variable known by its digest": changed(CPU, TF_DETERMINISTIC_OPS="sha256:" + "0" * 64),
    "stale weights": changed(CPU, TF_ONEDNN_ASSUME_FROZEN_WEIGHTS="true"),
    "two epochs": changed(CPU, KERAS_MAX_EPOCHS="2"),
    "no tuning in 2.4": changed(clean("2.4"), TF_CUDNN_USE_AUTOTUNE="0"),
    "another engine": changed(CPU, KERAS_BACKEND="jax"),
    "a locked engine": changed(CPU, KERAS_BACKEND="jax", locked_backend="jax"),
    "another engine than the locked one": changed(CPU, KERAS_BACKEND="jax", locked_backend="torch"),
    "determinism off in 2.4": changed(clean("2.4"), TF_DETERMINISTIC_OPS="0"),
    "nothing set in 1.15": changed(clean("1.15"), TF_CUDNN_DETERMINISTIC=None),
    "nothing set in 2.4": changed(clean("2.4"), TF_DETERMINISTIC_OPS=None),
    "nothing set in 2.6": changed(clean("2.5"), TF_DETERMINISTIC_OPS=None, TF_CUDNN_USE_FRONTEND=None),
    "nothing set in NVIDIA's 1.15": changed(clean("1.15"), *NVIDIA_1, TF_CUDNN_DETERMINISTIC=None),
    "no hash seed": changed(CPU, PYTHONHASHSEED=None),
    "Horovod": changed(CPU, ("packages.horovod", {"version": "0.28.1"})),
    "two GPUs": changed(GPU, ("gpu.devices", TWO_GPUS)),
    "front end in 2.21": changed(CPU, TF_CUDNN_USE_FRONTEND="1"),
    "a name of documents": changed(CPU, TF_USE_CUDNN_AUTOTUNE="0"),
    "a name of notebooks": changed(CPU, TF_CUDNN_DETERMINISM="1"),
    "NVIDIA's name in a stock build": changed(CPU, TF_ENABLE_AUTO_MIXED_PRECISION="1"),
    "misspelt": changed(CPU, others=["TF_DETERMINSTIC_OPS", "PYTHONHASHseed", "TF_CUDNN_USE_FRONTEND "]),
    "cuDNN only": changed(CPU, TF_CUDNN_DETERMINISTIC="1"),
    "determinism and timing": changed(CPU, TF_DETERMINISTIC_OPS="1", TF_MATMUL_AUTOTUNE_ENABLE="1"),
    "two ceilings": changed(CPU, ONEDNN_MAX_CPU_ISA="AVX2", DNNL_MAX_CPU_ISA="SSE41"),
    "ceiling without oneDNN": changed(CPU, ONEDNN_MAX_CPU_ISA="AVX2", TF_ENABLE_ONEDNN_OPTS="0"),
    "Keras 2 with another engine": changed(CPU, TF_USE_LEGACY_KERAS="1", KERAS_BACKEND="torch"),
    "too late": changed(CPU, unavailable=LATE),
    "a flag of 2.7": changed(CPU, XLA_FLAGS="--xla_gpu_deterministic_reductions"),
    "a flag of JAX": changed(CPU, XLA_FLAGS="--xla_of_jax=1", strange_flags=["--xla_of_jax"]),
    "a flag twice": changed(CPU, XLA_FLAGS="--xla_gpu_deterministic_ops=true --xla_gpu_deterministic_ops=False"),
    "a flag that lets go": changed(CPU, XLA_FLAGS="--xla_gpu_deterministic_ops=false --xla_cpu_enable_fast_math"),
    "auto-clustering": changed(CPU, TF_XLA_FLAGS="--tf_xla_auto_jit=2"),
    "no file of flags": changed(CPU, XLA_FLAGS="/nowhere", missing_flag_file=True),
    "half precision": changed(CPU, ("keras.config.floatx", "float16")),
    "keras.json names another engine": changed(CPU, ("keras.config.backend", "torch")),
    "keras.json names the locked engine": changed(CPU, ("keras.config.backend", "torch"), locked_backend="torch"),
    "Keras 3.5 on a GPU": changed(
        clean("2.18", gpu=True), ("keras.version", "3.5.0"), ("packages.keras", {"version": "3.5.0"})
    ),
    "1.15 without the patch": changed(clean("1.15"), ("packages.framework-reproducibility", ...)),
    "two that own one library": changed(
        CPU,
        ("packages.opencv-python", {"version": "4.10.0.84"}),
        ("packages.opencv-python-headless", {"version": "4.10.0.84"}),
        shared_files=[OPENCV],
        requirements=[Requirement("albumentations", "1.4.0", "opencv-python-headless")],
    ),
    "cuDNN for CUDA 11 over the one for 12": changed(
        GPU, ("packages.nvidia-cudnn-cu11", {"version": "8.7.0.84"}), shared_files=[CUDNN]
    ),
    "two that own one text": changed(CPU, shared_files=[SharedFiles(("a", "b"), ("tests/__init__.py",))]),
    "two distributions and their files": changed(
        TWICE, shared_files=[SharedFiles(("tensorflow", "tensorflow-cpu"), ("tensorflow/__init__.py",))]
    ),
    "what an upgrade has left": changed(CPU, remnants=["/venv/lib/python3.11/site-packages/six-1.15.0.dist-info"]),
}


@pytest.mark.parametrize(
    ("cuda", "wheel"),
    [("11.8", "nvidia-cusolver-cu11"), ("12.5.1", "nvidia-cusolver-cu12"), ("13.0", "nvidia-cusolver")],
)
def test_an_installed_wheel_is_found_by_the_name_that_its_cuda_has(cuda: str, wheel: str) -> None:
    environment = changed(
        GPU,
        ("tensorflow.built_with_cuda", cuda),
        ("cuda.cusolver", LOST),
        ("packages.nvidia-cusolver-cu12", ...),
        (f"packages.{wheel}", {"version": "11.4.1.48"}),
    )
    (finding,) = [each for each in diagnose(environment) if each.rule == "library-missing"]
    assert "import nvidia.cusolver as m" in finding.fix
    assert "pip install" not in finding.fix


@pytest.mark.longer
def test_what_each_finding_says() -> None:
    found = {name: [line for finding in diagnose(CASES[name]) for line in _show(finding)] for name in CASES}
    assert [name for name in CASES if not found[name]] == []
    text = "\n".join("\n".join([f"# {name}", *lines, ""]) for name, lines in found.items())
    assert_as_golden(text, GOLDEN)


def _show(finding: Finding) -> Iterator[str]:
    """Yield what a finding says, without the texts that stand whole in doctor.toml."""
    yield f"{finding.severity} {finding.rule} {finding.where.fact}: {finding.message}"
    rows = [row for name, row in load_doctor_table().items() if finding.rule in (name, row.rule)]
    for column in ("why", "fix", "source"):
        text = getattr(finding, column)
        if text not in {getattr(row, column) for row in rows} | set(finding.commands):
            yield from (f"    {column}: {line}" for line in text.splitlines())
    yield from (f"    $ {command}" for command in finding.commands)


def test_the_libcuda_of_the_driver_itself_has_the_note_too() -> None:
    """As on an H100 with driver 580.159.04: a GeForce was accused, and the driver's age was not looked at."""
    own = {**COMPAT, "version": "580.159.04", "compat_drivers": [535, 580]}
    geforce = {"0": {"name": "NVIDIA GeForce RTX 4090", "compute_capability": "8.9"}}
    driver = ("gpu.driver_version", "580.159.04")
    assert diagnose(changed(GPU, ("cuda.cuda_driver", own), driver, ("gpu.devices", geforce))) == []
    newer = changed(GPU, ("cuda.cuda_driver", own), driver, ("cuda.cudart.version", "13.2"))
    assert "driver-minor-compatibility" in [each.rule for each in diagnose(newer)]


@pytest.mark.parametrize("value", ["", "-1", "NoDevFiles"])
def test_gpus_that_a_variable_hides_are_meant_so(value: str) -> None:
    hidden = changed(GPU, ("gpu.devices", {}), ("gpu.visible", {"count": 0}), CUDA_VISIBLE_DEVICES=value)
    assert diagnose(hidden) == []
    others = {name: each for name, each in hidden.variables.items() if name != "CUDA_VISIBLE_DEVICES"}
    assert diagnose(replace(hidden, variables=others)) == []


def test_every_rule_fires_and_every_finding_is_of_a_rule() -> None:
    fired = {finding.rule for environment in CASES.values() for finding in diagnose(environment)}
    assert fired == set(load_titles()), "each rule has a case here and a row in doctor.toml: docs/contributing/rule.md"


def test_every_function_that_looks_for_something_is_called() -> None:
    looking = {
        each
        for module in (flag_checks, gpu_checks, library_checks, package_checks, record_checks, environ)
        for name, each in vars(module).items()
        if inspect.isfunction(each) and not name.startswith("_") and each.__module__ == module.__name__
        if inspect.signature(each).return_annotation == "Iterator[Finding]"
    }
    assert looking == set(CHECKS)


def test_no_alarm_on_a_clean_environment() -> None:
    found = {(line, gpu): diagnose(clean(line, gpu=gpu)) for line in LINES for gpu in (False, True)}
    assert {case: [each.to_json() for each in findings] for case, findings in found.items() if findings} == {}


def test_a_cuda_build_on_a_machine_without_gpu_and_libraries_is_a_cpu_installation() -> None:
    nothing = {
        key: {"soname": key, "file": None, "resolved_by": "not found"} for key in ("cudart", "cudnn", "cusolver")
    }
    assert diagnose(changed(GPU, ("gpu", None), ("cuda", nothing))) == []
    stray = {"soname": "libnccl.so.2", "file": "{prefix}/x", "resolved_by": "RUNPATH"}  # xgboost brings it along
    assert diagnose(changed(GPU, ("gpu", None), ("cuda", {**nothing, "nccl": stray}))) == []


@pytest.mark.parametrize(("package", "severity"), [("six", "error"), ("jax", "warning"), ("torch", "warning")])
def test_where_jax_or_pytorch_computes_tensorflow_may_be_missing(package: str, severity: str) -> None:
    environment = changed(CPU, ("tensorflow", None), (f"packages.{package}", {"version": "2.0"}))
    found = {each.severity for each in diagnose(environment) if each.rule == "tensorflow-missing"}
    assert found == {severity}


def test_without_a_gpu_all_missing_libraries_are_one_note() -> None:
    one = {"soname": "libcublas.so.12", "file": "{prefix}/x", "resolved_by": "RUNPATH"}
    lost = {key: {"soname": f"lib{key}.so", "file": None, "resolved_by": "not found"} for key in ("cudart", "cufft")}
    (found,) = diagnose(changed(GPU, ("gpu", None), ("cuda", {"cublas": one, **lost})))
    assert (found.severity, found.commands) == ("info", [])
    assert found.message == "libcudart.so and 1 more are not found by TensorFlow's loader, and no GPU is visible"


@pytest.mark.parametrize(("built", "found"), [("9.3.1", []), ("9.3", []), ("9.4.0", ["cudnn-version"])])
def test_of_a_cudnn_the_minor_version_decides(built: str, found: list[str]) -> None:
    """TensorFlow looks at major and minor: 9.3.0 serves one that was compiled against 9.3.1."""
    environment = changed(GPU, ("tensorflow.compiled_against_cudnn", built))
    assert [each.rule for each in diagnose(environment)] == found


def test_tensorflow_under_another_name_meets_a_requirement_on_tensorflow() -> None:
    cpu = changed(clean("2.16"), ("packages.tensorflow-cpu", {"version": "2.16.2"}), requirements=[TF_KERAS])
    assert diagnose(cpu) == []
    other = changed(cpu, ("packages.tensorflow-cpu", {"version": "2.15.1"}))
    assert [each.rule for each in diagnose(other)] == ["requirements"]


def test_without_a_driver_what_needs_it_is_no_trouble() -> None:
    driver = {"soname": "libcuda.so.1", "file": None, "resolved_by": "not found"}
    problem = "libcuda.so.1, which it needs: not found"
    environment = changed(GPU, ("gpu", None), ("cuda.cuda_driver", driver), ("cuda.cudnn.problem", problem))
    assert diagnose(environment) == []


def test_of_a_lock_nothing_is_said_about_variables_that_no_lock_holds() -> None:
    locked = {row.name: None for row in load_variables()}
    assert [each.message for each in diagnose(Environment(CPU.facts, {}, locked))] == ["PYTHONHASHSEED is unset"]


def test_errors_come_first_and_decide() -> None:
    many = changed(CPU, PYTHONHASHSEED=None, TF_DETERMINISTIC_OPS="yes", TF_CUDNN_USE_FRONTEND="1")
    report = make_report(diagnose(many))
    assert [finding.severity for finding in report.findings] == ["error", "info", "info"]
    assert (report.match, report.exit_code) == (False, 1)
    assert next(report.lines()) == ("title", "not sound: 1 error, 2 notes")
    unseeded = make_report(diagnose(changed(CPU, PYTHONHASHSEED=None)))
    assert (unseeded.exit_code, unseeded.headline) == (0, "no problems found, 1 note")
    assert list(make_report([]).lines()) == [("title", "no problems found")]


def run_in_shell(lines: list[str], name: str, value: str) -> str:
    """Return what a variable holds after lines of a shell."""
    script = "\n".join([*lines, f'printf %s "${name}"'])
    done = subprocess.run(
        ["/bin/sh", "-c", script], env={**os.environ, name: value}, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.processes
@pytest.mark.parametrize(
    ("flags", "left"),
    [
        ("--xla_gpu_deterministic_ops=true --xla_gpu_deterministic_ops=false", "--xla_gpu_deterministic_ops=true"),
        ("--xla_gpu_deterministic_ops=FALSE --xla_gpu_deterministic_ops=false", ""),
        ("--xla_cpu_enable_fast_math --a=1 --xla_gpu_deterministic_ops=false --b=2", "--a=1 --b=2"),
        (
            "--xla_gpu_deterministic_reductions --xla_gpu_deterministic_reductions=true",
            "--xla_gpu_deterministic_ops=true",
        ),
    ],
)
def test_each_flag_loses_what_is_wrong_and_keeps_the_rest(flags: str, left: str) -> None:
    lines = list_fixes(diagnose(changed(CPU, XLA_FLAGS=flags)))
    mended = run_in_shell(lines, "XLA_FLAGS", flags)
    assert set(mended.split()) == set(left.split())
    assert diagnose(changed(CPU, XLA_FLAGS=mended or None)) == []


@pytest.mark.processes
def test_a_folder_is_taken_out_of_the_path_of_libraries() -> None:
    folder = "/opt/a b+(x).d/l'ib#[1]/stubs"
    (found,) = diagnose(changed(CASES["a libcuda for linking"], ("cuda.cuda_driver.file", f"{folder}/libcuda.so.1")))
    path = f"/a b:{folder}//:{folder}/deeper:{folder}"
    assert run_in_shell(list(found.commands), "LD_LIBRARY_PATH", path) == f"/a b:{folder}/deeper"


@pytest.mark.processes
def test_what_is_misspelt_gets_its_name_before_it_is_judged() -> None:
    wrong = changed(clean("2.4"), others=["TF_DETERMINSTIC_OPS"], TF_DETERMINISTIC_OPS=None)
    lines = list_fixes(diagnose(wrong))
    assert lines == [
        'export TF_DETERMINISTIC_OPS="$TF_DETERMINSTIC_OPS"; unset TF_DETERMINSTIC_OPS',
        "export TF_DETERMINISTIC_OPS=1",
    ]


def test_what_was_meant_is_set_unless_it_is_wrong() -> None:
    meant = {
        ("TF_ENABLE_ONEDNN_OPTS", "off"): "export TF_ENABLE_ONEDNN_OPTS=0",
        ("TF_ENABLE_ONEDNN_OPTS", "On"): "export TF_ENABLE_ONEDNN_OPTS=1",
        ("TF_ENABLE_ONEDNN_OPTS", "perhaps"): "unset TF_ENABLE_ONEDNN_OPTS",
        ("TF_CUDNN_USE_AUTOTUNE", "off"): "unset TF_CUDNN_USE_AUTOTUNE",
    }
    for (name, value), line in meant.items():
        assert list_fixes(diagnose(changed(CPU, **{name: value}))) == [line]


def test_exports_mend_what_a_variable_can_mend() -> None:
    wrong = {"PYTHONHASHSEED": None, "KERAS_MAX_EPOCHS": "1", "TF_DETERMINISTIC_OPS": "yes"}
    lines = list_fixes(diagnose(changed(CPU, **wrong)))
    assert lines == ["unset KERAS_MAX_EPOCHS", "export PYTHONHASHSEED=0", "export TF_DETERMINISTIC_OPS=1"]
    mended = changed(CPU, PYTHONHASHSEED="0", KERAS_MAX_EPOCHS=None, TF_DETERMINISTIC_OPS="1")
    assert diagnose(mended) == []


VALUES = st.none() | st.sampled_from(["0", "1", "true", "yes", "", "jax", "BF16", "$(reboot)", "sha256:00", "a b\x1b["])
NAMES = [row.name for row in determinism.load_variable_table().variable]


@given(line=st.sampled_from(LINES), values=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6))
def test_whatever_is_set_lines_for_the_shell_come_from_the_tables(line: str, values: dict[str, str | None]) -> None:
    rows = determinism.load_variable_table()
    good = {need.value for row in rows.variable for need in row.needed} | {
        value for each in rows.combination for value in each.set.values()
    }
    found = diagnose(changed(clean(line), **values))
    for text in list_fixes(found):
        word, _, rest = text.partition(" ")
        name, _, value = rest.partition("=")
        assert word in ("export", "unset")
        assert name in NAMES
        assert value in good if word == "export" else value == ""
    told = "\n".join(line for _, line in make_report(found).lines())
    assert "reboot" not in told
    assert "\x1b" not in told


def test_a_finding_in_text() -> None:
    finding = Finding(
        "flag-file-missing", "error", "x", message="A\x1b is wrong", why="Because.", fix="mend it", source="a source"
    )
    lines = [line for _, line in make_report([finding]).lines()]
    assert lines == [
        "not sound: 1 error",
        "  x A\\x1b is wrong [flag-file-missing]",
        "      why: Because.",
        "      fix: mend it",
    ]


def test_the_states_that_were_shown_stand_above_the_findings() -> None:
    states = DoctorEvidence((ObservedState("oneDNN", "on", "it ran as \x1b"),))
    finding = Finding(
        "proof", "error", "oneDNN", message="oneDNN: on, wanted: off", why="Because.", fix="mend it", source="a source"
    )
    assert render(make_report([finding], states)).splitlines()[:3] == [
        "oneDNN: on (it ran as \\x1b)",
        "not sound: 1 error",
        "  x oneDNN: on, wanted: off [proof]",
    ]
    assert render(make_report([], states)).splitlines()[1:] == ["everything is as wanted"]


@pytest.mark.parametrize("variable", ["XLA_FLAGS", "TF_XLA_FLAGS"])
def test_the_name_of_a_flag_that_no_table_has_is_not_shown(variable: str) -> None:
    """It may be a secret; it is named by its place, and removed by it."""
    value = "--xla_gpu_SEKRET04 --xla_cpu_multi_thread_eigen=false  --tf_xla_SEKRET02=1"
    strange = ["--xla_gpu_SEKRET04", "--tf_xla_SEKRET02"]
    found = diagnose(changed(CPU, strange_flags=strange, **{variable: value}))
    assert "SEKRET" not in json.dumps([finding.to_json() for finding in found])
    (unknown,) = [finding for finding in found if finding.rule == "flag-unknown" and "flags" in finding.message]
    assert "flags, numbers 1 and 3," in unknown.message
    assert unknown.fix == (f'export {variable}="$(echo "${variable}" | awk \'{{$1=""; $3=""; $0=$0; $1=$1; print}}\')"')
