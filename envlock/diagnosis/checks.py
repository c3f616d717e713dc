"""All rules of the doctor, one line each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from envlock.diagnosis import (
    flag_checks,
    gpu_checks,
    library_checks,
    package_checks,
    record_checks,
    variable_checks,
)
from envlock.diagnosis.diagnosed_environment import Environment
from envlock.runtime.report import Finding, sort_findings

Rule = Callable[[Environment], Iterator[Finding]]

RULES: Mapping[str, tuple[Rule, str]] = {
    # will it run, and on what?
    "tensorflow-missing": (
        package_checks.check_tensorflow,
        "no TensorFlow, or one of unknown version",
    ),
    "tensorflow-twice": (
        package_checks.check_single_tensorflow,
        "several distributions of TensorFlow over each other",
    ),
    "tensorflow-newer": (
        package_checks.check_horizon,
        "a TensorFlow that is newer than what envlock's tables were checked for",
    ),
    "python-version": (package_checks.check_python, "a Python without wheels of this TensorFlow"),
    "package-version": (
        package_checks.check_companions,
        "a NumPy, protobuf or Keras that this TensorFlow does not support",
    ),
    "requirements": (
        package_checks.check_requirements,
        "a distribution that another requires, missing or of another version",
    ),
    "fact-unknown": (
        gpu_checks.check_unavailable,
        "a fact that could not be collected, such as a broken driver",
    ),
    "driver-version": (gpu_checks.check_driver, "a driver that is too old for the CUDA runtime"),
    "driver-minor-compatibility": (
        gpu_checks.check_driver,
        "a driver that runs the CUDA runtime by minor version compatibility only",
    ),
    "forward-compatibility": (
        gpu_checks.check_forward_compatibility,
        "a forward-compatible libcuda where it does not work",
    ),
    "gpu-code": (
        gpu_checks.check_gpu_code,
        "a GPU for which TensorFlow has no machine code, or none at all",
    ),
    "gpus-unused": (gpu_checks.check_unused, "GPUs beside a TensorFlow without CUDA"),
    "gpus-none": (gpu_checks.check_visible, "a loaded driver without a GPU that CUDA sees"),
    "cpu-without-avx": (
        package_checks.check_processor,
        "a processor without the instructions of TensorFlow's wheels",
    ),
    "gpu-memory": (gpu_checks.check_memory, "a GPU whose memory had uncorrectable errors"),
    "gpus-mixed": (gpu_checks.check_models, "GPUs of several models"),
    "library-missing": (
        library_checks.check_found,
        "a CUDA library that TensorFlow's loader does not find",
    ),
    "library-broken": (library_checks.check_loadable, "a CUDA library that cannot be loaded"),
    "driver-stub": (
        library_checks.check_stub,
        "a libcuda that is made for linking and drives no GPU",
    ),
    "library-shadowed": (
        library_checks.check_shadowed,
        "a CUDA library that a variable puts before the wheel's",
    ),
    "cudnn-version": (
        library_checks.check_cudnn,
        "a cuDNN older than the one TensorFlow was compiled against",
    ),
    "cuda-majors-mixed": (
        package_checks.check_cuda_majors,
        "NVIDIA's wheels for CUDA 12 and 13 side by side",
    ),
    "shared-files": (
        record_checks.check_shared_files,
        "distributions that have overwritten files of each other",
    ),
    "remnant": (record_checks.check_remnants, "a metadata folder that describes no package"),
    "nvml-binding": (package_checks.check_nvml_binding, "another package instead of nvidia-ml-py"),
    # is it deterministic?
    "variable-value": (variable_checks.check_values, "a variable with an invalid value"),
    "variable-dangerous": (
        variable_checks.check_dangerous_values,
        "a variable with a value that is wrong for determinism",
    ),
    "variable-package": (
        package_checks.check_variable_packages,
        "a variable with a value that needs a package which is not installed",
    ),
    "variable-needed": (
        variable_checks.check_needed,
        "an unset variable that this TensorFlow needs",
    ),
    "variable-not-read": (variable_checks.check_read, "a variable that nothing here reads"),
    "variable-misspelt": (variable_checks.check_spelling, "a misspelt variable name"),
    "variables-contradict": (
        variable_checks.check_combinations,
        "variables that contradict each other",
    ),
    "variable-too-late": (
        variable_checks.check_late_changes,
        "a variable changed after TensorFlow read it",
    ),
    "flag-unknown": (flag_checks.check_known, "an XLA flag that this TensorFlow does not know"),
    "flag-dangerous": (
        flag_checks.check_flag_values,
        "an XLA flag with a value that is wrong for determinism",
    ),
    "flag-file-missing": (flag_checks.check_flag_file, "XLA_FLAGS that names a missing file"),
    "keras-config": (package_checks.check_keras_config, "a keras.json that changes every model"),
    "keras-xla": (
        package_checks.check_keras_xla,
        "a Keras that leaves XLA on under op determinism",
    ),
    "patch-missing": (package_checks.check_patch, "TensorFlow 1.14 to 2.0 without NVIDIA's patch"),
}
"""Name -> (function, what it finds).

A function can have several names: it yields the findings of each.
"""


TITLES = {rule: title for rule, (_, title) in RULES.items()}


def diagnose(environment: Environment) -> list[Finding]:
    """Return the findings of all rules, the worst first."""
    findings: list[Finding] = []
    run = set()
    for check, _ in RULES.values():
        if check not in run:
            run.add(check)
            findings += check(environment)
    return sort_findings(findings)
