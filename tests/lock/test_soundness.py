"""The wrong binary is named before it hurts."""

from __future__ import annotations

from typing import Any

import pytest

from envlock.lock.document import validate
from envlock.lock.fact_models import BindingFacts
from envlock.lock.lock_warnings import list_warnings
from envlock.lock.models import UnavailableFact
from envlock.runtime.gpu.nvml_failures import explain_binding

TARGETS = ["sm_60", "sm_70", "sm_80", "sm_89", "compute_90"]  # TensorFlow 2.18 to 2.21


def lock(capability: str | None, driver_cuda: str | None = "12.4", *, cuda_build: bool = True) -> Any:
    """Return a lock of TensorFlow 2.21 and one GPU."""
    tensorflow = {"cuda_build": cuda_build, "compute_capabilities": TARGETS, "built_with_cuda": "12.5.1"}
    device = {"name": "Card", "compute_capability": capability}
    gpu = {"cuda_driver_version": driver_cuda, "devices": {"0": device}}
    document = {
        "lock_version": 1,
        "created_by": "a test",
        "facts": {"tensorflow": tensorflow, "gpu": gpu},
        "unavailable": {},
        "policy": {"name": "strict", "overrides": {}},
    }
    return validate(document, "a test")


@pytest.mark.parametrize(
    ("capability", "driver_cuda", "expected"),
    [
        ("9.0", "12.8", []),
        ("7.5", "12.4", []),
        (None, "12.4", []),
        (
            "12.0",
            "12.8",
            [
                "GPU 0 (Card): TensorFlow holds only PTX (compute_90) for compute capability 12.0: the driver compiles "
                "it at first use, and a driver for CUDA 12.8 can (needed: 12.5.1)."
            ],
        ),
        (
            "12.0",
            "12.4",
            [
                "GPU 0 (Card): TensorFlow holds only PTX (compute_90) for compute capability 12.0: the driver compiles "
                "it at first use, but a driver for CUDA 12.4 cannot read PTX of CUDA 12.5.1 (error 222)."
            ],
        ),
        (
            "5.2",
            "12.8",
            [
                "GPU 0 (Card): TensorFlow holds no code for compute capability 5.2, only sm_60, sm_70, sm_80, sm_89, "
                "compute_90."
            ],
        ),
    ],
)
def test_a_gpu_without_machine_code_is_named(capability: str | None, driver_cuda: str, expected: list[str]) -> None:
    assert expected == list_warnings(lock(capability, driver_cuda))


@pytest.mark.parametrize(("capability", "version"), [("12.0", "2.21.0"), ("12.1", "2.16.2")])
def test_a_gpu_on_which_official_wheels_fail_is_told_what_works(capability: str, version: str) -> None:
    held = lock(capability, "12.9").to_document()
    held["facts"]["tensorflow"]["version"] = version
    assert list_warnings(validate(held, "a test")) == [
        f"GPU 0 (Card): TensorFlow holds no machine code for compute capability {capability}. Users report that "
        "official wheels fail on such GPUs with new drivers too: `CUDA_ERROR_INVALID_PTX`, or `PTX version 8.5 does "
        "not support target 'sm_120'`. What works: use NVIDIA's image 25.01 or 25.02 (`envlock images`), or a "
        "wheel built for sm_120."
    ]
    held["facts"]["tensorflow"]["nvidia_build"] = "nv25.2"
    assert "the driver compiles it at first use" in list_warnings(validate(held, "a test"))[0]


def test_equal_gpus_without_machine_code_are_one_warning() -> None:
    held = lock("5.2", "12.8").to_document()
    held["facts"]["gpu"]["devices"] = {str(index): held["facts"]["gpu"]["devices"]["0"] for index in range(8)}
    (warning,) = list_warnings(validate(held, "a test"))
    assert warning.startswith("GPUs 0-7 (Card): TensorFlow holds no code for compute capability 5.2, only ")


def test_a_cpu_build_has_nothing_to_warn_of() -> None:
    assert [] == list_warnings(lock("5.2", cuda_build=False))


def test_what_could_not_be_told_is_said_once_for_each_reason() -> None:
    untold = {
        "gpu.devices": {"reason": "NVML says no", "code": "nvml-9"},
        "gpu.visible": {"reason": "NVML says no", "code": "nvml-9"},
        "cuda.ptxas.version": {"reason": "only running it tells", "code": "no-version"},  # which nobody can change
    }
    found = lock("9.0").model_copy(update={"unavailable": {k: UnavailableFact(**v) for k, v in untold.items()}})
    assert list_warnings(found) == [
        "gpu.devices and 1 more could not be collected: NVML says no; `envlock verify` needs it, unless the policy "
        "ignores it"
    ]


def test_a_binding_that_should_be_replaced_is_named() -> None:
    found = lock("9.0")
    gpu = found.facts.gpu.model_copy(update={"binding": BindingFacts(version="11.5.3", problem="shadowed")})
    found = found.model_copy(update={"facts": found.facts.model_copy(update={"gpu": gpu})})
    assert list_warnings(found) == [explain_binding("shadowed", "11.5.3").reason]
    assert "11.5.3" in list_warnings(found)[0]
