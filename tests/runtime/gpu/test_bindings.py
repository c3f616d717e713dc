"""Contracts with what we do not own: the bindings that may be installed, the struct sizes of nvml.h, the driver."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from envlock.runtime.collectors import gpu
from envlock.runtime.gpu import nvml
from envlock.runtime.host import Host
from tests.exhaustive import exhaustive
from tests.fakes.fake_nvml import MEMORY_V2, profile, pynvml, symbols
from tests.fakes.replay import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

NEWEST = ""
BINDINGS = ("12.570.86", "12.575.51", "13.580.126", NEWEST)
"""The floor in pyproject.toml, two in between, and whatever is newest today."""

PROFILES = ("h200__590__whole", "a100-sxm4-80gb__535__mig", "v100s-pcie-32gb__460__whole", "rtx-3090__525__whole")


@pytest.fixture(scope="module")
def bindings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {}
    for version in BINDINGS:
        folder = tmp_path_factory.mktemp("binding")
        requirement = f"nvidia-ml-py=={version}" if version else "nvidia-ml-py"
        options = ["--quiet", "--no-deps", "--no-compile", "--disable-pip-version-check", "--target", str(folder)]
        done = subprocess.run([sys.executable, "-m", "pip", "install", *options, requirement], capture_output=True)
        if done.returncode:
            reason = f"pip cannot fetch {requirement}: {done.stderr.decode(errors='replace')[-300:]}"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        folders[version] = folder
    return folders


@exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("name", PROFILES)
def test_every_binding_gives_the_same_facts(name: str, bindings: dict[str, Path], tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile(name))
    found = []
    for version in BINDINGS:
        facts = gpu.collect(Host(str(machine.root), machine.environ, [str(bindings[version])]))
        assert isinstance(facts, dict)
        binding = facts.pop("binding")
        assert binding["distribution"] == "nvidia-ml-py"
        assert version in (binding["version"], NEWEST)
        found.append(facts)
    assert all(facts == found[0] for facts in found)
    assert found[0]["devices"]["0"]["name"]


SIZES = {"c_nvmlMemory_t": 24, "c_nvmlMemory_v2_t": 40, "nvmlPciInfo_t": 68, "c_nvmlDeviceAttributes": 40}
"""From compiling nvml.h of CUDA 13.5: a stand-in that took the binding's would share its mistakes."""


def test_struct_sizes_are_those_of_nvml_h() -> None:
    assert {struct: ctypes.sizeof(getattr(pynvml, struct)) for struct in SIZES} == SIZES
    assert pynvml.nvmlMemory_v2 == MEMORY_V2


def test_every_question_is_answered_by_drivers_since_525() -> None:
    asked = {
        "nvmlDeviceGetAttributes_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlInitWithFlags",
        "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetMigMode", "nvmlDeviceGetPciInfo_v3",
        "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion",
        *nvml._PLAIN.values(),
    }  # fmt: skip
    for generation in ("525", "535", "550", "555", "570", "580", "595"):
        assert asked - symbols(generation) == set(), generation


def test_the_error_numbers_are_those_of_the_binding() -> None:
    assert nvml.NOT_SUPPORTED == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert nvml.FUNCTION_NOT_FOUND == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    assert nvml.GPU_IS_LOST == pynvml.NVML_ERROR_GPU_IS_LOST
