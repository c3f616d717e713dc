"""Recording is the inverse of replaying, for the tool and for the table of the C library."""

from __future__ import annotations

import ctypes
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from envlock.runtime.gpu import nvml
from tests.fakes.fake_nvml import FakeNvml, profile, profile_names, pynvml
from tests.fakes.replay import Machine, capture, installed, library, table

TOOL = Path(__file__).parents[3] / "tools/record_nvml.py"


def load_tool() -> Any:
    spec = importlib.util.spec_from_file_location("record_nvml", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


record_nvml = load_tool()
WORKING = [name for name in profile_names() if profile(name)["devices"]]


def test_a_recorded_machine_replays_to_the_same_answer_and_is_recorded_the_same_again() -> None:
    for name in WORKING:
        original = profile(name)
        with installed(pynvml, FakeNvml(original)):
            once = record_nvml.record(pynvml, original["kernel"], original["symbols"])
        assert capture(once) == capture(original), name
        assert record_nvml.replayed(pynvml, once, {}) == capture(original), name
        with installed(pynvml, FakeNvml(once)):
            assert record_nvml.record(pynvml, original["kernel"], original["symbols"]) == once, name


def test_a_recording_holds_no_uuid_of_the_machine() -> None:
    secret = profile("h100-80gb-hbm3__590__mig")
    secret["devices"][0]["uuid"] = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
    secret["devices"][0]["mig_devices"][0]["uuid"] = "MIG-c788539f-c1ea-5a36-8b4d-9b07d024b1bb"
    fake = FakeNvml(secret)
    with installed(pynvml, fake):
        recorded = json.dumps(record_nvml.record(pynvml))
    assert "8932f937" not in recorded
    assert "c788539f" not in recorded
    asked = set(fake.calls)
    assert not [call for call in asked if "Serial" in call or "Pdi" in call or "Board" in call or "UUID" in call]


@pytest.mark.processes
@pytest.mark.parametrize("name", ["h200__590__whole", "a100-sxm4-80gb__535__mig", "h100-80gb-hbm3__535__lost-1-of-2"])
def test_the_table_recorded_from_the_library_that_replays_it_is_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = profile(name)
    first = table(loaded)
    machine = Machine(tmp_path, loaded)
    for variable in ("FAKE_NVML_TABLE", "FAKE_NVML_FAULT"):
        monkeypatch.setenv(variable, machine.environ[variable])
    private = tmp_path / "private.so"  # an object of its own, so that it reads the variables anew
    private.write_bytes((library(loaded["symbols"]) / "libnvidia-ml.so.1").read_bytes())
    assert table(loaded, ctypes.CDLL(str(private))) == first


def test_a_capture_asks_for_nothing_that_identifies() -> None:
    asked = set()
    for name in WORKING:
        fake = FakeNvml(profile(name))
        with installed(pynvml, fake):
            nvml.capture(pynvml, {})
        asked |= set(fake.calls)
    allowed = {symbol for _, symbol in record_nvml.QUESTIONS.values()} | {
        "nvmlInitWithFlags",
        "nvmlSystemGetDriverVersion",
        "nvmlSystemGetNVMLVersion",
        "nvmlSystemGetCudaDriverVersion_v2",
        "nvmlDeviceGetCount_v2",
        "nvmlDeviceGetHandleByIndex_v2",
        "nvmlDeviceGetMigDeviceHandleByIndex",
        "nvmlDeviceGetGpuInstanceId",
        "nvmlDeviceGetComputeInstanceId",
        "nvmlDeviceGetAttributes_v2",
    }
    assert asked
    assert asked - allowed == set()
