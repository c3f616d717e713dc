"""The doctor's rules, all of them: one line a rule. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from envlock.diagnosis import flags, gpus, libraries, packages, variables
from envlock.diagnosis.environment import Environment
from envlock.runtime.report import Finding, sort_findings

Rule = Callable[[Environment], Iterator[Finding]]

RULES: Mapping[str, tuple[Rule, str]] = {
    # will it run, and on what?
    "tensorflow-missing": (
        packages.check_tensorflow,
        "no TensorFlow, or one of unknown version",
    ),
    "tensorflow-twice": (
        packages.check_single_tensorflow,
        "several distributions of TensorFlow over each other",
    ),
    "python-version": (packages.check_python, "a Python without wheels of this TensorFlow"),
    "package-version": (
        packages.check_companions,
        "a NumPy, protobuf or Keras that this TensorFlow does not support",
    ),
    "requirements": (
        packages.check_requirements,
        "a distribution that another requires, missing or of another version",
    ),
    "fact-unknown": (
        gpus.check_unavailable,
        "a fact that could not be collected, such as a broken driver",
    ),
    "driver-version": (gpus.check_driver, "a driver that is too old for the CUDA runtime"),
    "driver-minor": (
        gpus.check_driver,
        "a driver that runs the CUDA runtime by minor version compatibility only",
    ),
    "forward-compatibility": (
        gpus.check_forward_compatibility,
        "a forward-compatible libcuda where it does not work",
    ),
    "gpu-code": (
        gpus.check_gpu_code,
        "a GPU for which TensorFlow has no machine code, or none at all",
    ),
    "gpus-mixed": (gpus.check_models, "GPUs of several models"),
    "library-missing": (
        libraries.check_found,
        "a CUDA library that TensorFlow's loader does not find",
    ),
    "library-broken": (libraries.check_loadable, "a CUDA library that cannot be loaded"),
    "library-shadowed": (
        libraries.check_shadowed,
        "a CUDA library that a variable puts before the wheel's",
    ),
    "cudnn-version": (
        libraries.check_cudnn,
        "a cuDNN older than the one TensorFlow was compiled against",
    ),
    "cuda-majors": (packages.check_cuda_majors, "NVIDIA's wheels for CUDA 12 and 13 side by side"),
    "nvml-binding": (packages.check_nvml_binding, "another package instead of nvidia-ml-py"),
    # is it deterministic?
    "variable-value": (variables.check_values, "a variable with an invalid value"),
    "variable-dangerous": (
        variables.check_dangerous_values,
        "a variable with a value that is wrong for determinism",
    ),
    "variable-needed": (variables.check_needed, "an unset variable that this TensorFlow needs"),
    "variable-not-read": (variables.check_read, "a variable that nothing here reads"),
    "variable-misspelt": (variables.check_spelling, "a misspelt variable name"),
    "variables-contradict": (
        variables.check_combinations,
        "variables that contradict each other",
    ),
    "variable-too-late": (
        variables.check_late_changes,
        "a variable changed after TensorFlow read it",
    ),
    "flag-unknown": (flags.check_known, "an XLA flag that this TensorFlow does not know"),
    "flag-dangerous": (
        flags.check_flag_values,
        "an XLA flag with a value that is wrong for determinism",
    ),
    "flag-file": (flags.check_flag_file, "XLA_FLAGS that names a missing file"),
    "keras-config": (packages.check_keras_config, "a keras.json that changes every model"),
    "keras-xla": (packages.check_keras_xla, "a Keras that leaves XLA on under op determinism"),
    "patch-missing": (packages.check_patch, "TensorFlow 1.14 to 2.0 without NVIDIA's patch"),
}
"""Name -> (function, what it looks for).

A function may stand under several names: it yields what it finds for each.
"""


TITLES = {rule: title for rule, (_, title) in RULES.items()}


def diagnose(environment: Environment) -> list[Finding]:
    """Return everything that the rules find, the worst first."""
    findings: list[Finding] = []
    run = set()
    for check, _ in RULES.values():
        if check not in run:
            run.add(check)
            findings += check(environment)
    return sort_findings(findings)
