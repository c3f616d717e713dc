"""All functions of the doctor that look for something. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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

Check = Callable[[Environment], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    package_checks.check_tensorflow,
    package_checks.check_single_tensorflow,
    package_checks.check_horizon,
    package_checks.check_python,
    package_checks.check_companions,
    package_checks.check_requirements,
    gpu_checks.check_unavailable,
    gpu_checks.check_driver,
    gpu_checks.check_forward_compatibility,
    gpu_checks.check_gpu_code,
    gpu_checks.check_unused,
    gpu_checks.check_visible,
    package_checks.check_processor,
    gpu_checks.check_memory,
    gpu_checks.check_models,
    library_checks.check_found,
    library_checks.check_loadable,
    library_checks.check_stub,
    library_checks.check_shadowed,
    library_checks.check_cudnn,
    package_checks.check_cuda_majors,
    record_checks.check_shared_files,
    record_checks.check_remnants,
    package_checks.check_nvml_binding,
    variable_checks.check_values,
    variable_checks.check_dangerous_values,
    package_checks.check_variable_packages,
    variable_checks.check_needed,
    variable_checks.check_read,
    variable_checks.check_spelling,
    variable_checks.check_combinations,
    variable_checks.check_late_changes,
    flag_checks.check_known,
    flag_checks.check_flag_values,
    flag_checks.check_flag_file,
    package_checks.check_keras_config,
    package_checks.check_keras_xla,
    package_checks.check_patch,
)
"""The functions; doctor.toml has what each of their findings says."""


def diagnose(environment: Environment) -> list[Finding]:
    """Return the findings of all rules, the worst first."""
    return sort_findings(finding for check in CHECKS for finding in check(environment))
