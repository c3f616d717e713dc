"""The doctor's rules, all of them: one line a rule. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from envlock.diagnosis import flags, gpus, libraries, packages, variables
from envlock.diagnosis.environment import Environment
from envlock.runtime.report import Finding, ranked

Rule = Callable[[Environment], Iterator[Finding]]

RULES: Mapping[str, tuple[Rule, str]] = {
    # will it run, and on what?
    "tensorflow-missing": (packages.no_tensorflow, "no TensorFlow, or one of unknown version"),
    "tensorflow-twice": (
        packages.several_tensorflows,
        "several distributions of TensorFlow over each other",
    ),
    "python-version": (packages.python, "a Python without wheels of this TensorFlow"),
    "package-version": (
        packages.companions,
        "a NumPy, protobuf or Keras that this TensorFlow does not support",
    ),
    "requirements": (
        packages.requirements,
        "a distribution that another requires, missing or of another version",
    ),
    "fact-unknown": (gpus.untold, "a fact that could not be collected, such as a broken driver"),
    "driver-version": (gpus.driver, "a driver that is too old for the CUDA runtime"),
    "driver-minor": (
        gpus.driver,
        "a driver that runs the CUDA runtime by minor version compatibility only",
    ),
    "forward-compatibility": (
        gpus.forward_compatibility,
        "a forward-compatible libcuda where it does not work",
    ),
    "gpu-code": (gpus.gpu_code, "a GPU for which TensorFlow has no machine code, or none at all"),
    "gpus-mixed": (gpus.mixed, "GPUs of several models"),
    "library-missing": (libraries.missing, "a CUDA library that TensorFlow's loader does not find"),
    "library-broken": (libraries.unloadable, "a CUDA library that cannot be loaded"),
    "library-shadowed": (
        libraries.shadowed,
        "a CUDA library that a variable puts before the wheel's",
    ),
    "cudnn-version": (
        libraries.cudnn,
        "a cuDNN older than the one TensorFlow was compiled against",
    ),
    "cuda-majors": (packages.two_cudas, "NVIDIA's wheels for CUDA 12 and 13 side by side"),
    "nvml-binding": (packages.nvml_binding, "another package instead of nvidia-ml-py"),
    # is it deterministic?
    "variable-value": (variables.aborts, "a variable with an invalid value"),
    "variable-dangerous": (
        variables.dangerous,
        "a variable with a value that is wrong for determinism",
    ),
    "variable-needed": (variables.needed, "an unset variable that this TensorFlow needs"),
    "variable-not-read": (variables.not_read, "a variable that nothing here reads"),
    "variable-misspelt": (variables.misspelt, "a misspelt variable name"),
    "variables-contradict": (variables.combined, "variables that contradict each other"),
    "variable-too-late": (variables.too_late, "a variable changed after TensorFlow read it"),
    "flag-unknown": (flags.unknown, "an XLA flag that this TensorFlow does not know"),
    "flag-dangerous": (flags.dangerous, "an XLA flag with a value that is wrong for determinism"),
    "flag-file": (flags.missing_file, "XLA_FLAGS that names a missing file"),
    "keras-config": (packages.keras_config, "a keras.json that changes every model"),
    "keras-xla": (packages.keras_xla, "a Keras that leaves XLA on under op determinism"),
    "patch-missing": (packages.patch_missing, "TensorFlow 1.14 to 2.0 without NVIDIA's patch"),
}
"""Name -> (function, what it looks for). A function may stand under several names: it yields what it finds for each."""


TITLES = {rule: title for rule, (_, title) in RULES.items()}


def diagnose(environment: Environment) -> list[Finding]:
    """Return everything that the rules find, the worst first."""
    checks = dict.fromkeys(check for check, _ in RULES.values())
    return ranked(finding for check in checks for finding in check(environment))
