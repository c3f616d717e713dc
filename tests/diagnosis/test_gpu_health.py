"""What the doctor asks NVML beside the facts: the history of the GPUs' memory."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.diagnosis import examine
from envlock.diagnosis.diagnosed_environment import GpuHealth, has_nvlink_sharp
from envlock.diagnosis.examine import ask_gpu_health, parse_gpu_health
from envlock.guest.gpu_health import collect_health, list_gpus
from envlock.runtime.errors import FactError
from tests.diagnosis.environments import changed, clean


class NVMLError(Exception):
    """As the binding raises it."""

    value = 3  # NVML_ERROR_NOT_SUPPORTED


def refuse(*_: object) -> Any:
    raise NVMLError


def build_binding(**functions: Any) -> Any:
    """Return a module `pynvml` of two GPUs that answers these questions, and no other."""
    questions = ("TotalEccErrors", "RetiredPages", "RetiredPagesPendingStatus", "RemappedRows", "Name")
    known = {f"nvmlDeviceGet{name}": refuse for name in questions}
    devices = {"nvmlDeviceGetCount": lambda: 2, "nvmlDeviceGetHandleByIndex": lambda index: index}
    return SimpleNamespace(NVMLError=NVMLError, **{**known, **devices, **functions})


def test_a_gpu_of_each_kind() -> None:
    ampere = {
        "nvmlDeviceGetName": lambda handle: "A100",
        "nvmlDeviceGetTotalEccErrors": lambda handle, kind, counter: 4 if (handle, kind, counter) == (1, 1, 0) else 0,
        "nvmlDeviceGetRemappedRows": lambda handle: (7, 2 * handle, handle, 0),
    }
    first, second = list_gpus(build_binding(**ampere))
    assert parse_gpu_health(first) == GpuHealth(0, "A100", 0, None, 0)
    assert parse_gpu_health(second) == GpuHealth(1, "A100", 4, None, 2, pending=True)
    volta = {
        "nvmlDeviceGetRetiredPages": lambda handle, cause: [1, 2],
        "nvmlDeviceGetRetiredPagesPendingStatus": lambda handle: handle,
    }
    first, second = list_gpus(build_binding(**volta))
    assert parse_gpu_health(first) == GpuHealth(0, "of unknown model", None, 2)
    assert parse_gpu_health(second).pending
    # A card of a desktop counts nothing.
    assert parse_gpu_health(list_gpus(build_binding())[0]) == GpuHealth(0, "of unknown model")
    assert list_gpus(build_binding(nvmlDeviceGetCount=refuse)) == []
    assert list_gpus(build_binding(nvmlDeviceGetHandleByIndex=refuse)) == []
    odd = build_binding(nvmlDeviceGetRemappedRows=lambda handle: [1])
    assert parse_gpu_health(list_gpus(odd)[0]) == GpuHealth(0, "of unknown model")
    assert parse_gpu_health({"index": 0, "uncorrected": True}).uncorrected is None


@pytest.mark.processes
def test_without_a_driver_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another test of this process may have loaded the real binding over a stand-in library.
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert collect_health("/no/such/folder") == {"gpus": []}
    # This machine has no GPU, or a sound one: an answer in any case.
    assert isinstance(ask_gpu_health(), tuple)

    def fail(*_: object) -> dict[str, Any]:
        raise FactError("it did not answer")

    monkeypatch.setattr(examine, "ask", fail)
    assert ask_gpu_health() == ()


@pytest.mark.parametrize(
    ("capability", "asked"),
    [("7.5", False), ("8.0", False), ("9.0", True), ("10.3", True), ("12.0", False), (None, True)],
)
def test_nvlink_sharp_is_asked_of_gpus_that_can_have_it(capability: str | None, asked: bool) -> None:
    gpu = {"name": "a GPU", "compute_capability": capability}
    assert has_nvlink_sharp(gpu) is asked
    machine = changed(clean(gpu=True), ("gpu.devices", {"0": gpu, "1": gpu}))
    assert machine.is_true("nvlink-sharp") is asked
    assert not changed(machine, ("gpu.devices", {"0": gpu})).is_true("nvlink-sharp")
